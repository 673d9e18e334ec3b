// gpt-oss's keys and values of the tokens so far, in the model's dtype or in fp8 with a scale a row.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <utility>

#include "models/gpt_oss/config.hpp"
#include "models/kv_cache.hpp"
#include "ops/fp8_rows.hpp"

namespace parity {

enum class CacheStorage { plain, fp8 };

class GptOssCache {
 public:
  using Widen = std::function<at::Tensor(const Fp8Rows&, at::ScalarType)>;

  GptOssCache(const GptOssConfig& config, int64_t batch, int64_t positions, at::ScalarType dtype, CacheStorage storage);

  int64_t length() const { return rows_.length(); }
  int64_t bytes() const { return rows_.bytes() + (scales_ ? scales_->bytes() : 0); }

  /// As KvCache::append. From fp8 the tokens come back in k's dtype, through `widen`: copies.
  std::pair<at::Tensor, at::Tensor> append(int64_t layer, int64_t slot, const at::Tensor& k, const at::Tensor& v,
                                           const Widen& widen);
  /// After all layers: the tokens are held.
  void advance(int64_t tokens);
  void clear();

 private:
  KvCache rows_;
  std::optional<KvCache> scales_;  // (batch, heads, positions, 1) a layer, fp32; of fp8 alone
};

}  // namespace parity
