// By intrinsics, compiled for one instruction set; tile_attention.cpp asks the processor before it calls.
#include "kernels/cpu/tile_attention_bf16.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace parity::kernels {

// From here on nothing but what lies in the unnamed namespace may be defined: a template of the standard library
// compiled for AVX-512 could be the one that the linker keeps for everybody.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
namespace {

constexpr int64_t kLanes = 16;          // fp32 numbers of a vector
constexpr int64_t kPanel = 2 * kLanes;  // queries, and columns of the result, at once: 8 x 2 vectors of sums
constexpr int64_t kRows = 8;            // hide the latency of an addition, and each load serves several products
constexpr int64_t kKeys = 128;          // of a block: one panel's weights, and one of values, share the first cache
constexpr int64_t kLine = 64;           // bytes: vectors across two lines are loaded at half the speed
constexpr float kLowest = -150;         // 2^-150 is 0 in fp32, and no infinity gets into the polynomial

inline int64_t rounded_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// What one call works on, in the caller's memory; scores lie transposed, a vector's lanes are queries.
struct PairTile {
  int64_t pairs, wide, panels;  // of a head's numbers; of its columns with their padding; of queries
  uint32_t* q;                  // (panels, pairs, kPanel): two neighbouring numbers of a query each
  uint32_t* keys;               // (kKeys, pairs)
  float* values;                // (wide / kPanel, kKeys, kPanel)
  float* weights;               // (kKeys, kPanel): of one panel of queries; before that their scores
  float* sum;                   // (panels kPanel, wide), relative to 2^largest
  float *largest, *total;       // (panels, kPanel)

  PairTile(const TileAttend<uint16_t>& a, std::vector<float>& work)
      : pairs((a.dim + 1) / 2), wide(rounded_up(a.dim, kPanel)), panels((a.queries + kPanel - 1) / kPanel) {
    const int64_t rows = panels * kPanel;
    const int64_t sizes[] = {rows * pairs, kKeys * pairs, kKeys * wide, kKeys * kPanel, rows * wide, rows, rows};
    constexpr int64_t kStep = kLine / static_cast<int64_t>(sizeof(float));
    size_t all = kStep;
    for (const int64_t size : sizes) all += static_cast<size_t>(rounded_up(size, kStep));
    if (work.size() < all) work.resize(all);
    const size_t beyond = reinterpret_cast<uintptr_t>(work.data()) % kLine / sizeof(float);
    float* at = work.data() + (kStep - static_cast<int64_t>(beyond)) % kStep;
    float* parts[std::size(sizes)];
    for (size_t i = 0; i < std::size(sizes); ++i) {
      parts[i] = at;
      at += rounded_up(sizes[i], kStep);
    }
    q = reinterpret_cast<uint32_t*>(parts[0]), keys = reinterpret_cast<uint32_t*>(parts[1]);
    values = parts[2], weights = parts[3], sum = parts[4], largest = parts[5], total = parts[6];
  }
};

inline __m512 pairs_at(const uint32_t* p) { return _mm512_load_ps(p); }
inline __m512 pair_everywhere(const uint32_t* p) {
  return _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(*p)));
}
inline __m512 add_products(__m512 sum, __m512 a, __m512 b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

// 2^x for x <= 0, to 1e-7 of itself: the nearest whole number goes to the exponent, the rest through a polynomial
// fitted for the smallest relative error (Lawson's iteration). NaN stays NaN.
inline __m512 power_of_two(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(kLowest), x);  // of a NaN and a number: the second
  const __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 rest = _mm512_sub_ps(x, whole);
  __m512 y = _mm512_set1_ps(0x1.5c08e4p-10F);
  for (const float c : {0x1.3d0c52p-7F, 0x1.c6b6e4p-5F, 0x1.ebf918p-3F, 0x1.62e428p-1F, 0x1.000002p+0F})
    y = _mm512_fmadd_ps(y, rest, _mm512_set1_ps(c));
  return _mm512_scalef_ps(y, whole);
}

