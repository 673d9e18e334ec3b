// The kernel of mxfp4_gemv.hpp. Highway compiles this file once per instruction set.
#include "kernels/cpu/mxfp4_gemv.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/mxfp4_gemv.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/widen-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

constexpr int64_t kBlock = 32;
// Products side by side: four outputs of one row, or one output of four rows.
constexpr int kSide = 4;
constexpr int64_t kAhead = 1024;  // bytes fetched ahead

// What is read at once of one output's weights, and the scales of the blocks in it.
struct Group {
  const uint8_t* bytes;
  const float* scales;
};

// Vectors of 16 floats hold all values of e2m1, so that a lane's four bits are its place in them; shorter ones look up
// bytes, and widen them.
#undef PARITY_LANES_LOOK_UP
#if HWY_CAP_GE512 && HWY_ARCH_X86
#define PARITY_LANES_LOOK_UP 1
#else
#define PARITY_LANES_LOOK_UP 0
#endif

#if PARITY_LANES_LOOK_UP
constexpr int64_t kGroup = 128;  // weights of a 64-byte load, four blocks
HWY_ALIGN constexpr float kValues[16] = {0, .5F, 1, 1.5F, 2, 3, 4, 6, -0.F, -.5F, -1, -1.5F, -2, -3, -4, -6};

// Where weight i of a group is multiplied: eight to a lane of 32 bits, the low bits first.
constexpr int64_t place_in_group(int64_t i) { return i % 8 * 16 + i / 8; }

// out[i] += <x[i], the group i>, each lane scaled as its block is; one group or one x for all, or as many as sums.
template <int kGroups, int kRows, class V>
HWY_INLINE void add_groups(const Group* HWY_RESTRICT groups, const float* const* HWY_RESTRICT x, V* HWY_RESTRICT out) {
  constexpr int kSums = kGroups * kRows;
  const Fp32 d;
  const hn::Rebind<uint32_t, Fp32> u32;
  HWY_ALIGN static constexpr int32_t kBlocks[16] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  const auto table = hn::Load(d, kValues);
  hn::Vec<hn::Rebind<uint32_t, Fp32>> codes[kGroups];
  V sum[kSums];
  for (int i = 0; i < kGroups; ++i)
    codes[i] = hn::BitCast(u32, hn::LoadU(hn::Repartition<uint8_t, Fp32>(), groups[i].bytes));
  for (int i = 0; i < kSums; ++i) sum[i] = hn::Zero(d);
  for (int64_t k = 0; k < 8; ++k) {
    V w[kGroups], row[kRows];
    // vpermps takes the four low bits of a lane, and lets the others be.
    for (int i = 0; i < kGroups; ++i) w[i] = hn::TableLookupLanes(table, hn::Indices512<float>{codes[i].raw});
    for (int i = 0; i < kGroups; ++i) codes[i] = hn::ShiftRight<4>(codes[i]);
    for (int r = 0; r < kRows; ++r) row[r] = hn::LoadU(d, x[r] + k * 16);
    for (int i = 0; i < kSums; ++i) sum[i] = hn::MulAdd(w[i / kRows], row[i % kRows], sum[i]);
  }
  for (int i = 0; i < kSums; ++i) {
    const auto scale =
        hn::TableLookupLanes(hn::LoadDup128(d, groups[i / kRows].scales), hn::SetTableIndices(d, kBlocks));
    out[i] = hn::MulAdd(sum[i], scale, out[i]);
  }
}
#else
constexpr int64_t kGroup = kBlock;

// Twice the values of e2m1, which makes them whole numbers.
HWY_ALIGN constexpr int8_t kTwice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Where weight i of a group is multiplied: low halves of the 16 bytes first, then high ones.
constexpr int64_t place_in_group(int64_t i) { return i % 2 * 16 + i / 2; }

