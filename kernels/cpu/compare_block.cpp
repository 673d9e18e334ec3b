// The kernels of compare_block.hpp. Highway compiles this file once per instruction set (foreach_target.h includes it
// again).
#include "kernels/cpu/compare_block.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/compare_block.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/compare_bits-inl.hpp"
#include "kernels/cpu/marked-inl.hpp"
#include "kernels/cpu/turned-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

static_assert(kTurned == kWord && kBitsWord == kWord);

enum class Keep { none, above, all };

HWY_INLINE V widened(const double* p) { return hn::LoadU(D(), p); }
HWY_INLINE V widened(const float* p) { return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<float, D>(), p)); }

HWY_INLINE double total(V v) { return hn::GetLane(hn::SumOfLanes(D(), v)); }

struct Accumulator {
  V max_d, sum_d, sum_dd, sum_r, sum_rr, sum_dr;

  // Written out: g++ gives an implicit constructor no target attribute and then cannot inline into it.
  HWY_INLINE Accumulator() { max_d = sum_d = sum_dd = sum_r = sum_rr = sum_dr = hn::Zero(D()); }

  /// Returns |d|. `kPositive`: no r is below zero.
  template <bool kPositive>
  HWY_INLINE V add(V r, V c) {
    const V d = hn::Sub(c, r), magnitude = hn::Abs(d);
    max_d = hn::Max(max_d, magnitude);
    sum_d = hn::Add(sum_d, magnitude);
    sum_dd = hn::MulAdd(d, d, sum_dd);
    sum_r = hn::Add(sum_r, kPositive ? r : hn::Abs(r));
    sum_rr = hn::MulAdd(r, r, sum_rr);
    sum_dr = hn::MulAdd(d, r, sum_dr);
    return magnitude;
  }

  HWY_INLINE BlockSums sums() const {
    return {hn::GetLane(hn::MaxOfLanes(D(), max_d)),
            total(sum_d),
            total(sum_dd),
            total(sum_r),
            total(sum_rr),
            total(sum_dr)};
  }
};

/// What lies ahead is asked for while a word is summed: memory then has something to do all the time. For the second
/// level of cache: for the first, no more lines can be under way than it has fill buffers.
HWY_INLINE void ask_for_line(const void* p) { __builtin_prefetch(static_cast<const char*>(p) + kBlockAhead, 0, 2); }
template <class T>
HWY_INLINE void ask_for_word(const T* p) {
  for (int64_t i = 0; i < kWord; i += 64 / static_cast<int64_t>(sizeof(T))) ask_for_line(p + i);
}

/// kWord pairs; returns their marks.
template <Keep kKeep, bool kPositive, class T>
HWY_INLINE uint64_t add_word(const T* r, const T* c, Accumulator& acc, V above, double* abs_d) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  uint64_t marks = 0;
  for (int64_t k = 0; k < kWord; k += lanes) {
    const V magnitude = acc.add<kPositive>(widened(r + k), widened(c + k));
    if constexpr (kKeep != Keep::none) hn::StoreU(magnitude, D(), abs_d + k);
    if constexpr (kKeep == Keep::above) marks |= bits_of(hn::Gt(magnitude, above)) << k;
  }
  return marks;
}

/// n pairs, whole words; `beside(i)` is called before the word at i. `kPositive`: no r is below zero.
template <Keep kKeep, bool kPositive, class T, class Beside>
BlockSums sums_of_words(const T* r, const T* c, int64_t n, const Beside& beside, BlockDifferences* differences) {
  alignas(64) double kept[kBlock];  // a store across cache lines costs twice
  uint64_t marks[kBlock / kWord];
  double* abs_d = kKeep == Keep::all ? differences->out : kept;
  const V above = hn::Set(D(), kKeep == Keep::above ? differences->above : 0);
  Accumulator acc;
  for (int64_t i = 0; i < n; i += kWord) {
    beside(i);
    marks[i / kWord] = add_word<kKeep, kPositive>(r + i, c + i, acc, above, abs_d + i);
  }
  if constexpr (kKeep == Keep::all) differences->count = n;
  if constexpr (kKeep == Keep::above) {
    double* out = differences->out;
    for (int64_t i = 0; i < n; i += kWord) out += copy_marked(abs_d + i, marks[i / kWord], out);
    differences->count = out - differences->out;
  }
  return acc.sums();
}

