// The kernel of norm_rope.hpp. Highway compiles this file once per instruction set.
#include "kernels/cpu/norm_rope.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm_rope.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/highway.h>

#include <cmath>

#include "kernels/cpu/widen-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

template <class T, class C = typename Wide<T>::Number>
HWY_INLINE C inverse_rms(const NormRope<T>& r) {
  const typename Wide<T>::Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= r.dim; i += lanes) {
    const auto x = widened(d, r.x + i);
    s = hn::MulAdd(x, x, s);
  }
  C square = hn::GetLane(hn::SumOfLanes(d, s));
  for (; i < r.dim; ++i) square += widened(r.x[i]) * widened(r.x[i]);
  return 1 / std::sqrt(square / static_cast<C>(r.dim) + static_cast<C>(r.eps));
}

// The normed element i, in the type that is computed in.
template <class T, class C>
HWY_INLINE C normed(const NormRope<T>& r, C scale, int64_t i) {
  return r.weight ? widened(r.x[i]) * scale * widened(r.weight[i]) : widened(r.x[i]);
}

// Element by element: compilers vectorise this, and a head has 64.
template <class T>
void row(const NormRope<T>& r) {
  using C = typename Wide<T>::Number;
  const C scale = r.weight ? inverse_rms(r) : C(1);
  if (!r.cos) {
    for (int64_t i = 0; i < r.dim; ++i) store_narrow(normed(r, scale, i), r.y + i);
    return;
  }
  const int64_t half = r.dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const C a = normed(r, scale, i), b = normed(r, scale, half + i), c = widened(r.cos[i]), s = widened(r.sin[i]);
    store_narrow(a * c - b * s, r.y + i);
    store_narrow(b * c + a * s, r.y + half + i);
  }
}

void row_fp64(const NormRope<double>& r) { row(r); }
void row_fp32(const NormRope<float>& r) { row(r); }
void row_bf16(const NormRope<uint16_t>& r) { row(r); }

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(row_fp64);
HWY_EXPORT(row_fp32);
HWY_EXPORT(row_bf16);

void norm_rope(const NormRope<double>& r) { HWY_DYNAMIC_DISPATCH(row_fp64)(r); }
void norm_rope(const NormRope<float>& r) { HWY_DYNAMIC_DISPATCH(row_fp32)(r); }
void norm_rope(const NormRope<uint16_t>& r) { HWY_DYNAMIC_DISPATCH(row_bf16)(r); }

}  // namespace parity::kernels
#endif
