// The kernels of compare_block.hpp. Highway compiles this file once per instruction set (foreach_target.h includes it
// again).
#include "kernels/cpu/compare_block.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/compare_block.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/highway.h>

#include <algorithm>
#include <bit>

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

struct LoadFp64 {
  using Element = double;
  static HWY_INLINE V vector(const double* p) { return hn::LoadU(D(), p); }
};

struct LoadFp32 {
  using Element = float;
  static HWY_INLINE V vector(const float* p) { return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<float, D>(), p)); }
};

struct LoadBf16 {
  using Element = uint16_t;
  static HWY_INLINE V vector(const uint16_t* p) {
    const hn::Rebind<uint32_t, D> u32;
    const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(u32, hn::LoadU(hn::Rebind<uint16_t, D>(), p)));
    return hn::PromoteTo(D(), hn::BitCast(hn::Rebind<float, D>(), bits));
  }
};

struct LoadFp16 {
  using Element = uint16_t;
  static HWY_INLINE V vector(const uint16_t* p) {
    const auto half = hn::LoadU(hn::Rebind<hwy::float16_t, D>(), reinterpret_cast<const hwy::float16_t*>(p));
    return hn::PromoteTo(D(), hn::PromoteTo(hn::Rebind<float, D>(), half));
  }
};

HWY_INLINE double total(V v) { return hn::GetLane(hn::SumOfLanes(D(), v)); }

struct Accumulator {
  V max_d, sum_d, sum_dd, sum_r, sum_rr, sum_dr;

  // Written out: g++ gives an implicit constructor no target attribute and then cannot inline into it.
  HWY_INLINE Accumulator() { max_d = sum_d = sum_dd = sum_r = sum_rr = sum_dr = hn::Zero(D()); }

  HWY_INLINE void add(V r, V c, double* abs_d) {
    const V d = hn::Sub(c, r), magnitude = hn::Abs(d);
    hn::StoreU(magnitude, D(), abs_d);
    max_d = hn::Max(max_d, magnitude);
    sum_d = hn::Add(sum_d, magnitude);
    sum_dd = hn::MulAdd(d, d, sum_dd);
    sum_r = hn::Add(sum_r, hn::Abs(r));
    sum_rr = hn::MulAdd(r, r, sum_rr);
    sum_dr = hn::MulAdd(d, r, sum_dr);
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

constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(double);

template <class Load>
BlockSums sums(const typename Load::Element* r, const typename Load::Element* c, int64_t n, double* abs_d) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  Accumulator acc;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) acc.add(Load::vector(r + i), Load::vector(c + i), abs_d + i);
  if (i < n) {  // the rest, padded with pairs of zeros: they add nothing to a sum or a maximum
    typename Load::Element rest_r[kMaxLanes] = {}, rest_c[kMaxLanes] = {};
    double rest_d[kMaxLanes];
    std::copy(r + i, r + n, rest_r);
    std::copy(c + i, c + n, rest_c);
    acc.add(Load::vector(rest_r), Load::vector(rest_c), rest_d);
    std::copy(rest_d, rest_d + (n - i), abs_d + i);
  }
  return acc.sums();
}

