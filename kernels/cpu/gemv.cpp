// The kernels of gemv.hpp for floating-point weights. Highway compiles this file once per instruction set.
#include "kernels/cpu/gemv.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemv.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/highway.h>

#include <vector>

#include "kernels/cpu/gemv_slabs-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

// x as the sums read it, all rows: bf16 in fp32, even places of two vectors before odd ones, because so a vector of
// 32-bit lanes takes its weights apart. `work` is its memory.
HWY_INLINE const float* placed(const Gemv<uint16_t, uint16_t>& g, std::vector<float>& work) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Fp32())), n = g.inputs, pairs = n / (2 * lanes) * (2 * lanes);
  work.resize(static_cast<size_t>(g.rows * n));
  for (int64_t row = 0; row < g.rows; ++row) {
    const uint16_t* HWY_RESTRICT x = g.x + row * n;
    float* HWY_RESTRICT to = work.data() + row * n;
    for (int64_t i = 0; i < pairs; i += 2 * lanes)
      for (int64_t k = 0; k < lanes; ++k)
        to[i + k] = widened(x[i + 2 * k]), to[i + lanes + k] = widened(x[i + 2 * k + 1]);
    for (int64_t i = pairs; i < n; ++i) to[i] = widened(x[i]);
  }
  return work.data();
}
template <class X, class W>
HWY_INLINE const X* placed(const Gemv<X, W>& g, std::vector<X>&) {
  return g.x;
}

// Two vectors of weights, into two sums.
template <class D, class W, class V>
HWY_INLINE void add_two(D d, V x0, V x1, const W* HWY_RESTRICT w, V& s0, V& s1) {
  s0 = hn::MulAdd(x0, widened(d, w), s0);
  s1 = hn::MulAdd(x1, widened(d, w + hn::Lanes(d)), s1);
}
HWY_INLINE void add_two(Fp32 d, hn::Vec<Fp32> x0, hn::Vec<Fp32> x1, const uint16_t* HWY_RESTRICT w, hn::Vec<Fp32>& s0,
                        hn::Vec<Fp32>& s1) {
#if HWY_TARGET == HWY_SCALAR  // has vectors of one element
  s0 = hn::MulAdd(x0, widened(d, w), s0);
  s1 = hn::MulAdd(x1, widened(d, w + 1), s1);
#else
  const auto both = hn::BitCast(hn::RebindToUnsigned<Fp32>(), hn::LoadU(hn::Repartition<uint16_t, Fp32>(), w));
  s0 = hn::MulAdd(x0, hn::BitCast(d, hn::ShiftLeft<16>(both)), s0);
  s1 = hn::MulAdd(x1, hn::BitCast(d, hn::And(both, hn::Set(hn::RebindToUnsigned<Fp32>(), 0xffff0000))), s1);
#endif
}

// What is left of fewer than two vectors, in fp64: one after the other in fp32, the 18 terms of a convolution lost 2.5
// roundoffs where oneDNN's for AVX2 loses .7.
template <class C, class W>
HWY_INLINE double rest(const C* HWY_RESTRICT x, const W* HWY_RESTRICT w, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * widened(w[i]);
  return sum;
}

// Of outputs `stride` weights apart: <x, w> each, the same digits for one and for four.
template <int64_t kOutputs, class C, class W, class D = typename Wide<C>::Tag>
HWY_INLINE void sums(const C* HWY_RESTRICT x, const W* HWY_RESTRICT w, int64_t n, int64_t stride, C* HWY_RESTRICT out) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto x0 = hn::LoadU(d, x + i), x1 = hn::LoadU(d, x + i + lanes);
    add_two(d, x0, x1, w + i, a0, b0);
    if constexpr (kOutputs == kStreams) {
      for (int64_t k = 0; k < kStreams; ++k) ask_ahead(w + k * stride + i, 2 * lanes * static_cast<int64_t>(sizeof(W)));
      add_two(d, x0, x1, w + stride + i, a1, b1);
      add_two(d, x0, x1, w + 2 * stride + i, a2, b2);
      add_two(d, x0, x1, w + 3 * stride + i, a3, b3);
    }
  }
  const auto total = [d](auto a, auto b) HWY_ATTR { return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b))); };
  out[0] = total(a0, b0);
  if constexpr (kOutputs == kStreams) out[1] = total(a1, b1), out[2] = total(a2, b2), out[3] = total(a3, b3);
  if (i < n)
    for (int64_t k = 0; k < kOutputs; ++k) out[k] = static_cast<C>(out[k] + rest(x + i, w + k * stride + i, n - i));
}

template <class X, class W>
struct FloatSums {
  using C = typename Wide<X>::Number;
  const Gemv<X, W>& g;
  const C* x;  // (rows, inputs)

  template <int64_t kOutputs>
  HWY_INLINE void of(int64_t row, int64_t output, int64_t apart, C* HWY_RESTRICT out) const {
    sums<kOutputs>(x + row * g.inputs, g.weight + output * g.inputs, g.inputs, apart * g.inputs, out);
  }
};

template <class X, class W>
void product(const Gemv<X, W>& g, int64_t begin, int64_t end) {
  std::vector<typename Wide<X>::Number> work;
  in_slabs<typename Wide<X>::Number>(g, begin, end, FloatSums<X, W>{g, placed(g, work)});
}

void gemv_fp64(const Gemv<double, double>& g, int64_t begin, int64_t end) { product(g, begin, end); }
void gemv_fp32(const Gemv<float, float>& g, int64_t begin, int64_t end) { product(g, begin, end); }
void gemv_bf16(const Gemv<uint16_t, uint16_t>& g, int64_t begin, int64_t end) { product(g, begin, end); }

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(gemv_fp64);
HWY_EXPORT(gemv_fp32);
HWY_EXPORT(gemv_bf16);

void gemv(const Gemv<double, double>& g, int64_t begin, int64_t end) { HWY_DYNAMIC_DISPATCH(gemv_fp64)(g, begin, end); }
void gemv(const Gemv<float, float>& g, int64_t begin, int64_t end) { HWY_DYNAMIC_DISPATCH(gemv_fp32)(g, begin, end); }
void gemv(const Gemv<uint16_t, uint16_t>& g, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(gemv_bf16)(g, begin, end);
}

}  // namespace parity::kernels
#endif
