// The kernel of frame_difference.hpp. Highway compiles this file once per instruction set.
#include "kernels/cpu/frame_difference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/frame_difference.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I16 = hn::ScalableTag<int16_t>;
using I32 = hn::ScalableTag<int32_t>;
using F32 = hn::ScalableTag<float>;
using U8 = hn::ScalableTag<uint8_t>;
using U64 = hn::ScalableTag<uint64_t>;

// Samples of a chunk: a multiple of 3, and of few enough squares that a 32-bit lane holds their sum
// (1536 / 8 lanes * 1020^2 < 2^31 with the narrowest vectors).
constexpr int64_t kChunk = 6144;

HWY_INLINE hn::Vec<I16> load16(const uint8_t* p) {
  return hn::PromoteTo(I16(), hn::LoadU(hn::Rebind<uint8_t, I16>(), p));
}

HWY_INLINE int64_t total(hn::Vec<I32> v) {
  int32_t lane[HWY_MAX_BYTES / sizeof(int32_t)];
  hn::StoreU(v, I32(), lane);
  int64_t sum = 0;
  for (size_t i = 0; i < hn::Lanes(I32()); ++i) sum += lane[i];
  return sum;
}

// Sums of squares of 16-bit differences.
struct Squares {
  hn::Vec<I32> even, odd;
  HWY_INLINE Squares() { even = odd = hn::Zero(I32()); }
  HWY_INLINE void add(hn::Vec<I16> v) { even = hn::ReorderWidenMulAccumulate(I32(), v, v, even, odd); }
  HWY_INLINE int64_t sum() const { return total(even) + total(odd); }
};

void motion(const uint8_t* r, const uint8_t* c, const uint8_t* r1, const uint8_t* c1, int64_t n, DifferenceSums& out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(I16()));
  Squares both, reference, candidate;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto dr = hn::Sub(load16(r + i), load16(r1 + i)), dc = hn::Sub(load16(c + i), load16(c1 + i));
    both.add(hn::Sub(dc, dr));
    reference.add(dr);
    candidate.add(dc);
  }
  out.flicker += both.sum();
  out.motion_reference += reference.sum();
  out.motion_candidate += candidate.sum();
  for (; i < n; ++i) {
    const int dr = r[i] - r1[i], dc = c[i] - c1[i];
    out.flicker += (dc - dr) * (dc - dr);
    out.motion_reference += dr * dr;
    out.motion_candidate += dc * dc;
  }
}

// |c - r| into `magnitude`, and r's squares.
void magnitudes(const uint8_t* r, const uint8_t* c, int64_t n, uint8_t* magnitude, DifferenceSums& out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(I16()));
  Squares squares;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto vr = load16(r + i);
    squares.add(vr);
    hn::StoreU(hn::DemoteTo(hn::Rebind<uint8_t, I16>(), hn::Abs(hn::Sub(load16(c + i), vr))),
               hn::Rebind<uint8_t, I16>(), magnitude + i);
  }
  out.squares += squares.sum();
  for (; i < n; ++i) {
    magnitude[i] = static_cast<uint8_t>(r[i] > c[i] ? r[i] - c[i] : c[i] - r[i]);
    out.squares += r[i] * r[i];
  }
}

// A quotient of small integers is rounded once to fp32; at most 384 are added in a lane before fp64 takes over.
double relative(const uint8_t* r, const uint8_t* magnitude, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F32()));
  const hn::Rebind<uint8_t, F32> u8;
  const hn::RebindToSigned<F32> i32;
  const auto one = hn::Set(i32, 1);
  auto sum = hn::Zero(F32());
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto base = hn::ConvertTo(F32(), hn::Max(one, hn::PromoteTo(i32, hn::LoadU(u8, r + i))));
    sum = hn::Add(sum, hn::Div(hn::ConvertTo(F32(), hn::PromoteTo(i32, hn::LoadU(u8, magnitude + i))), base));
  }
  float lane[HWY_MAX_BYTES / sizeof(float)];
  hn::StoreU(sum, F32(), lane);
  double out = 0;
  for (int64_t k = 0; k < lanes; ++k) out += static_cast<double>(lane[k]);
  for (; i < n; ++i) out += static_cast<double>(magnitude[i]) / std::max<int>(r[i], 1);
  return out;
}

