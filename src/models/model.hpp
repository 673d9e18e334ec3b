// What the main job needs to know about a re-implemented model.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/precision.hpp"
#include "dump/dump.hpp"
#include "models/probe.hpp"

namespace parity {

/// Whose code computes the ops that there are kernels of our own for (src/ops/own.hpp); LibTorch's all others.
enum class Kernels { aten, own };

/// Two ways of the model to the same values, judged like any other pair: with a cache and without, quantised and not.
struct SelfPair {
  std::string path, kind;  // "cached/position.3", "attention"
  at::Tensor baseline, optimised;
  /// Root mean square that each element's difference should have (a quantisation step's), fp64; undefined: both round
  /// alike, and fp64 demands equality.
  at::Tensor expected{};
};

/// A re-implemented model made for one reference recording: weights and inputs taken from it.
class PortedModel {
 public:
  virtual ~PortedModel() = default;
  /// Forward call `call` of the recording, under the precision given at construction. Every op passes through `probe`.
  virtual at::Tensor forward(int call, Probe& probe) = 0;
  /// Pairing rules (design 1.3, "Map file"): REFERENCE = CANDIDATE a line, for this recording's naming.
  virtual std::string_view map() const = 0;
  /// Op kind in the field's words ("linear", "layer_norm", "rms_norm", "rope", "attention", "modulation", "residual",
  /// "cast", "conv", "gelu", "silu", "sinusoid", "embedding", "copy") for a candidate path.
  virtual std::string kind(std::string_view candidate_path) const = 0;
  /// Its optimisations beside what they optimise, on the recording's inputs; none unless a model has some.
  virtual std::vector<SelfPair> self_pairs() { return {}; }
  /// One line for the report: "wan, cast placement sky_ac, 2 layers, dim 64".
  virtual std::string description() const = 0;
};

/// One row a model: does it fit the recording (class name, weights), and how is it made?
struct ModelEntry {
  std::string_view name;  // "wan"
  bool (*fits)(const Dump& dump);
  std::unique_ptr<PortedModel> (*make)(const Dump& dump, Precision precision, Kernels kernels);
};

/// All re-implemented models.
const std::vector<ModelEntry>& model_table();

}  // namespace parity
