// GPT-2 as transformers' GPT2LMHeadModel computes it: all tokens at once, or on top of a cache of keys and values.
// Every op of the recording is a probe point.
#pragma once
#include <ATen/ATen.h>

#include <string_view>
#include <vector>

#include "core/precision.hpp"
#include "models/gpt2/config.hpp"
#include "models/gpt2/ops.hpp"
#include "models/kv_cache.hpp"
#include "models/parameters.hpp"
#include "models/probe.hpp"

namespace parity {

struct Gpt2Block {
  Affine ln_1, attn_in, attn_out, ln_2, mlp_in, mlp_out;  // linear weights (in, out), or (out, in) under outputs_first
};

class Gpt2Model {
 public:
  /// `weights`: by transformers' names ("transformer.h.0.attn.c_attn.weight").
  Gpt2Model(const Gpt2Config& config, Precision precision, const WeightSource& weights, Gpt2Ops ops = {});

  /// Logits of all tokens (batch, tokens, vocabulary). ids: (batch, tokens) int64. With a cache the tokens follow those
  /// that it holds, and their keys and values are added. Throws Error beyond the positions of the configuration or the
  /// cache.
  at::Tensor forward(const at::Tensor& ids, KvCache* cache, Probe& probe) const;

  /// Logits of the last token alone (batch, vocabulary), as decoding wants them: `forward` on a cache without a probe,
  /// under our own kernels in one pass a layer for one token, and by LibTorch's products for many.
  at::Tensor next(const at::Tensor& ids, KvCache& cache) const;

  /// Room for `positions` tokens of `batch` sequences.
  KvCache cache(int64_t batch, int64_t positions) const;

  const Gpt2Config& config() const { return config_; }
  at::ScalarType dtype() const { return dtype_; }  // of the stream
  const std::vector<Gpt2Block>& blocks() const { return blocks_; }
  const at::Tensor& embedding() const { return wte_; }

 private:
  bool passes(const at::Tensor& ids, const KvCache* cache, const Probe& probe) const;
  at::Tensor layers_of_token(const at::Tensor& x, KvCache& cache) const;
  at::Tensor hidden(const at::Tensor& ids, KvCache* cache, Probe& probe) const;
  at::Tensor linear(std::string_view name, const at::Tensor& x, const Affine& w, Probe& probe) const;
  at::Tensor norm(std::string_view name, const at::Tensor& x, const Affine& w, Probe& probe) const;
  at::Tensor attention(int64_t layer, const at::Tensor& x, KvCache* cache, Probe& probe) const;
  at::Tensor feed_forward(const Gpt2Block& w, const at::Tensor& x, Probe& probe) const;
  at::Tensor embed(const at::Tensor& ids, int64_t first, Probe& probe) const;

  Gpt2Config config_;
  Gpt2Ops ops_;
  at::Tensor wte_, wpe_;
  std::vector<Gpt2Block> blocks_;
  std::vector<TokenLayer> token_layers_;  // the same weights; under ops_.token_layer alone
  Affine ln_f_;
  at::ScalarType dtype_;
};

}  // namespace parity
