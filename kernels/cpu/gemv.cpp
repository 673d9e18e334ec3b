// The kernel of gemv.hpp. Highway compiles this file once per instruction set.
#include "kernels/cpu/gemv.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemv.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu/gelu_new-inl.hpp"
#include "kernels/cpu/widen-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

// Four outputs at a time, a quarter of a slab apart: four long streams of weights that the hardware fetches ahead (two
// cores of an Emerald Rapids read 34 GB/s in four streams each, 28 in one), eight sums that do not wait for each other.
constexpr int64_t kStreams = 4, kSlab = 128, kRowsAtOnce = 8;
constexpr int64_t kAhead =
    1024;  // bytes fetched ahead; more of narrow weights arrives: bf16 30 GB/s for 25, INT8 26 for 23

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
      for (int64_t k = 0; k < kStreams; ++k)
        hwy::Prefetch(w + k * stride + i + kAhead / static_cast<int64_t>(sizeof(W)));
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

template <bool kHalf, class C>
HWY_INLINE void gelu_steps(C* values, int64_t n) {  // whole vectors
  const hn::ScalableTag<C> d;
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::Store(gelu_new_of<kHalf>(d, hn::Load(d, values + i)), d, values + i);
}

// Outputs [first, first + n) of `rows` rows from `row` on, n <= kSlab. The weights of four outputs stay in the nearest
// cache for all rows.
template <class X, class W, class C>
HWY_INLINE void slab_sums(const Gemv<X, W>& g, const C* x, int64_t first, int64_t n, int64_t rows, C* out) {
  const int64_t quarter = n / kStreams;
  const W* weight = g.weight + first * g.inputs;
  HWY_ALIGN C four[kStreams];
  for (int64_t o = 0; o < quarter; ++o)
    for (int64_t r = 0; r < rows; ++r) {
      sums<kStreams>(x + r * g.inputs, weight + o * g.inputs, g.inputs, quarter * g.inputs, four);
      for (int64_t k = 0; k < kStreams; ++k) out[r * kSlab + k * quarter + o] = four[k];
    }
  for (int64_t o = quarter * kStreams; o < n; ++o)
    for (int64_t r = 0; r < rows; ++r)
      sums<1>(x + r * g.inputs, weight + o * g.inputs, g.inputs, 0, out + r * kSlab + o);
}

template <class X, class W, class C>
HWY_INLINE void finish(const Gemv<X, W>& g, int64_t row, int64_t first, int64_t n, C* tile) {
  std::fill(tile + n, tile + kSlab, C(0));
  if (g.scale)
    for (int64_t o = 0; o < n; ++o) tile[o] *= static_cast<C>(g.scale[first + o]);
  if (g.bias)
    for (int64_t o = 0; o < n; ++o) tile[o] += widened(g.bias[first + o]);
  if (g.activation == Activation::gelu_new) gelu_steps<sizeof(X) == 2>(tile, n);
  X* y = g.y + row * g.outputs + first;
  for (int64_t o = 0; o < n; ++o) store_narrow(tile[o], y + o);
}

template <class X, class W>
void product(const Gemv<X, W>& g, int64_t begin, int64_t end) {
  using C = typename Wide<X>::Number;
  HWY_ALIGN C tile[kRowsAtOnce * kSlab];
  std::vector<C> work;
  const C* x = placed(g, work);
  for (int64_t first = begin; first < end; first += kSlab) {
    const int64_t n = std::min(kSlab, end - first);
    for (int64_t row = 0; row < g.rows; row += kRowsAtOnce) {
      const int64_t rows = std::min(kRowsAtOnce, g.rows - row);
      slab_sums(g, x + row * g.inputs, first, n, rows, tile);
      for (int64_t r = 0; r < rows; ++r) finish(g, row + r, first, n, tile + r * kSlab);
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
