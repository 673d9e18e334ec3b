// Keys and values of the tokens so far, in memory allocated once.
#pragma once
#include <ATen/ATen.h>

#include <utility>
#include <vector>

namespace parity {

class KvCache {
 public:
  KvCache(int64_t layers, int64_t batch, int64_t heads, int64_t positions, int64_t head_dim, at::ScalarType dtype);

  int64_t length() const { return length_; }        // tokens held
  int64_t positions() const { return positions_; }  // room
  int64_t bytes() const;

  /// Writes k and v (batch, heads, tokens, head_dim) of one layer behind the tokens held, beginning at `slot`, and
  /// returns all keys and values up to their end: views, no copies. Throws Error when they do not fit.
  std::pair<at::Tensor, at::Tensor> append(int64_t layer, int64_t slot, const at::Tensor& k, const at::Tensor& v);
  /// All of one layer's keys and values (batch, heads, positions, head_dim), for one who writes `tokens` rows at `slot`
  /// himself. Throws Error when they do not fit.
  std::pair<at::Tensor, at::Tensor> room(int64_t layer, int64_t slot, int64_t tokens) const;
  /// After all layers: the tokens are held.
  void advance(int64_t tokens) { length_ += tokens; }
  void clear() { length_ = 0; }

 private:
  std::vector<at::Tensor> keys_, values_;  // a layer each: (batch, heads, positions, head_dim)
  int64_t positions_, length_ = 0;
};

}  // namespace parity
