// Comparisons of 64 doubles as the bits of one integer, and the doubles so marked. Included by kernels inside Highway's
// foreach_target, once per instruction set: no include guard of the usual kind.
#include <hwy/highway.h>

#include <bit>
#include <cstdint>

#include "kernels/cpu/compare_block.hpp"

#if defined(PARITY_MARKED_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PARITY_MARKED_INL
#undef PARITY_MARKED_INL
#else
#define PARITY_MARKED_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

constexpr int64_t kWord = 64;

HWY_INLINE uint64_t bits_of(hn::Mask<D> mask) {
  uint8_t bits[8];  // of at most eight lanes
  hn::StoreMaskBits(D(), mask, bits);
  return bits[0];
}

/// Copies the a[i] whose bit i is set; returns how many. One copy for each bit, the first kBlockSpill whether set or
/// not: a loop over three bits of 64, the usual number, would end at another count each time and be mispredicted.
/// Compress would be shorter, but Highway 1.0's copies a table of 2 KiB to the stack at every call (AVX2, g++ 12): six
/// times slower.
HWY_INLINE int64_t copy_marked(const double* a, uint64_t word, double* out) {
  const int64_t all = std::popcount(word);
  for (int64_t k = 0; k < kBlockSpill; ++k, word &= word - 1) out[k] = a[std::countr_zero(word) & (kWord - 1)];
  for (int64_t k = kBlockSpill; word != 0; ++k, word &= word - 1) out[k] = a[std::countr_zero(word)];
  return all;
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
