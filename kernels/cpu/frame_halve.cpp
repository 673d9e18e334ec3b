// The kernel of frame_halve.hpp. Highway compiles this file once per instruction set.
#include "kernels/cpu/frame_halve.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/frame_halve.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/highway.h>

#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR  // vectors of one lane have no neighbours
using I16 = hn::ScalableTag<int16_t>;
using U8 = hn::Repartition<uint8_t, I16>;
using U16 = hn::Repartition<uint16_t, I16>;
using I32 = hn::Repartition<int32_t, I16>;
using Half16 = hn::Rebind<int16_t, I32>;  // what I32 is demoted to

// Neighbours of one channel added, of two rows: as many sums as I16 has lanes.
HWY_INLINE hn::Vec<I16> four(hn::Vec<U8> upper, hn::Vec<U8> lower) {
  const U16 d;
  const auto low = hn::Set(d, 0xff), u = hn::BitCast(d, upper), l = hn::BitCast(d, lower);
  const auto sum =
      hn::Add(hn::Add(hn::And(u, low), hn::ShiftRight<8>(u)), hn::Add(hn::And(l, low), hn::ShiftRight<8>(l)));
  return hn::Sub(hn::BitCast(I16(), sum), hn::Set(I16(), 4 * 128));
}
HWY_INLINE hn::Vec<Half16> four(hn::Vec<I16> upper, hn::Vec<I16> lower) {
  const I32 d;
  const auto u = hn::BitCast(d, upper), l = hn::BitCast(d, lower);
  const auto even = hn::Add(hn::ShiftRight<16>(hn::ShiftLeft<16>(u)), hn::ShiftRight<16>(hn::ShiftLeft<16>(l)));
  return hn::DemoteTo(Half16(), hn::Add(even, hn::Add(hn::ShiftRight<16>(u), hn::ShiftRight<16>(l))));
}
#endif

template <int kChannels, class T>
void row(const T* upper, const T* lower, int n, int16_t* out) {
  constexpr bool kBytes = std::is_same_v<T, uint8_t>;
  int x = 0;
#if HWY_TARGET != HWY_SCALAR
  using In = std::conditional_t<kBytes, U8, I16>;
  using Out = std::conditional_t<kBytes, I16, Half16>;
  const int results = static_cast<int>(hn::Lanes(Out()));
  for (; x + results <= n; x += results) {
    const T *u = upper + 2 * x * kChannels, *l = lower + 2 * x * kChannels;
    if constexpr (kChannels == 1) {
      hn::StoreU(four(hn::LoadU(In(), u), hn::LoadU(In(), l)), Out(), out + x);
    } else {
      hn::Vec<In> a[3], b[3];
      hn::LoadInterleaved3(In(), u, a[0], a[1], a[2]);
      hn::LoadInterleaved3(In(), l, b[0], b[1], b[2]);
      hn::StoreInterleaved3(four(a[0], b[0]), four(a[1], b[1]), four(a[2], b[2]), Out(), out + 3 * x);
    }
  }
#endif
  for (; x < n; ++x)
    for (int k = 0; k < kChannels; ++k) {
      const int at = 2 * x * kChannels + k;
      const int sum = upper[at] + upper[at + kChannels] + lower[at] + lower[at + kChannels];
      out[x * kChannels + k] = static_cast<int16_t>(sum - (kBytes ? 4 * 128 : 0));
    }
}

template <class T>
void whole(const T* in, int width, int height, int channels, int16_t* out) {
  const int64_t stride = int64_t{width} * channels;
  const int n = width / 2;
  for (int y = 0; y < height / 2; ++y, in += 2 * stride, out += int64_t{n} * channels)
    channels == 3 ? row<3>(in, in + stride, n, out) : row<1>(in, in + stride, n, out);
}

void halve8(const uint8_t* in, int width, int height, int channels, int16_t* out) {
  whole(in, width, height, channels, out);
}
void halve16(const int16_t* in, int width, int height, int channels, int16_t* out) {
  whole(in, width, height, channels, out);
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(halve8);
HWY_EXPORT(halve16);

void halve(const uint8_t* in, int width, int height, int channels, int16_t* out) {
  HWY_DYNAMIC_DISPATCH(halve8)(in, width, height, channels, out);
}
void halve(const int16_t* in, int width, int height, int channels, int16_t* out) {
  HWY_DYNAMIC_DISPATCH(halve16)(in, width, height, channels, out);
}

}  // namespace parity::kernels
#endif
