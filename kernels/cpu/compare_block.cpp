// The kernels of compare_block.hpp. Highway compiles this file once per instruction set (foreach_target.h includes it
// again).
#include "kernels/cpu/compare_block.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/compare_block.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

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

struct Accumulator {
  V max_d, sum_d, sum_dd, sum_r, sum_rr, sum_cc, sum_rc, sum_dr;

  // Written out: g++ gives an implicit constructor no target attribute and then cannot inline into it.
  HWY_INLINE Accumulator() { max_d = sum_d = sum_dd = sum_r = sum_rr = sum_cc = sum_rc = sum_dr = hn::Zero(D()); }

  HWY_INLINE void add(V r, V c, V d, double* abs_d) {
    const V magnitude = hn::Abs(d);
    hn::StoreU(magnitude, D(), abs_d);
    max_d = hn::Max(max_d, magnitude);
    sum_d = hn::Add(sum_d, magnitude);
    sum_dd = hn::MulAdd(d, d, sum_dd);
    sum_r = hn::Add(sum_r, hn::Abs(r));
    sum_rr = hn::MulAdd(r, r, sum_rr);
    sum_cc = hn::MulAdd(c, c, sum_cc);
    sum_rc = hn::MulAdd(r, c, sum_rc);
    sum_dr = hn::MulAdd(d, r, sum_dr);
  }

  static HWY_INLINE double sum(V v) { return hn::GetLane(hn::SumOfLanes(D(), v)); }

  HWY_INLINE BlockSums total() const {
    return {hn::GetLane(hn::MaxOfLanes(D(), max_d)),
            sum(sum_d),
            sum(sum_dd),
            sum(sum_r),
            sum(sum_rr),
            sum(sum_cc),
            sum(sum_rc),
            sum(sum_dr)};
  }
};

template <class Load>
BlockSums sums(const typename Load::Element* r, const typename Load::Element* c, int64_t n, double* abs_d) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  Accumulator acc;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V vr = Load::vector(r + i), vc = Load::vector(c + i);
    acc.add(vr, vc, hn::Sub(vc, vr), abs_d + i);
  }
  if (i < n) {  // the rest, padded with pairs of zeros: they add nothing to a sum or a maximum
    HWY_ALIGN typename Load::Element rest_r[HWY_MAX_BYTES / 8] = {}, rest_c[HWY_MAX_BYTES / 8] = {};
    HWY_ALIGN double rest_d[HWY_MAX_BYTES / 8];
    std::copy(r + i, r + n, rest_r);
    std::copy(c + i, c + n, rest_c);
    const V vr = Load::vector(rest_r), vc = Load::vector(rest_c);
    acc.add(vr, vc, hn::Sub(vc, vr), rest_d);
    std::copy(rest_d, rest_d + (n - i), abs_d + i);
  }
  return acc.total();
}

BlockSums sums_fp32(const float* r, const float* c, int64_t n, double* abs_d) { return sums<LoadFp32>(r, c, n, abs_d); }
BlockSums sums_bf16(const uint16_t* r, const uint16_t* c, int64_t n, double* abs_d) {
  return sums<LoadBf16>(r, c, n, abs_d);
}
BlockSums sums_fp16(const uint16_t* r, const uint16_t* c, int64_t n, double* abs_d) {
  return sums<LoadFp16>(r, c, n, abs_d);
}

BlockSums sums_fp64(const double* r, const double* c, const double* d, int64_t n, double* abs_d) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  Accumulator acc;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    acc.add(hn::LoadU(D(), r + i), hn::LoadU(D(), c + i), hn::LoadU(D(), d + i), abs_d + i);
  if (i < n) {
    HWY_ALIGN double rest[4][HWY_MAX_BYTES / 8] = {};
    std::copy(r + i, r + n, rest[0]);
    std::copy(c + i, c + n, rest[1]);
    std::copy(d + i, d + n, rest[2]);
    acc.add(hn::Load(D(), rest[0]), hn::Load(D(), rest[1]), hn::Load(D(), rest[2]), rest[3]);
    std::copy(rest[3], rest[3] + (n - i), abs_d + i);
  }
  return acc.total();
}

/// One pair; also what the vector loop below does to a lane.
template <class U>
void add_bits(U r, U c, U infinity, BlockBits& out) {
  constexpr U kSign = U(U(1) << (8 * sizeof(U) - 1));
  const U mr = U(r & ~kSign), mc = U(c & ~kSign);
  // Magnitudes on one side of zero are mr and mc; on different sides they add up.
  const bool same_side = ((r ^ c) & kSign) == 0;
  const U ulp = same_side ? U(std::max(mr, mc) - std::min(mr, mc)) : U(mr + mc);
  out.max_ulp = std::max<uint64_t>(out.max_ulp, ulp);
  out.equal += r == c;
  out.zeros += mr == 0;
  out.special |= mr >= infinity || mc >= infinity;
}

/// Sum of the lanes of a counter that went down by one for every hit.
template <class U, class T, class W>
int64_t hits(T tag, W counter) {
  HWY_ALIGN U lane[HWY_MAX_BYTES / sizeof(U)];
  hn::Store(counter, tag, lane);
  int64_t total = 0;
  for (size_t i = 0; i < hn::Lanes(tag); ++i) total += U(U(0) - lane[i]);
  return total;
}

