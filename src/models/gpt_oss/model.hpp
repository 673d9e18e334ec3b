// gpt-oss as transformers' GptOssForCausalLM computes it: all tokens at once, or on top of a cache of keys and values.
// Every op that rounds is a probe point, except inside attention, RoPE and the norms, whose result is one.
#pragma once
#include <ATen/ATen.h>

#include <string_view>
#include <vector>

#include "core/precision.hpp"
#include "models/gpt_oss/cache.hpp"
#include "models/gpt_oss/config.hpp"
#include "models/gpt_oss/experts.hpp"
#include "models/gpt_oss/ops.hpp"
#include "models/parameters.hpp"
#include "models/probe.hpp"

namespace parity {

struct GptOssLayer {
  at::Tensor attention_norm;  // (dim)
  Affine q, k, v, o;          // weights (out, in)
  at::Tensor sinks;           // (heads)
  at::Tensor mlp_norm;        // (dim)
  Affine router;
  ExpertWeights experts;
};

class GptOssModel {
 public:
  /// `weights`: by transformers' names ("model.layers.0.self_attn.q_proj.weight"); experts plain or, when their
  /// "_blocks" are there, in MXFP4 as published, multiplied by our own kernel. RoPE's frequencies are taken in the
  /// digits of "model.rotary_emb.inv_freq" where that is recorded.
  GptOssModel(const GptOssConfig& config, Precision precision, const WeightSource& weights, GptOssOps ops = {});

  /// Logits of all tokens (batch, tokens, vocabulary). ids: (batch, tokens) int64. With a cache the tokens follow those
  /// that it holds, and their keys and values are added. Throws Error beyond the cache's positions.
  at::Tensor forward(const at::Tensor& ids, GptOssCache* cache, Probe& probe) const;

  /// Room for `positions` tokens of `batch` sequences, in the model's dtype or in fp8.
  GptOssCache cache(int64_t batch, int64_t positions, CacheStorage storage = CacheStorage::plain) const;

  const GptOssConfig& config() const { return config_; }
  at::ScalarType dtype() const { return dtype_; }  // of the stream
  const std::vector<GptOssLayer>& layers() const { return layers_; }

 private:
  at::Tensor linear(std::string_view name, const at::Tensor& x, const Affine& w, Probe& probe) const;
  at::Tensor norm(std::string_view name, const at::Tensor& x, const at::Tensor& weight, Probe& probe) const;
  struct Turn {
    at::Tensor cos, sin;  // (1, 1, tokens, head_dim / 2)
  };
  Turn turn(int64_t first, int64_t tokens, Probe& probe) const;
  at::Tensor attention(int64_t layer, const at::Tensor& x, const Turn& turn, GptOssCache* cache, Probe& probe) const;
  at::Tensor feed_forward(const GptOssLayer& w, const at::Tensor& x, Probe& probe) const;

  GptOssConfig config_;
  Precision precision_;
  GptOssOps ops_;
  at::Tensor embedding_, frequencies_, norm_;
  std::vector<GptOssLayer> layers_;
  Affine head_;
  at::ScalarType dtype_;
};

}  // namespace parity
