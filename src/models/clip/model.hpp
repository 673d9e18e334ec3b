// CLIP's image encoder as transformers' CLIPVisionModel computes it with SDPA: patches by a convolution, a class token,
// learned positions, a norm before the layers. Every op of the recording is a probe point. Wan takes the hidden state
// before the last layer (`hidden_states[-2]`, "use_31_block" of the originals).
#pragma once
#include <ATen/ATen.h>

#include <string_view>
#include <vector>

#include "core/precision.hpp"
#include "models/clip/config.hpp"
#include "models/clip/ops.hpp"
#include "models/parameters.hpp"
#include "models/probe.hpp"

namespace parity {

struct ClipLayer {
  Affine norm1, q, k, v, out, norm2, fc1, fc2;  // linear weights (out, in)
};

struct ClipOutput {
  at::Tensor last_hidden;  // (batch, tokens, dim)
  at::Tensor pooled;       // (batch, dim): the class token, normed
  at::Tensor penultimate;  // (batch, tokens, dim)
};

class ClipModel {
 public:
  /// `weights`: by transformers' names ("encoder.layers.0.self_attn.q_proj.weight").
  ClipModel(const ClipConfig& config, Precision precision, const WeightSource& weights, ClipOps ops = {});

  /// pixels: (batch, channels, image, image), any float; rounded to the weights' dtype first. Throws Error for another
  /// shape.
  ClipOutput forward(const at::Tensor& pixels, Probe& probe) const;

  const ClipConfig& config() const { return config_; }

 private:
  at::Tensor embed(const at::Tensor& pixels, Probe& probe) const;
  at::Tensor linear(std::string_view name, const at::Tensor& x, const Affine& w, Probe& probe) const;
  at::Tensor norm(std::string_view name, const at::Tensor& x, const Affine& w, Probe& probe) const;
  at::Tensor attention(const ClipLayer& w, const at::Tensor& x, Probe& probe) const;

  ClipConfig config_;
  Precision precision_;
  ClipOps ops_;
  at::ScalarType recorded_;  // of the weights, before any redirection
  at::Tensor class_, patches_, positions_;
  Affine pre_norm_, post_norm_;
  std::vector<ClipLayer> layers_;
};

}  // namespace parity