void pack_queries(const TileAttend<uint16_t>& a, const PairTile& t) {
  std::fill(t.q, t.q + t.panels * t.pairs * kPanel, 0);
  for (int64_t i = 0; i < a.queries; ++i) {
    uint32_t* to = t.q + i / kPanel * t.pairs * kPanel + i % kPanel;
    for (int64_t e = 0; e < a.dim; ++e) to[e / 2 * kPanel] |= uint32_t{a.q[i * a.q_step + e]} << (e % 2 * 16);
  }
}

// `n` keys and values of a block; keys are filled up with zeros to whole groups of rows.
void pack_block(const TileAttend<uint16_t>& a, int64_t first, int64_t n, const PairTile& t) {
  const size_t row = static_cast<size_t>(t.pairs) * sizeof(uint32_t),
               used = static_cast<size_t>(a.dim) * sizeof(uint16_t);
  for (int64_t j = 0; j < rounded_up(n, kRows); ++j) {
    uint32_t* key = t.keys + j * t.pairs;
    key[t.pairs - 1] = 0;
    if (j < n)
      std::memcpy(key, a.k + (first + j) * a.k_step, used);
    else
      std::memset(key, 0, row);
  }
  for (int64_t j = 0; j < n; ++j)
    for (int64_t e = 0; e < t.wide; e += kLanes) {
      const int64_t left = std::clamp<int64_t>(a.dim - e, 0, kLanes);
      const __m256i half =
          _mm256_maskz_loadu_epi16(static_cast<__mmask16>((1U << left) - 1), a.v + (first + j) * a.v_step + e);
      float* to = t.values + (e / kPanel * kKeys + j) * kPanel + e % kPanel;
      _mm512_store_si512(to, _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    }
}

// Scores of kRows keys from `keys` for a panel of queries, in units of log 2; `most` learns of the first `n`.
inline void scores_of(const uint32_t* keys, const uint32_t* q, int64_t pairs, __m512 scale, int64_t n, float* scores,
                      __m512* most) {
  __m512 sums[kRows][2];
#pragma GCC unroll 8
  for (auto& row : sums) row[0] = row[1] = _mm512_setzero_ps();
  for (int64_t p = 0; p < pairs; ++p) {
    const __m512 left = pairs_at(q + p * kPanel), right = pairs_at(q + p * kPanel + kLanes);
#pragma GCC unroll 8
    for (int64_t i = 0; i < kRows; ++i) {
      const __m512 key = pair_everywhere(keys + i * pairs + p);
      sums[i][0] = add_products(sums[i][0], key, left);
      sums[i][1] = add_products(sums[i][1], key, right);
    }
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int64_t half = 0; half < 2; ++half) {
      const __m512 score = _mm512_mul_ps(sums[i][half], scale);
      _mm512_store_ps(scores + i * kPanel + half * kLanes, score);
      if (i < n) most[half] = _mm512_max_ps(most[half], score);
    }
}

// Scores become weights relative to the largest so far; what was summed before will be brought to that by `factor`.
inline void weigh(int64_t n, const __m512* most, float* weights, float* largest, float* total, float* factor) {
  for (int64_t half = 0; half < 2; ++half) {
    const int64_t at = half * kLanes;
    const __m512 before = _mm512_load_ps(largest + at);
    const __m512 change = power_of_two(_mm512_sub_ps(before, most[half]));
    __m512 sum = _mm512_mul_ps(_mm512_load_ps(total + at), change);
    for (int64_t j = 0; j < n; ++j) {
      float* to = weights + j * kPanel + at;
      const __m512 weight = power_of_two(_mm512_sub_ps(_mm512_load_ps(to), most[half]));
      _mm512_store_ps(to, weight);
      sum = _mm512_add_ps(sum, weight);
    }
    _mm512_store_ps(total + at, sum);
    _mm512_store_ps(largest + at, most[half]);
    _mm512_store_ps(factor + at, change);
  }
}

// A panel of columns of kRows queries' sums: times their factors, plus weights times values.
inline void add_values(const float* weights, const float* values, int64_t n, const float* factor, float* sum,
                       int64_t step) {
  __m512 sums[kRows][2];
#pragma GCC unroll 8
  for (auto& row : sums) row[0] = row[1] = _mm512_setzero_ps();
  for (int64_t j = 0; j < n; ++j) {
    const __m512 left = _mm512_load_ps(values + j * kPanel), right = _mm512_load_ps(values + j * kPanel + kLanes);
#pragma GCC unroll 8
    for (int64_t i = 0; i < kRows; ++i) {
      const __m512 weight = _mm512_set1_ps(weights[j * kPanel + i]);
      sums[i][0] = _mm512_fmadd_ps(weight, left, sums[i][0]);
      sums[i][1] = _mm512_fmadd_ps(weight, right, sums[i][1]);
    }
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int64_t half = 0; half < 2; ++half) {
      float* to = sum + i * step + half * kLanes;
      _mm512_store_ps(to, _mm512_fmadd_ps(_mm512_load_ps(to), _mm512_set1_ps(factor[i]), sums[i][half]));
    }
}

void attend_panel(const PairTile& t, int64_t panel, int64_t n, __m512 scale) {
  alignas(kLine) float factor[kPanel];
  float* largest = t.largest + panel * kPanel;
  __m512 most[2] = {_mm512_load_ps(largest), _mm512_load_ps(largest + kLanes)};
  for (int64_t j = 0; j < n; j += kRows)
    scores_of(t.keys + j * t.pairs, t.q + panel * t.pairs * kPanel, t.pairs, scale, n - j, t.weights + j * kPanel,
              most);
  weigh(n, most, t.weights, largest, t.total + panel * kPanel, factor);
  for (int64_t e = 0; e < t.wide; e += kPanel)
    for (int64_t i = 0; i < kPanel; i += kRows)
      add_values(t.weights + i, t.values + e * kKeys, n, factor + i, t.sum + (panel * kPanel + i) * t.wide + e, t.wide);
}

void write(const TileAttend<uint16_t>& a, const PairTile& t) {
  for (int64_t i = 0; i < a.queries; ++i)
    for (int64_t e = 0; e < a.dim; e += kLanes) {
      const __m512 mean = _mm512_div_ps(_mm512_load_ps(t.sum + i * t.wide + e), _mm512_set1_ps(t.total[i]));
      const __m256i half = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(mean));
      const auto mask = static_cast<__mmask16>((1U << std::min(kLanes, a.dim - e)) - 1);
      _mm256_mask_storeu_epi16(a.out + i * a.out_step + e, mask, half);
    }
}