BlockSums sums_fp64(const double* r, const double* c, int64_t n, double* abs_d) {
  return sums<LoadFp64>(r, c, n, abs_d);
}
BlockSums sums_fp32(const float* r, const float* c, int64_t n, double* abs_d) { return sums<LoadFp32>(r, c, n, abs_d); }
BlockSums sums_bf16(const uint16_t* r, const uint16_t* c, int64_t n, double* abs_d) {
  return sums<LoadBf16>(r, c, n, abs_d);
}
BlockSums sums_fp16(const uint16_t* r, const uint16_t* c, int64_t n, double* abs_d) {
  return sums<LoadFp16>(r, c, n, abs_d);
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

/// Of two numbers as sign and magnitude: magnitudes on one side of zero are subtracted, on different sides they add up.
template <class U>
U ulp_distance(U r, U c) {
  constexpr U kMagnitude = U(U(~U(0)) >> 1);
  const U mr = U(r & kMagnitude), mc = U(c & kMagnitude);
  return U(r ^ c) > kMagnitude ? U(mr + mc) : U(std::max(mr, mc) - std::min(mr, mc));
}

template <class U>
BlockBits bits(const U* r, const U* c, int64_t n) {
  constexpr U kMagnitude = U(U(~U(0)) >> 1);
  const hn::ScalableTag<U> u;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(u));
  const auto magnitude = hn::Set(u, kMagnitude);
  auto apart = hn::Zero(u), unlike = hn::Zero(u);
  BlockBits out;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto vr = hn::LoadU(u, r + i), vc = hn::LoadU(u, c + i);
    apart = hn::Max(apart, hn::Sub(hn::Max(vr, vc), hn::Min(vr, vc)));  // the ULP distance where the signs agree
    unlike = hn::Or(unlike, hn::Xor(vr, vc));
    out.equal += static_cast<int64_t>(hn::CountTrue(u, hn::Eq(vr, vc)));
    out.zeros += static_cast<int64_t>(hn::CountTrue(u, hn::Eq(hn::And(vr, magnitude), hn::Zero(u))));
  }
  U lane[HWY_MAX_BYTES / sizeof(U)], any = 0;
  hn::StoreU(unlike, u, lane);
  for (int64_t k = 0; k < lanes; ++k) any = U(any | lane[k]);
  if (any > kMagnitude) {  // some pair lies on both sides of zero: rare, so worth a second look
    for (int64_t k = 0; k < i; ++k) out.max_ulp = std::max<uint64_t>(out.max_ulp, ulp_distance(r[k], c[k]));
  } else {
    hn::StoreU(apart, u, lane);
    out.max_ulp = *std::max_element(lane, lane + lanes);
  }
  for (; i < n; ++i) {
    out.max_ulp = std::max<uint64_t>(out.max_ulp, ulp_distance(r[i], c[i]));
    out.equal += r[i] == c[i];
    out.zeros += (r[i] & kMagnitude) == 0;
  }
  return out;
}

BlockBits bits8(const uint8_t* r, const uint8_t* c, int64_t n) { return bits(r, c, n); }
BlockBits bits16(const uint16_t* r, const uint16_t* c, int64_t n) { return bits(r, c, n); }
BlockBits bits32(const uint32_t* r, const uint32_t* c, int64_t n) { return bits(r, c, n); }
BlockBits bits64(const uint64_t* r, const uint64_t* c, int64_t n) { return bits(r, c, n); }

constexpr int64_t kWord = 64;  // comparisons whose results are the bits of one integer

/// Bit i is whether a[i] is `test`ed true, of kWord elements.
template <class Test>
HWY_INLINE uint64_t word_of(const double* a, Test&& test) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  uint64_t word = 0;
  for (int64_t k = 0; k < kWord; k += lanes) {
    uint8_t bits[8];  // of at most eight lanes
    hn::StoreMaskBits(D(), test(hn::LoadU(D(), a + k)), bits);
    word |= static_cast<uint64_t>(bits[0]) << k;
  }
  return word;
}

// One copy for each bit set, the first four whether set or not: a loop over four bits of 64, the usual number, would
// end at another count each time and be mispredicted. Compress would be shorter, but Highway 1.0's copies a table of 2
// KiB to the stack at every call (g++ 12): six times slower.
HWY_INLINE int64_t copy_of_word(const double* a, uint64_t word, double* out) {
  const int64_t all = std::popcount(word);
  for (int64_t k = 0; k < kBlockSpill; ++k, word &= word - 1) out[k] = a[std::countr_zero(word) & (kWord - 1)];
  for (int64_t k = kBlockSpill; word != 0; ++k, word &= word - 1) out[k] = a[std::countr_zero(word)];
  return all;
}

