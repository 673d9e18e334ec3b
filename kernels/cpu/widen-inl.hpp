// Loads that widen to the type that is computed in, one row of overloads a stored type, and dot products of them.
// Included by kernels inside Highway's foreach_target, once per instruction set: no include guard of the usual kind.
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#if defined(PARITY_WIDEN_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PARITY_WIDEN_INL
#undef PARITY_WIDEN_INL
#else
#define PARITY_WIDEN_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Fp32 = hn::ScalableTag<float>;
using Fp64 = hn::ScalableTag<double>;

HWY_INLINE hn::Vec<Fp64> widened(Fp64 d, const double* p) { return hn::LoadU(d, p); }
HWY_INLINE hn::Vec<Fp32> widened(Fp32 d, const float* p) { return hn::LoadU(d, p); }
HWY_INLINE hn::Vec<Fp32> widened(Fp32 d, const uint16_t* p) {
  const hn::Rebind<uint32_t, Fp32> u32;
  const auto half = hn::LoadU(hn::Rebind<uint16_t, Fp32>(), p);
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(u32, half)));
}
HWY_INLINE hn::Vec<Fp32> widened(Fp32 d, const int8_t* p) {
  return hn::ConvertTo(d, hn::PromoteTo(hn::Rebind<int32_t, Fp32>(), hn::LoadU(hn::Rebind<int8_t, Fp32>(), p)));
}

HWY_INLINE double widened(double x) { return x; }
HWY_INLINE float widened(float x) { return x; }
HWY_INLINE float widened(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// To nearest, ties to even; NaN stays NaN.
HWY_INLINE void store_narrow(float value, uint16_t* to) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  *to = value != value ? uint16_t{0x7fc0} : static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
HWY_INLINE void store_narrow(float value, float* to) { *to = value; }
HWY_INLINE void store_narrow(double value, double* to) { *to = value; }
HWY_INLINE void store_narrow(Fp64 d, hn::Vec<Fp64> value, double* to) { hn::StoreU(value, d, to); }
HWY_INLINE void store_narrow(Fp32 d, hn::Vec<Fp32> value, float* to) { hn::StoreU(value, d, to); }
HWY_INLINE void store_narrow(Fp32, hn::Vec<Fp32> value, uint16_t* to) {
  const hn::RebindToUnsigned<Fp32> u32;
  const auto bits = hn::BitCast(u32, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(u32, 0x7fff))));
  const auto nan = hn::RebindMask(u32, hn::IsNaN(value));
  const auto half = hn::IfThenElse(nan, hn::Set(u32, 0x7fc0), rounded);
  const hn::Rebind<uint16_t, Fp32> u16;
  hn::StoreU(hn::DemoteTo(u16, hn::BitCast(hn::RebindToSigned<Fp32>(), half)), u16, to);
}

/// What a stored type is computed in.
template <class T>
struct Wide {
  using Number = float;
  using Tag = Fp32;
};
template <>
struct Wide<double> {
  using Number = double;
  using Tag = Fp64;
};

/// <x, w> of n elements, computed in what X is computed in.
template <class X, class W, class C = typename Wide<X>::Number>
HWY_INLINE C dot(const X* HWY_RESTRICT x, const W* HWY_RESTRICT w, int64_t n) {
  const typename Wide<X>::Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) s = hn::MulAdd(widened(d, x + i), widened(d, w + i), s);
  C out = hn::GetLane(hn::SumOfLanes(d, s));
  for (; i < n; ++i) out += widened(x[i]) * widened(w[i]);
  return out;
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