// 16 bytes -> 32 whole numbers, in that order
HWY_INLINE void unpack(const uint8_t* HWY_RESTRICT bytes, int8_t* HWY_RESTRICT out) {
#if HWY_TARGET == HWY_SCALAR  // has vectors of one element
  for (int64_t i = 0; i < kBlock; ++i)
    out[place_in_group(i)] = kTwice[i % 2 == 0 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4];
#else
  const hn::FixedTag<uint8_t, 16> d;
  const auto table = hn::BitCast(d, hn::Load(hn::FixedTag<int8_t, 16>(), kTwice));
  const auto both = hn::LoadU(d, bytes);
  auto* to = reinterpret_cast<uint8_t*>(out);
  hn::StoreU(hn::TableLookupBytes(table, hn::And(both, hn::Set(d, 15))), d, to);
  hn::StoreU(hn::TableLookupBytes(table, hn::ShiftRight<4>(both)), d, to + 16);
#endif
}

template <int kGroups, int kRows, class V>
HWY_INLINE void add_groups(const Group* HWY_RESTRICT groups, const float* const* HWY_RESTRICT x, V* HWY_RESTRICT out) {
  constexpr int kSums = kGroups * kRows;
  const Fp32 d;
  HWY_ALIGN int8_t whole[kGroups][kBlock];
  V sum[kSums];
  for (int i = 0; i < kGroups; ++i) unpack(groups[i].bytes, whole[i]);
  for (int i = 0; i < kSums; ++i) sum[i] = hn::Zero(d);
  for (int64_t at = 0; at < kBlock; at += static_cast<int64_t>(hn::Lanes(d))) {
    V w[kGroups], row[kRows];
    for (int i = 0; i < kGroups; ++i) w[i] = widened(d, whole[i] + at);
    for (int r = 0; r < kRows; ++r) row[r] = hn::LoadU(d, x[r] + at);
    for (int i = 0; i < kSums; ++i) sum[i] = hn::MulAdd(w[i / kRows], row[i % kRows], sum[i]);
  }
  for (int i = 0; i < kSums; ++i) out[i] = hn::MulAdd(sum[i], hn::Set(d, .5F * *groups[i / kRows].scales), out[i]);
}
#endif

// 2^(byte - 127), of which 0 makes a subnormal number.
HWY_INLINE float power_of(uint8_t byte) { return std::ldexp(1.F, byte - 127); }

HWY_INLINE void powers_of(const uint8_t* HWY_RESTRICT bytes, int64_t n, float* HWY_RESTRICT out) {
  const Fp32 d;
  const hn::Rebind<uint32_t, Fp32> u32;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n < lanes) {
    for (int64_t i = 0; i < n; ++i) out[i] = power_of(bytes[i]);
    return;
  }
  for (int64_t at = 0; at < n; at += lanes) {
    const int64_t i = std::min(at, n - lanes);  // the last vector overlaps the one before
    const auto e = hn::PromoteTo(u32, hn::LoadU(hn::Rebind<uint8_t, Fp32>(), bytes + i));
    const auto bits = hn::IfThenElse(hn::Eq(e, hn::Zero(u32)), hn::Set(u32, 1U << 22), hn::ShiftLeft<23>(e));
    hn::StoreU(hn::BitCast(d, bits), d, out + i);
  }
}

// x in fp32, in whole groups as add_groups wants them, zeros behind the end.
struct Placed {
  std::vector<float> values;
  int64_t blocks;  // a row
  const float* row(int64_t i) const { return values.data() + i * blocks * kBlock; }
};

template <class X>
Placed placed(const Mxfp4Gemv<X>& g) {
  const int64_t padded = (g.inputs + kGroup - 1) / kGroup * kGroup;
  Placed out{std::vector<float>(static_cast<size_t>(g.rows * padded), 0.F), padded / kBlock};
  for (int64_t row = 0; row < g.rows; ++row) {
    const X* x = g.x + row * g.inputs;
    float* to = out.values.data() + row * padded;
    for (int64_t i = 0; i < g.inputs; ++i) to[i / kGroup * kGroup + place_in_group(i % kGroup)] = widened(x[i]);
  }
  return out;
}

