// The kernel of gemv.hpp for INT8 weights, in whole numbers. Highway compiles this file once per instruction set.
//
// Each row of x becomes q = x 2^shift, to nearest, of 31 bits: what lies within a factor of 64 of the row's largest
// magnitude is exact, everything else at most 2^-30 of that magnitude off, a sixty-fourth of fp32's roundoff. q is two
// digits of 16 bits, q = high 2^16 + low, and products of digits and weights are added up in 32 bits. Nothing is
// rounded on the way, so that every instruction set, and every order of the sums, gives the same bits. Weights widened
// to fp32 instead took three instructions for a vector's worth; widened to 16 bits, half as many for the same number.
#include "kernels/cpu/gemv.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemv_int8.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/gemv_slabs-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

using Int32 = hn::ScalableTag<int32_t>;
using Whole = hn::Vec<Int32>;
using Int16 = hn::ScalableTag<int16_t>;

constexpr int kWidest = 29;       // exponent of the largest q, so that nothing below leaves 32 bits
constexpr int kPowerOfTwo = 126;  // the largest that is taken in fp32, of a shift that may be larger
constexpr int64_t kSteps = 128;   // of a sum: each adds two products below 2^22

// The vector at p, with zeros behind `left` elements.
template <class D, class T>
HWY_INLINE hn::Vec<D> padded(D d, const T* HWY_RESTRICT p, int64_t left) {
  if (left >= static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, p);
  HWY_ALIGN T some[HWY_MAX_BYTES / sizeof(T)] = {};
  for (int64_t i = 0; i < left; ++i) some[i] = p[i];
  return hn::Load(d, some);
}

HWY_INLINE double sum_of(Whole high, Whole low) {  // of high * 65536 + low, whole
#if HWY_TARGET == HWY_SCALAR
  return hn::GetLane(high) * 65536.0 + hn::GetLane(low);
#else
  const Fp64 d;
  const hn::Rebind<int32_t, Fp64> half;
  const auto wide = [=](Whole v) HWY_ATTR {
    return hn::Add(hn::PromoteTo(d, hn::LowerHalf(half, v)), hn::PromoteTo(d, hn::UpperHalf(half, v)));
  };
  return hn::GetLane(hn::SumOfLanes(d, hn::MulAdd(wide(high), hn::Set(d, 65536), wide(low))));
#endif
}

HWY_INLINE float largest(const float* HWY_RESTRICT x, int64_t n) {  // NaN if one is
  const Fp32 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto most = hn::Zero(d), nan = most;  // x * 0, added up
  for (int64_t i = 0; i < n; i += lanes) {
    const auto v = padded(d, x + i, n - i);
    most = hn::Max(most, hn::Abs(v)), nan = hn::MulAdd(v, hn::Zero(d), nan);
  }
  return hn::GetLane(hn::MaxOfLanes(d, most)) + hn::GetLane(hn::SumOfLanes(d, nan));
}

// Rows of x in whole numbers.
struct Rows {
  int64_t width;                                // the inputs in whole vectors, zeros at the end
  hwy::AlignedFreeUniquePtr<int16_t[]> digits;  // (rows, 2, width), the lower ones first
  std::vector<double> unit;                     // (rows): x = q * unit; NaN where a number is not finite

  int16_t* row(int64_t i) const { return digits.get() + i * 2 * width; }
};

HWY_INLINE void take_apart(const float* HWY_RESTRICT x, int64_t n, int64_t row, Rows& to) {
  const Fp32 d;
  const hn::Rebind<int16_t, Fp32> half;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const float most = largest(x, n);
  to.unit[static_cast<size_t>(row)] = std::nan("");
  if (!std::isfinite(most)) return;
  const int shift = most == 0 ? 0 : kWidest - std::ilogb(most), some = std::min(shift, kPowerOfTwo);
  to.unit[static_cast<size_t>(row)] = std::ldexp(1., -shift);
  const auto scale = hn::Set(d, std::ldexp(1.F, some)), rest = hn::Set(d, std::ldexp(1.F, shift - some));
  int16_t* at = to.row(row);
  for (int64_t i = 0; i < to.width; i += lanes) {
    const auto v = i < n ? padded(d, x + i, n - i) : hn::Zero(d);
    const Whole q = hn::NearestInt(hn::Mul(hn::Mul(v, scale), rest));
    const Whole low = hn::ShiftRight<16>(hn::ShiftLeft<16>(q));
    hn::StoreU(hn::DemoteTo(half, low), half, at + i);
    hn::StoreU(hn::DemoteTo(half, hn::ShiftRight<16>(hn::Sub(q, low))), half, at + to.width + i);
  }
}

