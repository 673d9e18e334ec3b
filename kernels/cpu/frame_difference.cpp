// The kernel of frame_difference.hpp. Highway compiles this file once per instruction set.
#include "kernels/cpu/frame_difference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/frame_difference.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I16 = hn::ScalableTag<int16_t>;
using I32 = hn::ScalableTag<int32_t>;
using F32 = hn::ScalableTag<float>;

// Samples of a chunk: whole triples of vectors, and so few that 16-bit lanes hold their differences' sums (64 * 255)
// and 32-bit lanes their squares' (384 * 1020^2).
inline int64_t chunk() { return 192 * static_cast<int64_t>(hn::Lanes(I16())); }
constexpr int64_t kMostOfChunk = 192 * (HWY_MAX_BYTES / sizeof(int16_t));
constexpr int64_t kLine = 64;  // bytes of a cache line

HWY_INLINE hn::Vec<I16> load16(const uint8_t* p) {
  return hn::PromoteTo(I16(), hn::LoadU(hn::Rebind<uint8_t, I16>(), p));
}

template <class Sum, class D>
HWY_INLINE Sum total(D d, hn::Vec<D> v) {
  hn::TFromD<D> lane[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  hn::StoreU(v, d, lane);
  Sum sum = 0;
  for (size_t i = 0; i < hn::Lanes(d); ++i) sum += static_cast<Sum>(lane[i]);
  return sum;
}

// Sums of squares of 16-bit differences.
struct Squares {
  hn::Vec<I32> even, odd;
  HWY_INLINE Squares() { even = odd = hn::Zero(I32()); }
  HWY_INLINE void add(hn::Vec<I16> v) { even = hn::ReorderWidenMulAccumulate(I32(), v, v, even, odd); }
  HWY_INLINE int64_t sum() const { return total<int64_t>(I32(), even) + total<int64_t>(I32(), odd); }
};

// The sum of magnitude / max(r, 1). Two quotients of neighbours are one, rounded once to fp32: a / b + c / d =
// (ad + cb) / bd, all of them small integers; at most 192 are added in a lane before fp64 takes over.
struct Quotients {
  hn::Vec<F32> value;
  HWY_INLINE Quotients() { value = hn::Zero(F32()); }
  HWY_INLINE void add(hn::Vec<I16> r, hn::Vec<I16> magnitude) {
    const auto base = hn::Max(r, hn::Set(I16(), 1)), neighbour = hn::Reverse2(I16(), base);
    const auto below = dot(base, hn::OddEven(hn::Zero(I16()), neighbour));
    value = hn::Add(value, hn::Div(dot(magnitude, neighbour), below));
  }
  // Of each two lanes.
  static HWY_INLINE hn::Vec<F32> dot(hn::Vec<I16> a, hn::Vec<I16> b) {
    auto rest = hn::Zero(I32());
    const auto sum = hn::ReorderWidenMulAccumulate(I32(), a, b, hn::Zero(I32()), rest);
    return hn::ConvertTo(F32(), hn::RearrangeToOddPlusEven(sum, rest));
  }
  HWY_INLINE double sum() const { return total<double>(F32(), value); }
};

// The samples from `i` on that fill no three vectors.
template <bool kMotion>
void moments_of_rest(const uint8_t* r, const uint8_t* c, const uint8_t* r1, const uint8_t* c1, int64_t i, int64_t n,
                     size_t channels, uint8_t* magnitude, DifferenceSums& out) {
  for (; i < n; ++i) {
    const int64_t d = c[i] - r[i];
    out.bias[static_cast<size_t>(i) % channels] += d;
    out.squares += int64_t{r[i]} * r[i];
    out.relative += static_cast<double>(std::abs(d)) / std::max<int>(r[i], 1);
    magnitude[i] = static_cast<uint8_t>(std::abs(d));
    if constexpr (!kMotion) continue;
    const int64_t dr = r[i] - r1[i], dc = c[i] - c1[i];
    out.flicker += (dc - dr) * (dc - dr);
    out.motion_reference += dr * dr;
    out.motion_candidate += dc * dc;
  }
}

// What needs the samples' values: |c - r| into `magnitude`, bias, squares, quotients, and with the frames before
// motion. In three neighbouring vectors each lane is of one channel, so that bias costs one addition.
template <bool kMotion>
void moments(const uint8_t* r, const uint8_t* c, const uint8_t* r1, const uint8_t* c1, int64_t n, size_t channels,
             uint8_t* magnitude, DifferenceSums& out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(I16()));
  const hn::Rebind<uint8_t, I16> bytes;
  Squares squares, flicker, reference, candidate;
  Quotients quotients;
  hn::Vec<I16> bias[3];
  for (auto& b : bias) b = hn::Zero(I16());
  int64_t i = 0;
  for (; i + 3 * lanes <= n; i += 3 * lanes)
    for (int k = 0; k < 3; ++k) {
      const int64_t at = i + k * lanes;
      const auto vr = load16(r + at), vc = load16(c + at), d = hn::Sub(vc, vr), absolute = hn::Abs(d);
      bias[k] = hn::Add(bias[k], d);
      squares.add(vr);
      quotients.add(vr, absolute);
      hn::StoreU(hn::DemoteTo(bytes, absolute), bytes, magnitude + at);
      if constexpr (kMotion) {
        const auto dr = hn::Sub(vr, load16(r1 + at)), dc = hn::Sub(vc, load16(c1 + at));
        flicker.add(hn::Sub(dc, dr));
        reference.add(dr);
        candidate.add(dc);
      }
    }
  HWY_ALIGN int16_t lane[3 * HWY_MAX_BYTES / sizeof(int16_t)];
  for (int k = 0; k < 3; ++k) hn::StoreU(bias[k], I16(), lane + k * lanes);
  for (int64_t k = 0; k < 3 * lanes; ++k) out.bias[static_cast<size_t>(k) % channels] += lane[k];
  out.squares += squares.sum();
  out.relative += quotients.sum();
  out.flicker += flicker.sum();
  out.motion_reference += reference.sum();
  out.motion_candidate += candidate.sum();
  moments_of_rest<kMotion>(r, c, r1, c1, i, n, channels, magnitude, out);
}

