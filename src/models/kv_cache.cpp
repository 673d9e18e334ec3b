#include "models/kv_cache.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace parity {

KvCache::KvCache(int64_t layers, int64_t batch, int64_t heads, int64_t positions, int64_t head_dim,
                 at::ScalarType dtype)
    : positions_(positions) {
  for (int64_t i = 0; i < layers; ++i)
    for (auto* side : {&keys_, &values_}) side->push_back(at::zeros({batch, heads, positions, head_dim}, dtype));
}

int64_t KvCache::bytes() const {
  int64_t sum = 0;
  for (const auto* side : {&keys_, &values_})
    for (const auto& tensor : *side) sum += static_cast<int64_t>(tensor.nbytes());
  return sum;
}

std::pair<at::Tensor, at::Tensor> KvCache::room(int64_t layer, int64_t slot, int64_t tokens) const {
  if (slot < 0 || slot + tokens > positions_)
    throw Error(fmt::format("[cache] {} tokens at position {} do not fit a cache of {}", tokens, slot, positions_));
  return {keys_.at(static_cast<size_t>(layer)), values_.at(static_cast<size_t>(layer))};
}

std::pair<at::Tensor, at::Tensor> KvCache::append(int64_t layer, int64_t slot, const at::Tensor& k,
                                                  const at::Tensor& v) {
  const int64_t tokens = k.size(2);
  const auto [keys, values] = room(layer, slot, tokens);
  keys.narrow(2, slot, tokens).copy_(k);
  values.narrow(2, slot, tokens).copy_(v);
  return {keys.narrow(2, 0, length_ + tokens), values.narrow(2, 0, length_ + tokens)};
}

}  // namespace parity