template <class U>
BlockBits bits(const U* r, const U* c, int64_t n, U infinity) {
  constexpr U kSign = U(U(1) << (8 * sizeof(U) - 1));
  const hn::ScalableTag<U> u;
  const hn::RebindToSigned<decltype(u)> s;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(u));
  const auto magnitude_bits = hn::Set(u, U(~kSign));
  auto ulp = hn::Zero(u), largest = hn::Zero(u), equal = hn::Zero(u), zeros = hn::Zero(u);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {  // at most kBlock / 16 rounds: an 8-bit counter cannot overflow
    const auto vr = hn::LoadU(u, r + i), vc = hn::LoadU(u, c + i);
    const auto mr = hn::And(vr, magnitude_bits), mc = hn::And(vc, magnitude_bits);
    const auto sr = hn::BroadcastSignBit(hn::BitCast(s, vr)), sc = hn::BroadcastSignBit(hn::BitCast(s, vc));
    const auto ordered_r = hn::Sub(hn::Xor(hn::BitCast(s, mr), sr), sr);
    const auto ordered_c = hn::Sub(hn::Xor(hn::BitCast(s, mc), sc), sc);
    const auto apart = hn::Sub(hn::Max(ordered_r, ordered_c), hn::Min(ordered_r, ordered_c));  // wraps into U, exactly
    ulp = hn::Max(ulp, hn::BitCast(u, apart));
    largest = hn::Max(largest, hn::Max(mr, mc));
    equal = hn::Add(equal, hn::VecFromMask(u, hn::Eq(vr, vc)));
    zeros = hn::Add(zeros, hn::VecFromMask(u, hn::Eq(mr, hn::Zero(u))));
  }
  BlockBits out;
  HWY_ALIGN U lane[HWY_MAX_BYTES / sizeof(U)];
  hn::Store(ulp, u, lane);
  out.max_ulp = *std::max_element(lane, lane + lanes);
  hn::Store(largest, u, lane);
  out.special = *std::max_element(lane, lane + lanes) >= infinity;
  out.equal = hits<U>(u, equal);
  out.zeros = hits<U>(u, zeros);
  for (; i < n; ++i) add_bits(r[i], c[i], infinity, out);
  return out;
}

BlockBits bits8(const uint8_t* r, const uint8_t* c, int64_t n, uint8_t infinity) { return bits(r, c, n, infinity); }
BlockBits bits16(const uint16_t* r, const uint16_t* c, int64_t n, uint16_t infinity) { return bits(r, c, n, infinity); }
BlockBits bits32(const uint32_t* r, const uint32_t* c, int64_t n, uint32_t infinity) { return bits(r, c, n, infinity); }
BlockBits bits64(const uint64_t* r, const uint64_t* c, int64_t n, uint64_t infinity) { return bits(r, c, n, infinity); }

int64_t collect(const double* a, int64_t n, double low, double* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  const V limit = hn::Set(D(), low);
  int64_t i = 0, found = 0;
  for (; i + lanes <= n; i += lanes) {
    const V v = hn::LoadU(D(), a + i);
    const auto above = hn::Gt(v, limit);
    hn::StoreU(hn::Compress(v, above), D(), out + found);  // a compressing store to memory is microcoded on Zen 4
    found += static_cast<int64_t>(hn::CountTrue(D(), above));
  }
  for (; i < n; ++i)
    if (a[i] > low) out[found++] = a[i];
  return found;
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(sums_fp32);
HWY_EXPORT(sums_bf16);
HWY_EXPORT(sums_fp16);
HWY_EXPORT(sums_fp64);
HWY_EXPORT(bits8);
HWY_EXPORT(bits16);
HWY_EXPORT(bits32);
HWY_EXPORT(bits64);
HWY_EXPORT(collect);

BlockSums block_sums_fp32(const float* r, const float* c, int64_t n, double* abs_d) {
  return HWY_DYNAMIC_DISPATCH(sums_fp32)(r, c, n, abs_d);
}
BlockSums block_sums_bf16(const uint16_t* r, const uint16_t* c, int64_t n, double* abs_d) {
  return HWY_DYNAMIC_DISPATCH(sums_bf16)(r, c, n, abs_d);
}
BlockSums block_sums_fp16(const uint16_t* r, const uint16_t* c, int64_t n, double* abs_d) {
  return HWY_DYNAMIC_DISPATCH(sums_fp16)(r, c, n, abs_d);
}
BlockSums block_sums_fp64(const double* r, const double* c, const double* d, int64_t n, double* abs_d) {
  return HWY_DYNAMIC_DISPATCH(sums_fp64)(r, c, d, n, abs_d);
}
BlockBits block_bits(const uint8_t* r, const uint8_t* c, int64_t n, uint8_t infinity) {
  return HWY_DYNAMIC_DISPATCH(bits8)(r, c, n, infinity);
}
BlockBits block_bits(const uint16_t* r, const uint16_t* c, int64_t n, uint16_t infinity) {
  return HWY_DYNAMIC_DISPATCH(bits16)(r, c, n, infinity);
}
BlockBits block_bits(const uint32_t* r, const uint32_t* c, int64_t n, uint32_t infinity) {
  return HWY_DYNAMIC_DISPATCH(bits32)(r, c, n, infinity);
}
BlockBits block_bits(const uint64_t* r, const uint64_t* c, int64_t n, uint64_t infinity) {
  return HWY_DYNAMIC_DISPATCH(bits64)(r, c, n, infinity);
}
int64_t block_collect(const double* a, int64_t n, double low, double* out) {
  return HWY_DYNAMIC_DISPATCH(collect)(a, n, low, out);
}

}  // namespace parity::kernels
#endif