int64_t above(const double* a, int64_t n, double low, double* out) {
  const V bound = hn::Set(D(), low);
  int64_t i = 0, found = 0;
  for (; i + kWord <= n; i += kWord)
    found += copy_of_word(a + i, word_of(a + i, [&](V v) HWY_ATTR { return hn::Gt(v, bound); }), out + found);
  for (; i < n; ++i) {
    out[found] = a[i];
    found += a[i] > low;
  }
  return found;
}

BlockFound between(const double* a, int64_t n, const BlockInterval& k, double* inside) {
  const V low = hn::Set(D(), k.low), high = hn::Set(D(), k.high), tie = hn::Set(D(), k.tie);
  BlockFound all;
  int64_t i = 0;
  for (; i + kWord <= n; i += kWord) {
    const uint64_t over = word_of(a + i, [&](V v) HWY_ATTR { return hn::Gt(v, low); }),
                   tied = word_of(a + i, [&](V v) HWY_ATTR { return hn::Eq(v, tie); }),
                   under = word_of(a + i, [&](V v) HWY_ATTR { return hn::Lt(v, high); });
    all.above += std::popcount(over);
    all.tied += std::popcount(tied);
    all.inside += copy_of_word(a + i, over & under & ~tied, inside + all.inside);
  }
  for (; i < n; ++i) {
    const bool over = a[i] > k.low, tied = a[i] == k.tie;
    all.above += over;
    all.tied += tied;
    inside[all.inside] = a[i];
    all.inside += over && a[i] < k.high && !tied;
  }
  return all;
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(sums_fp64);
HWY_EXPORT(sums_fp32);
HWY_EXPORT(sums_bf16);
HWY_EXPORT(sums_fp16);
HWY_EXPORT(bits8);
HWY_EXPORT(bits16);
HWY_EXPORT(bits32);
HWY_EXPORT(bits64);
HWY_EXPORT(products);
HWY_EXPORT(above);
HWY_EXPORT(between);

BlockSums block_sums_fp64(const double* r, const double* c, int64_t n, double* abs_d) {
  return HWY_DYNAMIC_DISPATCH(sums_fp64)(r, c, n, abs_d);
}
BlockSums block_sums_fp32(const float* r, const float* c, int64_t n, double* abs_d) {
  return HWY_DYNAMIC_DISPATCH(sums_fp32)(r, c, n, abs_d);
}
BlockSums block_sums_bf16(const uint16_t* r, const uint16_t* c, int64_t n, double* abs_d) {
  return HWY_DYNAMIC_DISPATCH(sums_bf16)(r, c, n, abs_d);
}
BlockSums block_sums_fp16(const uint16_t* r, const uint16_t* c, int64_t n, double* abs_d) {
  return HWY_DYNAMIC_DISPATCH(sums_fp16)(r, c, n, abs_d);
}
BlockBits block_bits(const uint8_t* r, const uint8_t* c, int64_t n) { return HWY_DYNAMIC_DISPATCH(bits8)(r, c, n); }
BlockBits block_bits(const uint16_t* r, const uint16_t* c, int64_t n) { return HWY_DYNAMIC_DISPATCH(bits16)(r, c, n); }
BlockBits block_bits(const uint32_t* r, const uint32_t* c, int64_t n) { return HWY_DYNAMIC_DISPATCH(bits32)(r, c, n); }
BlockBits block_bits(const uint64_t* r, const uint64_t* c, int64_t n) { return HWY_DYNAMIC_DISPATCH(bits64)(r, c, n); }
BlockProducts block_products(const double* a, const double* b, const double* c, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(products)(a, b, c, n);
}
int64_t block_above(const double* a, int64_t n, double low, double* out) {
  return HWY_DYNAMIC_DISPATCH(above)(a, n, low, out);
}

BlockFound block_between(const double* a, int64_t n, const BlockInterval& interval, double* inside) {
  return HWY_DYNAMIC_DISPATCH(between)(a, n, interval, inside);
}

}  // namespace parity::kernels
#endif
