// Pairs of 16-bit floats (r, c) as fp32, both with the sign of r taken off: |r|, and c turned with it. Included by
// kernels inside Highway's foreach_target, once per instruction set: no include guard of the usual kind.
#include <hwy/highway.h>

#include <cstdint>

#if defined(PARITY_TURNED_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PARITY_TURNED_INL
#undef PARITY_TURNED_INL
#else
#define PARITY_TURNED_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kTurned = 64;  // pairs at a time

using Fp32 = hn::ScalableTag<float>;
using Halves = hn::Rebind<uint16_t, Fp32>;
constexpr uint16_t kSign = 0x8000;

struct Bf16 {
  static HWY_INLINE hn::Vec<Fp32> widened(hn::Vec<Halves> v) {
    return hn::BitCast(Fp32(), hn::ShiftLeft<16>(hn::PromoteTo(hn::Rebind<uint32_t, Fp32>(), v)));
  }
};

struct Fp16 {
  static HWY_INLINE hn::Vec<Fp32> widened(hn::Vec<Halves> v) {
    return hn::PromoteTo(Fp32(), hn::BitCast(hn::Rebind<hwy::float16_t, Fp32>(), v));
  }
};

/// One word in its order.
template <class Format>
HWY_INLINE void turn_in_order(const uint16_t* r, const uint16_t* c, float* out_r, float* out_c) {
  const Halves u16;
  for (int64_t k = 0; k < kTurned; k += static_cast<int64_t>(hn::Lanes(u16))) {
    const auto vr = hn::LoadU(u16, r + k), vc = hn::LoadU(u16, c + k), sign = hn::And(vr, hn::Set(u16, kSign));
    hn::Store(Format::widened(hn::Xor(vr, sign)), Fp32(), out_r + k);
    hn::Store(Format::widened(hn::Xor(vc, sign)), Fp32(), out_c + k);
  }
}

template <class Format>
HWY_INLINE void turn_word(const uint16_t* r, const uint16_t* c, float* out_r, float* out_c) {
  turn_in_order<Format>(r, c, out_r, out_c);
}

#if HWY_TARGET != HWY_SCALAR
HWY_INLINE void store_even_and_odd(hn::Vec<hn::ScalableTag<uint16_t>> v, float* out) {
  const hn::ScalableTag<uint32_t> u32;
  const auto two = hn::BitCast(u32, v);
  hn::Store(hn::BitCast(Fp32(), hn::ShiftLeft<16>(two)), Fp32(), out);
  hn::Store(hn::BitCast(Fp32(), hn::And(two, hn::Set(u32, 0xffff0000))), Fp32(), out + hn::Lanes(Fp32()));
}

/// Even elements before odd ones: shifts do it, where keeping the order takes shuffles, for which Intel's CPUs have one
/// port.
template <>
HWY_INLINE void turn_word<Bf16>(const uint16_t* r, const uint16_t* c, float* out_r, float* out_c) {
  const hn::ScalableTag<uint16_t> u16;
  for (int64_t k = 0; k < kTurned; k += static_cast<int64_t>(hn::Lanes(u16))) {
    const auto vr = hn::LoadU(u16, r + k), vc = hn::LoadU(u16, c + k), sign = hn::And(vr, hn::Set(u16, kSign));
    store_even_and_odd(hn::Xor(vr, sign), out_r + k);
    store_even_and_odd(hn::Xor(vc, sign), out_c + k);
  }
}
#endif

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