HWY_INLINE int64_t total(hn::Vec<U64> v) { return static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(U64(), v))); }

void bias3(const uint8_t* r, const uint8_t* c, int64_t pixels, DifferenceSums& out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(U8()));
  hn::Vec<U64> plus[3], minus[3];
  for (int k = 0; k < 3; ++k) plus[k] = minus[k] = hn::Zero(U64());
  int64_t i = 0;
  for (; i + lanes <= pixels; i += lanes) {
    hn::Vec<U8> a[3], b[3];
    hn::LoadInterleaved3(U8(), r + 3 * i, a[0], a[1], a[2]);
    hn::LoadInterleaved3(U8(), c + 3 * i, b[0], b[1], b[2]);
    for (int k = 0; k < 3; ++k) {
      minus[k] = hn::Add(minus[k], hn::SumsOf8(a[k]));
      plus[k] = hn::Add(plus[k], hn::SumsOf8(b[k]));
    }
  }
  for (size_t k = 0; k < 3; ++k) {
    out.bias[k] += total(plus[k]) - total(minus[k]);
    for (auto j = i; j < pixels; ++j)
      out.bias[k] += c[3 * j + static_cast<int64_t>(k)] - r[3 * j + static_cast<int64_t>(k)];
  }
}

void bias1(const uint8_t* r, const uint8_t* c, int64_t n, DifferenceSums& out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(U8()));
  auto plus = hn::Zero(U64()), minus = hn::Zero(U64());
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    plus = hn::Add(plus, hn::SumsOf8(hn::LoadU(U8(), c + i)));
    minus = hn::Add(minus, hn::SumsOf8(hn::LoadU(U8(), r + i)));
  }
  out.bias[0] += total(plus) - total(minus);
  for (; i < n; ++i) out.bias[0] += c[i] - r[i];
}

// Eight tables: equal neighbours, the usual case, do not wait for each other's store.
struct Tables {
  uint32_t count[8][256];
};

void count(const uint8_t* magnitude, int64_t n, Tables& tables) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, magnitude + i, 8);
    for (int k = 0; k < 8; ++k) ++tables.count[k][(eight >> (8 * k)) & 255];
  }
  for (; i < n; ++i) ++tables.count[0][magnitude[i]];
}

DifferenceSums sums(const uint8_t* r, const uint8_t* c, const uint8_t* r1, const uint8_t* c1, int64_t pixels,
                    int channels) {
  DifferenceSums out;
  Tables tables = {};
  HWY_ALIGN uint8_t magnitude[kChunk + HWY_MAX_BYTES];
  const int64_t samples = pixels * channels;
  for (int64_t begin = 0; begin < samples; begin += kChunk) {
    const int64_t n = std::min(kChunk, samples - begin);
    magnitudes(r + begin, c + begin, n, magnitude, out);
    count(magnitude, n, tables);
    out.relative += relative(r + begin, magnitude, n);
    channels == 3 ? bias3(r + begin, c + begin, n / 3, out) : bias1(r + begin, c + begin, n, out);
    if (r1) motion(r + begin, c + begin, r1 + begin, c1 + begin, n, out);
  }
  for (size_t v = 0; v < 256; ++v)
    for (const auto& table : tables.count) out.histogram[v] += table[v];
  return out;
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(sums);

DifferenceSums difference_sums(const uint8_t* reference, const uint8_t* candidate, const uint8_t* reference_before,
                               const uint8_t* candidate_before, int64_t pixels, int channels) {
  return HWY_DYNAMIC_DISPATCH(sums)(reference, candidate, reference_before, candidate_before, pixels, channels);
}

}  // namespace parity::kernels
#endif
