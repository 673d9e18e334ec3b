// The bits of pairs, word by word: equal ones, and how far apart the others are. Included by kernels inside Highway's
// foreach_target, once per instruction set: no include guard of the usual kind.
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/compare_bits.hpp"

#if defined(PARITY_COMPARE_BITS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PARITY_COMPARE_BITS_INL
#undef PARITY_COMPARE_BITS_INL
#else
#define PARITY_COMPARE_BITS_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kBitsWord = 64;  // whole vectors of any type and instruction set

template <class U>
constexpr U kMagnitude = U(U(~U(0)) >> 1);  // all but the sign

/// Of two numbers as sign and magnitude: magnitudes on one side of zero are subtracted, on different sides they add up.
template <class U>
U ulp_distance(U r, U c) {
  const U mr = U(r & kMagnitude<U>), mc = U(c & kMagnitude<U>);
  return U(r ^ c) > kMagnitude<U> ? U(mr + mc) : U(std::max(mr, mc) - std::min(mr, mc));
}

template <class U>
HWY_INLINE hn::Vec<hn::ScalableTag<U>> apart(hn::Vec<hn::ScalableTag<U>> a, hn::Vec<hn::ScalableTag<U>> b) {
  return hn::Sub(hn::Max(a, b), hn::Min(a, b));
}

/// The greatest ULP distance of n pairs (whole vectors), on whichever side of zero.
template <class U>
HWY_INLINE hn::Vec<hn::ScalableTag<U>> farthest(const U* r, const U* c, int64_t n) {
  const hn::ScalableTag<U> u;
  const hn::RebindToSigned<decltype(u)> sign;
  const auto magnitude = hn::Set(u, kMagnitude<U>);
  auto most = hn::Zero(u);
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(u))) {
    const auto vr = hn::LoadU(u, r + i), vc = hn::LoadU(u, c + i);
    const auto mr = hn::And(vr, magnitude), mc = hn::And(vc, magnitude);
    const auto opposite = hn::RebindMask(u, hn::Lt(hn::BitCast(sign, hn::Xor(vr, vc)), hn::Zero(sign)));
    most = hn::Max(most, hn::IfThenElse(opposite, hn::Add(mr, mc), apart<U>(mr, mc)));
  }
  return most;
}

/// What is found so far, of fewer than 2^32 pairs.
template <class U>
struct BitsFound {
  using Tag = hn::ScalableTag<U>;
  hn::Vec<Tag> most;
  uint64_t counts;  // equal ones, and zeros times 2^32: of two numbers side by side g++ makes a vector, lane by lane

  // Written out: g++ gives an implicit constructor no target attribute and then cannot inline into it.
  HWY_INLINE BitsFound() {
    most = hn::Zero(Tag());
    counts = 0;
  }

  /// n pairs, whole vectors.
  HWY_INLINE void add(const U* r, const U* c, int64_t n) {
    const Tag u;
    const hn::RebindToSigned<Tag> sign;
    auto unlike = hn::Zero(u), distance = hn::Zero(u);
    for (int64_t k = 0; k < n; k += static_cast<int64_t>(hn::Lanes(u))) {
      const auto vr = hn::LoadU(u, r + k), vc = hn::LoadU(u, c + k), differing = hn::Xor(vr, vc);
      distance = hn::Max(distance, apart<U>(vr, vc));  // right where the signs agree
      unlike = hn::Or(unlike, differing);
      counts += hn::CountTrue(u, hn::Eq(differing, hn::Zero(u)));
      counts += uint64_t{hn::CountTrue(u, hn::Eq(hn::And(vr, hn::Set(u, kMagnitude<U>)), hn::Zero(u)))} << 32;
    }
    // Some pair lies on both sides of zero: rare, so worth a second look.
    if (!hn::AllFalse(sign, hn::Lt(hn::BitCast(sign, unlike), hn::Zero(sign)))) distance = farthest(r, c, n);
    most = hn::Max(most, distance);
  }

  HWY_INLINE BlockBits bits() const {
    U lane[HWY_MAX_BYTES / sizeof(U)];
    hn::StoreU(most, Tag(), lane);
    return {*std::max_element(lane, lane + hn::Lanes(Tag())), static_cast<int64_t>(counts & ~uint32_t{0}),
            static_cast<int64_t>(counts >> 32)};
  }
};

template <class U>
BlockBits bits_of_pairs(const U* r, const U* c, int64_t n) {
  BitsFound<U> found;
  int64_t i = 0;
  for (; i + kBitsWord <= n; i += kBitsWord) found.add(r + i, c + i, kBitsWord);
  BlockBits out = found.bits();
  for (; i < n; ++i) {
    out.max_ulp = std::max<uint64_t>(out.max_ulp, ulp_distance(r[i], c[i]));
    out.equal += r[i] == c[i];
    out.zeros += (r[i] & kMagnitude<U>) == 0;
  }
  return out;
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
