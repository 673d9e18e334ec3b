// The kernels of row_passes.hpp. Highway compiles this file once per instruction set.
#include "kernels/cpu/row_passes.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_passes.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>

#include "kernels/cpu/gelu_new-inl.hpp"
#include "kernels/cpu/widen-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

template <class D>
int64_t lanes_of(D d) {
  return static_cast<int64_t>(hn::Lanes(d));
}

// Neighbours change places; a vector of one number has none, and is not used for turns.
#if HWY_TARGET == HWY_SCALAR
template <class V>
HWY_INLINE V swapped(V x) {
  return x;
}
#else
HWY_INLINE hn::Vec<Fp32> swapped(hn::Vec<Fp32> x) { return hn::Shuffle2301(x); }
HWY_INLINE hn::Vec<Fp64> swapped(hn::Vec<Fp64> x) { return hn::Shuffle01(x); }
#endif

template <class T>
void norm_affine(const NormAffine<T>& r) {
  using C = RowNumber<T>;
  const typename Wide<T>::Tag d;
  const int64_t lanes = lanes_of(d), whole = r.dim / lanes * lanes;
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < whole; i += lanes) sum = hn::Add(sum, widened(d, r.x + i));
  C mean = hn::GetLane(hn::SumOfLanes(d, sum));
  for (int64_t i = whole; i < r.dim; ++i) mean += widened(r.x[i]);
  mean /= static_cast<C>(r.dim);
  const auto middle = hn::Set(d, mean);
  auto squares = hn::Zero(d);
  for (int64_t i = 0; i < whole; i += lanes) {
    const auto off = hn::Sub(widened(d, r.x + i), middle);
    squares = hn::MulAdd(off, off, squares);
  }
  C square = hn::GetLane(hn::SumOfLanes(d, squares));
  for (int64_t i = whole; i < r.dim; ++i) square += (widened(r.x[i]) - mean) * (widened(r.x[i]) - mean);
  const C scale = 1 / std::sqrt(square / static_cast<C>(r.dim) + static_cast<C>(r.eps));
  const auto scales = hn::Set(d, scale);
  for (int64_t i = 0; i < whole; i += lanes) {
    const auto unit = hn::Mul(hn::Sub(widened(d, r.x + i), middle), scales);
    store_narrow(d, hn::MulAdd(unit, hn::LoadU(d, r.gain + i), hn::LoadU(d, r.shift + i)), r.y + i);
  }
  for (int64_t i = whole; i < r.dim; ++i)
    store_narrow((widened(r.x[i]) - mean) * scale * r.gain[i] + r.shift[i], r.y + i);
}

template <class T>
RowNumber<T> inverse_rms(const NormTurn<T>& r) {
  using C = RowNumber<T>;
  const typename Wide<T>::Tag d;
  const int64_t lanes = lanes_of(d), whole = r.dim / lanes * lanes;
  auto squares = hn::Zero(d);
  for (int64_t i = 0; i < whole; i += lanes) {
    const auto x = widened(d, r.x + i);
    squares = hn::MulAdd(x, x, squares);
  }
  C square = hn::GetLane(hn::SumOfLanes(d, squares));
  for (int64_t i = whole; i < r.dim; ++i) square += widened(r.x[i]) * widened(r.x[i]);
  return 1 / std::sqrt(square / static_cast<C>(r.dim) + static_cast<C>(r.eps));
}

// One head of y, normed already.
template <class T>
void turn(const NormTurn<T>& r, T* y) {
  const typename Wide<T>::Tag d;
  const int64_t lanes = lanes_of(d), whole = lanes > 1 ? r.head / lanes * lanes : 0;
  for (int64_t i = 0; i < whole; i += lanes) {
    const auto x = widened(d, y + i), cross = hn::Mul(swapped(x), hn::LoadU(d, r.sin + i));
    store_narrow(d, hn::MulAdd(x, hn::LoadU(d, r.cos + i), hn::OddEven(cross, hn::Neg(cross))), y + i);
  }
  for (int64_t i = whole; i < r.head; i += 2) {
    const auto a = widened(y[i]), b = widened(y[i + 1]);
    store_narrow(a * r.cos[i] - b * r.sin[i], y + i);
    store_narrow(b * r.cos[i + 1] + a * r.sin[i + 1], y + i + 1);
  }
}

template <class T>
void norm_turn(const NormTurn<T>& r) {
  const typename Wide<T>::Tag d;
  const int64_t lanes = lanes_of(d), whole = r.dim / lanes * lanes;
  const RowNumber<T> scale = inverse_rms(r);
  const auto scales = hn::Set(d, scale);
  for (int64_t i = 0; i < whole; i += lanes)
    store_narrow(d, hn::Mul(hn::Mul(widened(d, r.x + i), scales), hn::LoadU(d, r.weight + i)), r.y + i);
  for (int64_t i = whole; i < r.dim; ++i) store_narrow(widened(r.x[i]) * scale * r.weight[i], r.y + i);
  if (!r.cos) return;
  for (int64_t h = 0; h < r.dim; h += r.head) turn(r, r.y + h);
}

