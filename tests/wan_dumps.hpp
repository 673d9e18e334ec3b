// The embedded Wan recordings next to the re-implementation: pairing through the model's own map, teacher-forced and
// free.
#pragma once
#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "models/wan/ported.hpp"
#include "trace/program.hpp"

namespace parity::test {

/// Names of the embedded recordings without ".h5".
const std::vector<std::string>& wan_dumps();

Dump open_dump(const std::string& name);

/// Complex numbers as pairs of reals, (…) → (…, 2); real tensors as they are.
inline at::Tensor reals(const at::Tensor& x) { return x.is_complex() ? at::view_as_real(x) : x; }

struct WanPair {
  size_t boundary;        // of the program
  std::string candidate;  // point of the model
};

/// A recording, its program and what is paired with what.
struct WanCase {
  explicit WanCase(const std::string& name);

  Dump dump;
  Program program;
  std::vector<WanPair> pairs;                 // in the model's order
  std::vector<std::string> points, unpaired;  // the model's; those of them without counterpart
};

/// The reference at the paired boundaries, by point: recorded, or replayed under `precision`.
std::map<std::string, at::Tensor> reference_values(const WanCase& c, Precision precision);

/// The model at its points. `teacher`: after each it goes on from these. `into`: also there, point by point as they
/// come.
std::map<std::string, at::Tensor> model_values(const WanCase& c, Precision precision,
                                               const std::map<std::string, at::Tensor>* teacher, const WanOps& ops = {},
                                               std::map<std::string, at::Tensor>* into = nullptr);

}  // namespace parity::test
