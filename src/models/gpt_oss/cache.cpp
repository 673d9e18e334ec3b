#include "models/gpt_oss/cache.hpp"

namespace parity {

GptOssCache::GptOssCache(const GptOssConfig& c, int64_t batch, int64_t positions, at::ScalarType dtype,
                         CacheStorage storage)
    : rows_(c.layers, batch, c.key_heads, positions, c.head_dim,
            storage == CacheStorage::fp8 ? at::kFloat8_e4m3fn : dtype) {
  if (storage == CacheStorage::fp8) scales_.emplace(c.layers, batch, c.key_heads, positions, 1, at::kFloat);
}

std::pair<at::Tensor, at::Tensor> GptOssCache::append(int64_t layer, int64_t slot, const at::Tensor& k,
                                                      const at::Tensor& v, const Widen& widen) {
  if (!scales_) return rows_.append(layer, slot, k, v);
  const Fp8Rows keys = ops::fp8_rows(k), values = ops::fp8_rows(v);
  const auto [all_keys, all_values] = rows_.append(layer, slot, keys.values, values.values);
  const auto [key_scales, value_scales] = scales_->append(layer, slot, keys.scale, values.scale);
  return {widen({all_keys, key_scales}, k.scalar_type()), widen({all_values, value_scales}, v.scalar_type())};
}

void GptOssCache::advance(int64_t tokens) {
  rows_.advance(tokens);
  if (scales_) scales_->advance(tokens);
}

void GptOssCache::clear() {
  rows_.clear();
  if (scales_) scales_->clear();
}

}  // namespace parity