template <bool kPositive, class T, class Beside>
BlockSums sums_of_words(const T* r, const T* c, int64_t n, const Beside& beside, BlockDifferences* differences) {
  if (differences == nullptr) return sums_of_words<Keep::none, kPositive>(r, c, n, beside, differences);
  if (differences->above < 0) return sums_of_words<Keep::all, kPositive>(r, c, n, beside, differences);
  return sums_of_words<Keep::above, kPositive>(r, c, n, beside, differences);
}

constexpr int64_t padded(int64_t n) { return (n + kWord - 1) / kWord * kWord; }

/// A block in fp32 or fp64, its last word filled with pairs of zeros: these add nothing to a sum or a maximum.
template <class T>
struct Padded {
  alignas(64) T r[kBlock], c[kBlock];
};

/// Of all differences the first n are those of pairs: what filled the last word comes last.
void leave_out_padding(int64_t n, BlockDifferences* differences) {
  if (differences != nullptr) differences->count = std::min(differences->count, n);
}

template <class T>
BlockFigures figures_of_words(const T* r, const T* c, int64_t n, BlockDifferences* differences) {
  using U = hwy::MakeUnsigned<T>;
  BitsFound<U> found;
  const auto beside = [&](int64_t i) HWY_ATTR {
    ask_for_word(r + i);
    ask_for_word(c + i);
    found.add(reinterpret_cast<const U*>(r + i), reinterpret_cast<const U*>(c + i), kWord);
  };
  const auto sums = sums_of_words<false>(r, c, n, beside, differences);
  return {sums, found.bits()};
}

template <class T>
BlockFigures figures(const T* r, const T* c, int64_t n, BlockDifferences* differences) {
  if (n % kWord == 0) return figures_of_words(r, c, n, differences);
  Padded<T> block;
  std::fill(std::copy(r, r + n, block.r), block.r + padded(n), T(0));
  std::fill(std::copy(c, c + n, block.c), block.c + padded(n), T(0));
  BlockFigures out = figures_of_words(block.r, block.c, padded(n), differences);
  leave_out_padding(n, differences);
  out.bits.equal -= padded(n) - n;
  out.bits.zeros -= padded(n) - n;
  return out;
}

BlockFigures figures_fp64(const double* r, const double* c, int64_t n, BlockDifferences* differences) {
  return figures(r, c, n, differences);
}
BlockFigures figures_fp32(const float* r, const float* c, int64_t n, BlockDifferences* differences) {
  return figures(r, c, n, differences);
}

constexpr int64_t kFourLines = 4 * 64 / sizeof(uint16_t);

/// One cache line of four, the `line`-th. The passes that come before the sums ask for their part: if the sums asked
/// for all it would be too much at once, and nothing was asked for in between (.5 in place of .65 of the memory's
/// pace).
HWY_INLINE void ask_for_quarter(int64_t i, const uint16_t* r, const uint16_t* c, int64_t line) {
  if (i % kFourLines != 0) return;
  ask_for_line(r + i + kFourLines / 4 * line);
  ask_for_line(c + i + kFourLines / 4 * line);
}

/// The bits, in a loop of their own: in that of `turn` they took three times as long.
BlockBits bits_ahead(const uint16_t* r, const uint16_t* c, int64_t n) {
  BitsFound<uint16_t> found;
  int64_t i = 0;
  for (; i + kFourLines <= n; i += kFourLines) {
    ask_for_quarter(i, r, c, 0);
    found.add(r + i, c + i, kFourLines);
  }
  BlockBits out = found.bits();
  const BlockBits last = bits_of_pairs(r + i, c + i, n - i);
  return {std::max(out.max_ulp, last.max_ulp), out.equal + last.equal, out.zeros + last.zeros};
}

