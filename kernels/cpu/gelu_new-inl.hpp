// The eight steps of transformers' NewGELUActivation on a vector.
// Included by kernels inside Highway's foreach_target, once per instruction set: no include guard of the usual kind.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#if defined(PARITY_GELU_NEW_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PARITY_GELU_NEW_INL
#undef PARITY_GELU_NEW_INL
#else
#define PARITY_GELU_NEW_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

/// `kHalf`: each step is rounded to bf16, the last one excepted, which rounds where it is stored.
template <bool kHalf, class D>
HWY_INLINE hn::Vec<D> gelu_new_of(D d, hn::Vec<D> given) {
  using C = hn::TFromD<D>;
  const auto round = [d](auto v) HWY_ATTR { return rounded<kHalf>(d, v); };
  const auto x = round(given), half = round(hn::Mul(x, hn::Set(d, C(0.5))));
  auto y = round(hn::Mul(round(hn::Mul(x, x)), x));  // LibTorch's bf16 power rounds the square, too (2.13, any CPU)
  y = round(hn::Mul(y, hn::Set(d, C(0.044715))));
  y = round(hn::Add(x, y));
  y = round(hn::Mul(y, hn::Set(d, C(0.79788456080286535588))));
  // Tanh is formed of exp(2 y) - 1: beyond 20 it is 1 to the last bit of a double, and the exponential overflows.
  const auto bound = hn::Min(hn::Max(y, hn::Set(d, C(-20))), hn::Set(d, C(20)));
  y = round(hn::IfThenElse(hn::Eq(y, y), hn::Tanh(d, bound), y));
  y = round(hn::Add(y, hn::Set(d, C(1))));
  return hn::Mul(half, y);
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
