// Attention of many queries over many keys in tiles (Dao et al. 2022, FlashAttention; online softmax: Milakov &
// Gimelshein 2018): no more scores are held than one tile of queries by one block of keys, so memory does not grow with
// the keys. Vectorised with Highway; threads and heads are the caller's.
#pragma once
#include <cstdint>
#include <vector>

namespace parity::kernels {

inline constexpr int64_t kTileQueries = 256;  // of one call at most: each block of keys is read once for all of them

/// softmax(scale q k^T + bias) v. bf16 is passed as its bits, and computed in fp32; nothing is rounded but the result.
/// Without a bias, and where the processor multiplies pairs of bf16, by tile_attention_bf16.hpp.
template <class T>
struct TileAttend {
  const T* q = nullptr;  // (queries, dim), rows `q_step` elements apart
  const T* k = nullptr;  // (keys, dim)
  const T* v = nullptr;  // (keys, dim)
  T* out = nullptr;      // (queries, dim)
  int64_t queries = 0, keys = 0, dim = 0;
  int64_t q_step = 0, k_step = 0, v_step = 0, out_step = 0;
  double scale = 1;
  const T* bias = nullptr;  // (queries, keys), finite, rows `bias_step` apart: the lowest number where a query may not
                            // look; or null
  int64_t bias_step = 0;
};

/// `work`: what a thread keeps from call to call, enlarged as needed: about 0.5 MB in fp32 for heads of 128.
void attend(const TileAttend<double>& a, std::vector<double>& work);
void attend(const TileAttend<float>& a, std::vector<float>& work);
void attend(const TileAttend<uint16_t>& a, std::vector<float>& work);

}  // namespace parity::kernels