/// A block of a 16-bit format in fp32, both sides with the sign of r taken off: |r|, and c turned with it. Sums are the
/// same, and |r| is not to be taken again.
template <class Format>
void turn(const uint16_t* r, const uint16_t* c, int64_t n, Padded<float>& out) {
  int64_t i = 0;
  for (; i + kWord <= n; i += kWord) {
    ask_for_quarter(i, r, c, 1);
    turn_word<Format>(r + i, c + i, out.r + i, out.c + i);
  }
  if (i == n) return;
  uint16_t last_r[kWord] = {}, last_c[kWord] = {};
  std::copy(r + i, r + n, last_r);
  std::copy(c + i, c + n, last_c);
  turn_in_order<Format>(last_r, last_c, out.r + i, out.c + i);
}

template <class Format>
BlockFigures figures_turned(const uint16_t* r, const uint16_t* c, int64_t n, BlockDifferences* differences) {
  Padded<float> block;
  const BlockBits bits = bits_ahead(r, c, n);
  turn<Format>(r, c, n, block);
  const auto beside = [&](int64_t i) HWY_ATTR {
    ask_for_word(r + i);
    ask_for_word(c + i);
  };
  const auto sums = sums_of_words<true>(block.r, block.c, padded(n), beside, differences);
  leave_out_padding(n, differences);
  return {sums, bits};
}

BlockFigures figures_bf16(const uint16_t* r, const uint16_t* c, int64_t n, BlockDifferences* differences) {
  return figures_turned<Bf16>(r, c, n, differences);
}
BlockFigures figures_fp16(const uint16_t* r, const uint16_t* c, int64_t n, BlockDifferences* differences) {
  return figures_turned<Fp16>(r, c, n, differences);
}

BlockProducts products(const double* a, const double* b, const double* c, int64_t n) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  V aa = hn::Zero(D()), bb = aa, cc = aa, bc = aa;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V va = hn::LoadU(D(), a + i), vb = hn::LoadU(D(), b + i), vc = hn::LoadU(D(), c + i);
    aa = hn::MulAdd(va, va, aa);
    bb = hn::MulAdd(vb, vb, bb);
    cc = hn::MulAdd(vc, vc, cc);
    bc = hn::MulAdd(vb, vc, bc);
  }
  BlockProducts out{total(aa), total(bb), total(cc), total(bc)};
  for (; i < n; ++i) out = {out.aa + a[i] * a[i], out.bb + b[i] * b[i], out.cc + c[i] * c[i], out.bc + b[i] * c[i]};
  return out;
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(figures_fp64);
HWY_EXPORT(figures_fp32);
HWY_EXPORT(figures_bf16);
HWY_EXPORT(figures_fp16);
HWY_EXPORT(products);

BlockFigures compare_block(const double* r, const double* c, int64_t n, BlockDifferences* differences) {
  return HWY_DYNAMIC_DISPATCH(figures_fp64)(r, c, n, differences);
}
BlockFigures compare_block(const float* r, const float* c, int64_t n, BlockDifferences* differences) {
  return HWY_DYNAMIC_DISPATCH(figures_fp32)(r, c, n, differences);
}
BlockFigures compare_block_bf16(const uint16_t* r, const uint16_t* c, int64_t n, BlockDifferences* differences) {
  return HWY_DYNAMIC_DISPATCH(figures_bf16)(r, c, n, differences);
}
BlockFigures compare_block_fp16(const uint16_t* r, const uint16_t* c, int64_t n, BlockDifferences* differences) {
  return HWY_DYNAMIC_DISPATCH(figures_fp16)(r, c, n, differences);
}
BlockProducts block_products(const double* a, const double* b, const double* c, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(products)(a, b, c, n);
}

}  // namespace parity::kernels
#endif