HWY_INLINE Rows taken_apart(const Gemv<float, int8_t>& g) {
  const int64_t step = static_cast<int64_t>(hn::Lanes(Int16())), width = (g.inputs + step - 1) / step * step;
  Rows to{width, hwy::AllocateAligned<int16_t>(static_cast<size_t>(g.rows * 2 * width)),
          std::vector<double>(static_cast<size_t>(g.rows))};
  for (int64_t row = 0; row < g.rows; ++row) take_apart(g.x + row * g.inputs, g.inputs, row, to);
  return to;
}

// sum + the products of neighbours. VNNI adds as it multiplies. (Highway 1.0's target with VNNI assumes AVX-VNNI, which
// fewer processors have.)
template <bool kVnni>
HWY_INLINE Whole add_products(hn::Vec<Int16> a, hn::Vec<Int16> b, Whole sum) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kVnni) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
#endif
  Whole rest = hn::Zero(Int32());
  sum = hn::ReorderWidenMulAccumulate(Int32(), a, b, sum, rest);
  return hn::Add(sum, rest);
}

// out[k] += <q[i, end), w>, of outputs `apart` weights from each other, end at most kSteps vectors behind i.
template <bool kVnni, int kOutputs>
HWY_INLINE void add_steps(const Rows& rows, const int16_t* HWY_RESTRICT digits, const int8_t* HWY_RESTRICT w,
                          int64_t apart, int64_t i, int64_t end, double* HWY_RESTRICT out) {
  const Int16 d;
  const hn::Rebind<int8_t, Int16> bytes;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Whole high[kOutputs], low[kOutputs];
#pragma GCC unroll 4
  for (int o = 0; o < kOutputs; ++o) high[o] = low[o] = hn::Zero(Int32());
  const auto add = [&](int64_t left) HWY_ATTR {
    const auto x_low = hn::Load(d, digits + i), x_high = hn::Load(d, digits + rows.width + i);
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o) {
      const auto weights = hn::PromoteTo(d, padded(bytes, w + o * apart + i, left));
      low[o] = add_products<kVnni>(weights, x_low, low[o]);
      high[o] = add_products<kVnni>(weights, x_high, high[o]);
    }
  };
  for (; i + lanes <= end; i += lanes) {
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o) ask_ahead(w + o * apart + i, lanes);
    add(lanes);
  }
  if (i < end) add(end - i);
#pragma GCC unroll 4
  for (int o = 0; o < kOutputs; ++o) out[o] += sum_of(high[o], low[o]);
}

template <bool kVnni>
struct WholeSums {
  const Gemv<float, int8_t>& g;
  const Rows& rows;

  template <int64_t kOutputs>
  HWY_INLINE void of(int64_t row, int64_t output, int64_t apart, float* HWY_RESTRICT out) const {
    const double unit = rows.unit[static_cast<size_t>(row)];
    if (std::isnan(unit)) {
      for (int64_t o = 0; o < kOutputs; ++o) out[o] = plain(row, output + o * apart);
      return;
    }
    const int64_t block = kSteps * static_cast<int64_t>(hn::Lanes(Int16()));
    double total[kOutputs] = {};
    for (int64_t i = 0; i < g.inputs; i += block)
      add_steps<kVnni, kOutputs>(rows, rows.row(row), g.weight + output * g.inputs, apart * g.inputs, i,
                                 std::min(i + block, g.inputs), total);
    for (int64_t o = 0; o < kOutputs; ++o) out[o] = static_cast<float>(total[o] * unit * g.scale[output + o * apart]);
  }

  float plain(int64_t row, int64_t output) const {  // Inf and NaN go where they go in any other sum
    double sum = 0;
    for (int64_t i = 0; i < g.inputs; ++i)
      sum += static_cast<double>(g.x[row * g.inputs + i]) * g.weight[output * g.inputs + i];
    return static_cast<float>(sum * g.scale[output]);
  }
};

void gemv_int8(const Gemv<float, int8_t>& g, int64_t begin, int64_t end) {
  const Rows rows = taken_apart(g);
#if HWY_TARGET == HWY_AVX3
  static const bool has_vnni = __builtin_cpu_supports("avx512vnni");
  if (has_vnni) return in_slabs<float>(g, begin, end, WholeSums<true>{g, rows});
#endif
  in_slabs<float>(g, begin, end, WholeSums<false>{g, rows});
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(gemv_int8);

void gemv(const Gemv<float, int8_t>& g, int64_t begin, int64_t end) { HWY_DYNAMIC_DISPATCH(gemv_int8)(g, begin, end); }

}  // namespace parity::kernels
#endif
