// The kernel of gemv.hpp. Highway compiles this file once per instruction set.
#include "kernels/cpu/gemv.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemv.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/widen-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

// Four outputs side by side: four streams of weights that the hardware fetches ahead, four sums that do not wait for
// each other.
constexpr int64_t kStreams = 4, kTile = 32;

template <class X, class W, class C = typename Wide<X>::Number>
HWY_INLINE void four_sums(const X* HWY_RESTRICT x, const W* HWY_RESTRICT w, int64_t n, int64_t stride, C* out) {
  const typename Wide<X>::Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = widened(d, x + i);
    s0 = hn::MulAdd(v, widened(d, w + i), s0);
    s1 = hn::MulAdd(v, widened(d, w + stride + i), s1);
    s2 = hn::MulAdd(v, widened(d, w + 2 * stride + i), s2);
    s3 = hn::MulAdd(v, widened(d, w + 3 * stride + i), s3);
  }
  out[0] = hn::GetLane(hn::SumOfLanes(d, s0)), out[1] = hn::GetLane(hn::SumOfLanes(d, s1));
  out[2] = hn::GetLane(hn::SumOfLanes(d, s2)), out[3] = hn::GetLane(hn::SumOfLanes(d, s3));
  for (; i < n; ++i)
    for (int64_t k = 0; k < kStreams; ++k) out[k] += widened(x[i]) * widened(w[k * stride + i]);
}

template <bool kHalf, class D, class V>
HWY_INLINE V rounded(D d, V v) {
  if constexpr (kHalf) {  // NaN: the carry of the rounding runs into the sign bit at most, and all ones stay ones
    const hn::Rebind<uint32_t, D> u;
    const auto bits = hn::BitCast(u, v);
    const auto even = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1));
    const auto up = hn::Add(bits, hn::Add(even, hn::Set(u, 0x7fff)));
    const auto kept = hn::BitCast(d, hn::And(up, hn::Set(u, 0xffff0000)));
    return hn::IfThenElse(hn::Eq(v, v), kept, v);
  } else {
    return v;
  }
}

// The eight steps of transformers' NewGELUActivation.
template <bool kHalf, class C>
HWY_INLINE void gelu_steps(C* values) {
  const hn::ScalableTag<C> d;
  const auto round = [d](auto v) HWY_ATTR { return rounded<kHalf>(d, v); };
  for (int64_t i = 0; i < kTile; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto x = round(hn::Load(d, values + i));
    const auto half = round(hn::Mul(x, hn::Set(d, C(0.5))));
    auto y = round(hn::Mul(hn::Mul(x, x), x));
    y = round(hn::Mul(y, hn::Set(d, C(0.044715))));
    y = round(hn::Add(x, y));
    y = round(hn::Mul(y, hn::Set(d, C(0.79788456080286535588))));
    // Tanh is formed of exp(2 y) - 1: beyond 20 it is 1 to the last bit of a double, and the exponential overflows.
    const auto bound = hn::Min(hn::Max(y, hn::Set(d, C(-20))), hn::Set(d, C(20)));
    y = round(hn::IfThenElse(hn::Eq(y, y), hn::Tanh(d, bound), y));
    y = round(hn::Add(y, hn::Set(d, C(1))));
    hn::Store(hn::Mul(half, y), d, values + i);
  }
}

template <class X, class W>
void product(const Gemv<X, W>& g, int64_t begin, int64_t end) {
  using C = typename Wide<X>::Number;
  HWY_ALIGN C tile[kTile];
  for (int64_t first = begin; first < end; first += kTile) {
    const int64_t n = std::min(kTile, end - first);
    for (int64_t row = 0; row < g.rows; ++row) {  // the tile's weights stay in the cache for the next row
      const X* x = g.x + row * g.inputs;
      const W* w = g.weight + first * g.inputs;
      int64_t o = 0;
      for (; o + kStreams <= n; o += kStreams) four_sums(x, w + o * g.inputs, g.inputs, g.inputs, tile + o);
      for (; o < n; ++o) tile[o] = dot(x, w + o * g.inputs, g.inputs);
      std::fill(tile + n, tile + kTile, C(0));
      if (g.scale)
        for (o = 0; o < n; ++o) tile[o] *= static_cast<C>(g.scale[first + o]);
      if (g.bias)
        for (o = 0; o < n; ++o) tile[o] += widened(g.bias[first + o]);
      if (g.activation == Activation::gelu_new) gelu_steps<sizeof(X) == 2>(tile);
      for (o = 0; o < n; ++o) store_narrow(tile[o], g.y + row * g.outputs + first + o);
    }
  }
}

void gemv_fp64(const Gemv<double, double>& g, int64_t begin, int64_t end) { product(g, begin, end); }
void gemv_fp32(const Gemv<float, float>& g, int64_t begin, int64_t end) { product(g, begin, end); }
void gemv_bf16(const Gemv<uint16_t, uint16_t>& g, int64_t begin, int64_t end) { product(g, begin, end); }
void gemv_int8(const Gemv<float, int8_t>& g, int64_t begin, int64_t end) { product(g, begin, end); }

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(gemv_fp64);
HWY_EXPORT(gemv_fp32);
HWY_EXPORT(gemv_bf16);
HWY_EXPORT(gemv_int8);

void gemv(const Gemv<double, double>& g, int64_t begin, int64_t end) { HWY_DYNAMIC_DISPATCH(gemv_fp64)(g, begin, end); }
void gemv(const Gemv<float, float>& g, int64_t begin, int64_t end) { HWY_DYNAMIC_DISPATCH(gemv_fp32)(g, begin, end); }
void gemv(const Gemv<uint16_t, uint16_t>& g, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(gemv_bf16)(g, begin, end);
}
void gemv(const Gemv<float, int8_t>& g, int64_t begin, int64_t end) { HWY_DYNAMIC_DISPATCH(gemv_int8)(g, begin, end); }

}  // namespace parity::kernels
#endif