template <class T>
void gate_add(const GateAdd<T>& r) {
  const typename Wide<T>::Tag d;
  const int64_t lanes = lanes_of(d), whole = r.dim / lanes * lanes;
  for (int64_t i = 0; i < whole; i += lanes)
    store_narrow(d, hn::MulAdd(widened(d, r.y + i), hn::LoadU(d, r.gate + i), widened(d, r.x + i)), r.out + i);
  for (int64_t i = whole; i < r.dim; ++i) store_narrow(widened(r.x[i]) + widened(r.y[i]) * r.gate[i], r.out + i);
}

template <class D>
HWY_INLINE hn::Vec<D> gelu_tanh_of(D d, hn::Vec<D> x) {
  constexpr double kTwice = -1.5957691216057308;  // -2 sqrt(2 / pi)
  constexpr double kMost = 88;                    // e^88 is finite, and x / e^88 nothing beside any result
  using C = hn::TFromD<D>;
  const auto cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), hn::Set(d, static_cast<C>(.044715))), x, x);
  const auto exponent = hn::Min(hn::Mul(cubic, hn::Set(d, static_cast<C>(kTwice))), hn::Set(d, static_cast<C>(kMost)));
  return hn::Div(x, hn::Add(hn::Set(d, C(1)), hn::Exp(d, exponent)));
}

// y = of(d, x), a vector at a time; what is left one by one.
template <class Row, class Of>
void each(const Row& r, const Of& of) {
  const typename Wide<std::remove_pointer_t<decltype(r.y)>>::Tag d;
  const int64_t lanes = lanes_of(d), whole = r.n / lanes * lanes;
  for (int64_t i = 0; i < whole; i += lanes) store_narrow(d, of(d, widened(d, r.x + i)), r.y + i);
  const hn::CappedTag<hn::TFromD<decltype(d)>, 1> one;
  for (int64_t i = whole; i < r.n; ++i) store_narrow(hn::GetLane(of(one, hn::Set(one, widened(r.x[i])))), r.y + i);
}

template <class T>
void gelu_tanh(const GeluTanh<T>& r) {
  each(r, [](auto d, auto x) HWY_ATTR { return gelu_tanh_of(d, x); });
}

template <class T>
void gelu_new(const GeluNew<T>& r) {
  each(r, [](auto d, auto x) HWY_ATTR { return gelu_new_of<sizeof(T) == 2>(d, x); });
}

#define PARITY_ROW_PASS(T, name)                                      \
  void norm_affine_##name(const NormAffine<T>& r) { norm_affine(r); } \
  void norm_turn_##name(const NormTurn<T>& r) { norm_turn(r); }       \
  void gate_add_##name(const GateAdd<T>& r) { gate_add(r); }          \
  void gelu_tanh_##name(const GeluTanh<T>& r) { gelu_tanh(r); }       \
  void gelu_new_##name(const GeluNew<T>& r) { gelu_new(r); }
PARITY_ROW_PASS(double, fp64)
PARITY_ROW_PASS(float, fp32)
PARITY_ROW_PASS(uint16_t, bf16)
#undef PARITY_ROW_PASS

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

#define PARITY_ROW_PASS(T, name)                                                         \
  HWY_EXPORT(norm_affine_##name);                                                        \
  HWY_EXPORT(norm_turn_##name);                                                          \
  HWY_EXPORT(gate_add_##name);                                                           \
  HWY_EXPORT(gelu_tanh_##name);                                                          \
  HWY_EXPORT(gelu_new_##name);                                                           \
  void row_pass(const NormAffine<T>& r) { HWY_DYNAMIC_DISPATCH(norm_affine_##name)(r); } \
  void row_pass(const NormTurn<T>& r) { HWY_DYNAMIC_DISPATCH(norm_turn_##name)(r); }     \
  void row_pass(const GateAdd<T>& r) { HWY_DYNAMIC_DISPATCH(gate_add_##name)(r); }       \
  void row_pass(const GeluTanh<T>& r) { HWY_DYNAMIC_DISPATCH(gelu_tanh_##name)(r); }     \
  void row_pass(const GeluNew<T>& r) { HWY_DYNAMIC_DISPATCH(gelu_new_##name)(r); }
PARITY_ROW_PASS(double, fp64)
PARITY_ROW_PASS(float, fp32)
PARITY_ROW_PASS(uint16_t, bf16)
#undef PARITY_ROW_PASS

}  // namespace parity::kernels
#endif
