// Attention of one query over the keys so far, in one pass with an online softmax (Milakov & Gimelshein 2018): keys and
// values are read once, no scores are kept. Vectorised with Highway; threads, heads and windows are the caller's.
#pragma once
#include <cstdint>

namespace parity::kernels {

/// Widest head.
inline constexpr int64_t kMaxHeadWidth = 512;

/// softmax(scale q k^T + bias, and the sink) v over keys [0, keys). bf16 is passed as its bits and computed in fp32.
template <class T>
struct Attend {
  const T* q = nullptr;  // (dim)
  const T* k = nullptr;  // (keys, dim), rows `key_step` elements apart
  const T* v = nullptr;  // (keys, dim), rows `value_step` apart
  T* out = nullptr;      // (dim)
  int64_t keys = 0, dim = 0, key_step = 0, value_step = 0;
  double scale = 1;
  const T* sink = nullptr;  // a logit more, without a value; or null
  const T* bias =
      nullptr;  // (keys), finite: a position's bias, or the lowest number where the query may not look; or null
};

void attend(const Attend<double>& a);
void attend(const Attend<float>& a);
void attend(const Attend<uint16_t>& a);

}  // namespace parity::kernels
