// The kernel of tile_attention.hpp. Highway compiles this file once per instruction set.
#include "kernels/cpu/tile_attention.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tile_attention.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/tile_attention_bf16.hpp"
#include "kernels/cpu/tile_product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

constexpr int64_t kBlock = 128;  // keys at once: their scores stay in the second-level cache
constexpr int64_t kPad = 64;     // lengths of rows that vectors and panels divide
int64_t padded(int64_t n) { return (n + kPad - 1) / kPad * kPad; }

// What one call works on, laid out in the caller's memory.
template <class T>
struct Tile {
  using C = typename Wide<T>::Number;
  int64_t dim, wide;   // of a head; with its padding
  C* q;                // (queries, dim), times the scale
  C* keys;             // (dim, kBlock): the block's keys, transposed
  C* values;           // (kBlock, wide)
  C* scores;           // (queries, kBlock)
  C* sum;              // (queries, wide), relative to `largest`
  C *largest, *total;  // (queries)

  Tile(const TileAttend<T>& a, std::vector<C>& work) : dim(a.dim), wide(padded(a.dim)) {
    const int64_t sizes[] = {kTileQueries * dim,  dim * kBlock, kBlock * wide, kTileQueries * kBlock,
                             kTileQueries * wide, kTileQueries, kTileQueries};
    size_t all = 0;
    for (const int64_t size : sizes) all += static_cast<size_t>(padded(size));
    if (work.size() < all) work.resize(all);
    C* at = work.data();
    C** const parts[] = {&q, &keys, &values, &scores, &sum, &largest, &total};
    for (size_t i = 0; i < std::size(parts); ++i) {
      *parts[i] = at;
      at += padded(sizes[i]);
    }
    for (int64_t i = 0; i < a.queries; ++i)
      for (int64_t e = 0; e < dim; ++e) q[i * dim + e] = widened(a.q[i * a.q_step + e]) * static_cast<C>(a.scale);
    std::fill(sum, sum + a.queries * wide, C(0));
    std::fill(total, total + a.queries, C(0));
    std::fill(largest, largest + a.queries, -std::numeric_limits<C>::infinity());
  }
};

// Keys and values of a block as the products read them; what is beyond `n` keys is zero.
template <class T>
void pack(const TileAttend<T>& a, int64_t first, int64_t n, Tile<T>& t) {
  const typename Wide<T>::Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < kBlock; ++j) {
    auto* row = t.values + j * t.wide;
    if (j >= n) {
      for (int64_t e = 0; e < t.dim; ++e) t.keys[e * kBlock + j] = 0;
      std::fill(row, row + t.wide, 0);
      continue;
    }
    const T *k = a.k + (first + j) * a.k_step, *v = a.v + (first + j) * a.v_step;
    for (int64_t e = 0; e < t.dim; ++e) t.keys[e * kBlock + j] = widened(k[e]);
    int64_t e = 0;
    for (; e + lanes <= t.dim; e += lanes) hn::StoreU(widened(d, v + e), d, row + e);
    for (; e < t.dim; ++e) row[e] = widened(v[e]);
    std::fill(row + t.dim, row + t.wide, 0);
  }
}

// One query's scores of the block become weights relative to the largest so far; what was summed is brought to that.
template <class T>
void weigh(const TileAttend<T>& a, int64_t i, int64_t first, int64_t n, Tile<T>& t) {
  using C = typename Tile<T>::C;
  const typename Wide<T>::Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  C* scores = t.scores + i * kBlock;
  if (a.bias)
    for (int64_t j = 0; j < n; ++j) scores[j] += widened(a.bias[i * a.bias_step + first + j]);
  auto most = hn::Set(d, t.largest[i]), poison = hn::Zero(d);
  for (int64_t j = 0; j < kBlock; j += lanes) {  // beyond n the products are 0: no harm to NaN, and masked below
    const auto score = hn::LoadU(d, scores + j);
    poison = hn::MulAdd(score, hn::Zero(d), poison);  // NaN and infinity go through: the exponential would lose them
  }
  std::fill(scores + n, scores + kBlock, -std::numeric_limits<C>::infinity());
  for (int64_t j = 0; j < kBlock; j += lanes) most = hn::Max(most, hn::LoadU(d, scores + j));
  const C largest = hn::GetLane(hn::MaxOfLanes(d, most));
  if (largest > t.largest[i]) {
    const C factor = std::exp(t.largest[i] - largest);
    for (int64_t e = 0; e < t.wide; ++e) t.sum[i * t.wide + e] *= factor;
    t.total[i] *= factor;
    t.largest[i] = largest;
  }
  auto total = poison;
  for (int64_t j = 0; j < kBlock; j += lanes) {
    const auto weight = hn::Exp(d, hn::Sub(hn::LoadU(d, scores + j), hn::Set(d, t.largest[i])));
    hn::StoreU(weight, d, scores + j);
    total = hn::Add(total, weight);
  }
  t.total[i] += hn::GetLane(hn::SumOfLanes(d, total));
}

template <class T>
void tile(const TileAttend<T>& a, std::vector<typename Wide<T>::Number>& work) {
  Tile<T> t(a, work);
  for (int64_t first = 0; first < a.keys; first += kBlock) {
    const int64_t n = std::min(kBlock, a.keys - first);
    pack(a, first, n, t);
    product<false>(t.q, t.dim, t.keys, kBlock, t.scores, kBlock, a.queries, kBlock, t.dim);
    for (int64_t i = 0; i < a.queries; ++i) weigh(a, i, first, n, t);
    product<true>(t.scores, kBlock, t.values, t.wide, t.sum, t.wide, a.queries, t.wide, kBlock);
  }
  for (int64_t i = 0; i < a.queries; ++i)
    for (int64_t e = 0; e < t.dim; ++e) store_narrow(t.sum[i * t.wide + e] / t.total[i], a.out + i * a.out_step + e);
}

void tile_fp64(const TileAttend<double>& a, std::vector<double>& work) { tile(a, work); }
void tile_fp32(const TileAttend<float>& a, std::vector<float>& work) { tile(a, work); }
void tile_bf16(const TileAttend<uint16_t>& a, std::vector<float>& work) { tile(a, work); }

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(tile_fp64);
HWY_EXPORT(tile_fp32);
HWY_EXPORT(tile_bf16);

void attend(const TileAttend<double>& a, std::vector<double>& work) { HWY_DYNAMIC_DISPATCH(tile_fp64)(a, work); }
void attend(const TileAttend<float>& a, std::vector<float>& work) { HWY_DYNAMIC_DISPATCH(tile_fp32)(a, work); }
void attend(const TileAttend<uint16_t>& a, std::vector<float>& work) {
  if (!a.bias && has_bf16_pairs()) return attend_bf16_pairs(a, work);
  HWY_DYNAMIC_DISPATCH(tile_bf16)(a, work);
}

}  // namespace parity::kernels
#endif