// The sums of kOutputs outputs, o and each `apart` further, with kRows rows of `wide` from `row` on.
template <int kOutputs, int kRows, class X>
HWY_INLINE void products(const Mxfp4Gemv<X>& g, const Placed& wide, const float* scales, int64_t o, int64_t apart,
                         int64_t row) {
  hn::Vec<Fp32> sum[kOutputs * kRows];
  for (auto& s : sum) s = hn::Zero(Fp32());
  Group groups[kOutputs];
  const float* x[kRows];
  HWY_ALIGN uint8_t rest[kOutputs][kGroup / 2] = {};
  for (int64_t at = 0; at < g.inputs; at += kGroup) {
    for (int i = 0; i < kOutputs; ++i) {
      const uint8_t* bytes = g.values + ((o + i * apart) * g.inputs + at) / 2;
      hwy::Prefetch(bytes + kAhead);
      if (at + kGroup > g.inputs) std::copy_n(bytes, (g.inputs - at) / 2, rest[i]), bytes = rest[i];
      groups[i] = {bytes, scales + i * wide.blocks + at / kBlock};
    }
    for (int r = 0; r < kRows; ++r) x[r] = wide.row(row + r) + at;
    add_groups<kOutputs, kRows>(groups, x, sum);
  }
  for (int i = 0; i < kOutputs * kRows; ++i) {
    const int64_t output = o + i / kRows * apart;
    float total = hn::GetLane(hn::SumOfLanes(Fp32(), sum[i]));
    if (g.bias) total += widened(g.bias[output]);
    store_narrow(total, g.y + (row + i % kRows) * g.outputs + output);
  }
}

template <class X>
void packed_product(const Mxfp4Gemv<X>& g, int64_t begin, int64_t end) {
  const int64_t blocks = g.inputs / kBlock, quarter = (end - begin) / kSide;
  const Placed wide = placed(g);
  std::vector<float> scales(static_cast<size_t>(kSide * wide.blocks), 0.F);
  const auto scales_of = [&](int64_t o, int64_t i) {
    powers_of(g.scales + o * blocks, blocks, scales.data() + i * wide.blocks);
  };
  int64_t o = begin;
  if (g.rows == 1)
    for (; o < begin + quarter; ++o) {
      for (int64_t i = 0; i < kSide; ++i) scales_of(o + i * quarter, i);
      products<kSide, 1>(g, wide, scales.data(), o, quarter, 0);
    }
  for (o = g.rows == 1 ? begin + kSide * quarter : begin; o < end; ++o) {
    scales_of(o, 0);
    int64_t row = 0;
    for (; row + kSide <= g.rows; row += kSide) products<1, kSide>(g, wide, scales.data(), o, 0, row);
    for (; row < g.rows; ++row) products<1, 1>(g, wide, scales.data(), o, 0, row);
  }
}

// fp64 is for judging, not for speed: an output's weights are written out.
void mxfp4_fp64(const Mxfp4Gemv<double>& g, int64_t begin, int64_t end) {
  constexpr double kE2m1[16] = {0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6};
  std::vector<double> weights(static_cast<size_t>(g.inputs));
  for (int64_t o = begin; o < end; ++o) {
    for (int64_t i = 0; i < g.inputs; ++i) {
      const int byte = g.values[(o * g.inputs + i) / 2];
      weights[static_cast<size_t>(i)] =
          std::ldexp(kE2m1[i % 2 == 0 ? byte & 15 : byte >> 4], g.scales[(o * g.inputs + i) / kBlock] - 127);
    }
    for (int64_t row = 0; row < g.rows; ++row)
      g.y[row * g.outputs + o] = dot(g.x + row * g.inputs, weights.data(), g.inputs) + (g.bias ? g.bias[o] : 0);
  }
}
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
