// The text encoder UMT5 as transformers' UMT5EncoderModel computes it with SDPA: no scale on the scores, a table of
// position biases in every layer, T5's norm, a feed-forward layer gated by gelu_new. Every op of the recording but the
// steps of the norm is a probe point.
#pragma once
#include <ATen/ATen.h>

#include <string_view>
#include <vector>

#include "core/precision.hpp"
#include "models/parameters.hpp"
#include "models/probe.hpp"
#include "models/umt5/config.hpp"
#include "models/umt5/ops.hpp"

namespace parity {

struct Umt5Block {
  at::Tensor norm1, q, k, v, o, bias;  // linear weights (out, in); bias (buckets, heads)
  at::Tensor norm2, gate, up, down;
};

struct Umt5Inputs {
  at::Tensor ids;   // (batch, tokens) int64
  at::Tensor mask;  // (batch, tokens), 0 where a token is padding; or undefined
};

class Umt5Model {
 public:
  /// `weights`: by transformers' names ("encoder.block.0.layer.0.SelfAttention.q.weight").
  Umt5Model(const Umt5Config& config, Precision precision, const WeightSource& weights, Umt5Ops ops = {});

  /// (batch, tokens, dim), of padded tokens too. Throws Error when the inputs' shapes do not fit.
  at::Tensor forward(const Umt5Inputs& inputs, Probe& probe) const;

  const Umt5Config& config() const { return config_; }

 private:
  at::Tensor linear(std::string_view name, const at::Tensor& x, const at::Tensor& weight, Probe& probe) const;
  at::Tensor norm(std::string_view name, const at::Tensor& x, const at::Tensor& weight, Probe& probe) const;
  at::Tensor bias(const Umt5Block& w, int64_t tokens, const at::Tensor& sees, Probe& probe) const;
  at::Tensor attention(int64_t layer, const at::Tensor& x, const at::Tensor& sees, Probe& probe) const;
  at::Tensor feed_forward(const Umt5Block& w, const at::Tensor& x, Probe& probe) const;

  Umt5Config config_;
  Precision precision_;
  Umt5Ops ops_;
  double lowest_;  // of the recorded dtype: what stands for "may not look"
  at::Tensor words_;
  std::vector<Umt5Block> blocks_;
  at::Tensor final_norm_;
};

/// Which keys may be looked at, (batch, 1, 1, tokens) bool; undefined when no token is padding, as transformers leaves
/// the mask out then (masking_utils.py, _ignore_bidirectional_mask_sdpa).
at::Tensor umt5_sees(const at::Tensor& mask);

}  // namespace parity