// Neighbouring magnitudes below 64, the usual case, are counted as one: storing is what limits. More than one table of
// each: equal neighbours do not wait for each other's store. A table of all pairs does not stay in the first-level
// cache and gains nothing.
struct Tables {
  uint32_t pair[2][64 * 64];  // at 64 * the second + the first
  uint32_t single[8][256];
};

void count(const uint8_t* magnitude, int64_t n, Tables& tables) {
  constexpr uint64_t kFirst = 0x003f003f003f003f, kLarge = 0xc0c0c0c0c0c0c0c0;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, magnitude + i, 8);
    if (eight & kLarge) {
      for (int k = 0; k < 8; ++k) ++tables.single[k][(eight >> (8 * k)) & 255];
    } else {
      const uint64_t pairs = (eight & kFirst) | ((eight >> 2) & (kFirst << 6));
      for (int k = 0; k < 4; ++k) ++tables.pair[k % 2][(pairs >> (16 * k)) & 0xffff];
    }
  }
  for (; i < n; ++i) ++tables.single[0][magnitude[i]];
}

void add(const Tables& tables, std::array<uint32_t, 256>& histogram) {
  for (size_t v = 0; v < 256; ++v)
    for (const auto& single : tables.single) histogram[v] += single[v];
  for (size_t at = 0; at < size_t{64} * 64; ++at)
    for (const auto& pair : tables.pair) histogram[at / 64] += pair[at], histogram[at % 64] += pair[at];
}

DifferenceSums sums(const uint8_t* r, const uint8_t* c, const uint8_t* r1, const uint8_t* c1, int64_t pixels,
                    int channels) {
  DifferenceSums out;
  Tables tables = {};
  HWY_ALIGN uint8_t magnitude[kMostOfChunk + HWY_MAX_BYTES];
  const int64_t samples = pixels * channels;
  for (int64_t begin = 0; begin < samples; begin += chunk()) {
    const int64_t n = std::min(chunk(), samples - begin);
    const auto k = static_cast<size_t>(channels);
    if (r1)
      moments<true>(r + begin, c + begin, r1 + begin, c1 + begin, n, k, magnitude, out);
    else
      moments<false>(r + begin, c + begin, nullptr, nullptr, n, k, magnitude, out);
    // Counting needs no memory: the next chunk is asked for meanwhile, a tenth of the kernel's time.
    for (int64_t at = 0; at < n; at += kLine) {
      if (const int64_t next = begin + chunk() + at; next < samples)
        for (const uint8_t* frame : {r, c, r1, c1})
          if (frame) hwy::Prefetch(frame + next);
      count(magnitude + at, std::min(kLine, n - at), tables);
    }
  }
  add(tables, out.histogram);
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
