// The kernel of mxfp4_gemv.hpp. Highway compiles this file once per instruction set.
#include "kernels/cpu/mxfp4_gemv.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/mxfp4_gemv.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/highway.h>

#include <cmath>
#include <vector>

#include "kernels/cpu/widen-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

constexpr int64_t kBlock = 32;

// Twice the values of e2m1, which makes them whole numbers.
HWY_ALIGN constexpr int8_t kTwice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// 16 bytes -> 32 whole numbers
HWY_INLINE void unpack(const uint8_t* HWY_RESTRICT bytes, int8_t* HWY_RESTRICT out) {
#if HWY_TARGET == HWY_SCALAR  // has vectors of one element
  for (int64_t i = 0; i < kBlock; ++i) out[i] = kTwice[i % 2 == 0 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4];
#else
  const hn::FixedTag<uint8_t, 16> d;
  const auto table = hn::BitCast(d, hn::Load(hn::FixedTag<int8_t, 16>(), kTwice));
  const auto both = hn::LoadU(d, bytes);
  const auto low = hn::TableLookupBytes(table, hn::And(both, hn::Set(d, 15)));
  const auto high = hn::TableLookupBytes(table, hn::ShiftRight<4>(both));
  auto* to = reinterpret_cast<uint8_t*>(out);
  hn::StoreU(hn::InterleaveLower(d, low, high), d, to);
  hn::StoreU(hn::InterleaveUpper(d, low, high), d, to + 16);
#endif
}

HWY_INLINE void scaled(const int8_t* HWY_RESTRICT in, float scale, float* HWY_RESTRICT out) {
  const Fp32 d;
  const auto factor = hn::Set(d, scale);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));  // a power of two, 16 at most here
  for (int64_t i = 0; i < kBlock; i += lanes) hn::StoreU(hn::Mul(widened(d, in + i), factor), d, out + i);
}
HWY_INLINE void scaled(const int8_t* HWY_RESTRICT in, double scale, double* HWY_RESTRICT out) {
  for (int64_t i = 0; i < kBlock; ++i) out[i] = in[i] * scale;
}

// One output's weights are widened once, for all rows: they stay in the nearest cache.
template <class X>
void packed_product(const Mxfp4Gemv<X>& g, int64_t begin, int64_t end) {
  using C = typename Wide<X>::Number;
  std::vector<C> weights(static_cast<size_t>(g.inputs));
  HWY_ALIGN int8_t whole[kBlock];
  for (int64_t o = begin; o < end; ++o) {
    for (int64_t b = 0; b < g.inputs / kBlock; ++b) {
      unpack(g.values + (o * g.inputs + b * kBlock) / 2, whole);
      scaled(whole, std::ldexp(C(0.5), g.scales[o * (g.inputs / kBlock) + b] - 127), weights.data() + b * kBlock);
    }
    for (int64_t row = 0; row < g.rows; ++row) {
      C sum = dot(g.x + row * g.inputs, weights.data(), g.inputs);
      if (g.bias) sum += widened(g.bias[o]);
      store_narrow(sum, g.y + row * g.outputs + o);
    }
  }
}

void mxfp4_fp64(const Mxfp4Gemv<double>& g, int64_t begin, int64_t end) { packed_product(g, begin, end); }
void mxfp4_fp32(const Mxfp4Gemv<float>& g, int64_t begin, int64_t end) { packed_product(g, begin, end); }
void mxfp4_bf16(const Mxfp4Gemv<uint16_t>& g, int64_t begin, int64_t end) { packed_product(g, begin, end); }

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(mxfp4_fp64);
HWY_EXPORT(mxfp4_fp32);
HWY_EXPORT(mxfp4_bf16);

void mxfp4_gemv(const Mxfp4Gemv<double>& g, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(mxfp4_fp64)(g, begin, end);
}
void mxfp4_gemv(const Mxfp4Gemv<float>& g, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(mxfp4_fp32)(g, begin, end);
}
void mxfp4_gemv(const Mxfp4Gemv<uint16_t>& g, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(mxfp4_bf16)(g, begin, end);
}

}  // namespace parity::kernels
#endif