void attend_tile(const TileAttend<uint16_t>& a, std::vector<float>& work) {
  const PairTile t(a, work);
  const int64_t rows = t.panels * kPanel;
  std::fill(t.sum, t.sum + rows * t.wide, 0.F);
  std::fill(t.total, t.total + rows, 0.F);
  std::fill(t.largest, t.largest + rows, std::numeric_limits<float>::lowest());
  pack_queries(a, t);
  const __m512 scale = _mm512_set1_ps(static_cast<float>(a.scale * M_LOG2E));
  for (int64_t first = 0; first < a.keys; first += kKeys) {
    const int64_t n = std::min(kKeys, a.keys - first);
    pack_block(a, first, n, t);
    for (int64_t panel = 0; panel < t.panels; ++panel) attend_panel(t, panel, n, scale);
  }
  write(a, t);
}

}  // namespace
#pragma GCC pop_options

bool has_bf16_pairs() {
  static const bool has = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
}

void attend_bf16_pairs(const TileAttend<uint16_t>& a, std::vector<float>& work) { attend_tile(a, work); }

}  // namespace parity::kernels

#else

#include <cstdlib>

namespace parity::kernels {

bool has_bf16_pairs() { return false; }
void attend_bf16_pairs(const TileAttend<uint16_t>&, std::vector<float>&) { std::abort(); }

}  // namespace parity::kernels
#endif
