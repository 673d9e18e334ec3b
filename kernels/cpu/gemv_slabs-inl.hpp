// In what order matrix times vector goes through the weights, and what is done with each sum. Included by kernels
// inside Highway's foreach_target, once per instruction set: no include guard of the usual kind.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/gelu_new-inl.hpp"
#include "kernels/cpu/gemv.hpp"
#include "kernels/cpu/widen-inl.hpp"

#if defined(PARITY_GEMV_SLABS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PARITY_GEMV_SLABS_INL
#undef PARITY_GEMV_SLABS_INL
#else
#define PARITY_GEMV_SLABS_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

// Four outputs at a time, a quarter of a slab apart: four long streams of weights that the hardware fetches ahead (two
// cores of an Emerald Rapids read 34 GB/s in four streams each, 28 in one), and sums that do not wait for each other.
constexpr int64_t kStreams = 4, kSlab = 128, kRowsAtOnce = 8;
constexpr int64_t kAhead = 1024;  // bytes fetched ahead; more of narrow weights arrives: bf16 30 GB/s for 25

/// Asks for `bytes` as far behind `at`, each of their cache lines: where a step reads two and one is asked for, fp32
/// with AVX-512 got 19 GB/s for 29 (fastest of 40, two cores of a Zen 4 beside other work).
template <class W>
HWY_INLINE void ask_ahead(const W* at, int64_t bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t line = 0; line < bytes; line += kLine) hwy::Prefetch(reinterpret_cast<const char*>(at) + kAhead + line);
}

template <bool kHalf, class C>
HWY_INLINE void gelu_steps(C* values, int64_t n) {  // whole vectors
  const hn::ScalableTag<C> d;
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::Store(gelu_new_of<kHalf>(d, hn::Load(d, values + i)), d, values + i);
}

template <class X, class W, class C>
HWY_INLINE void finish(const Gemv<X, W>& g, int64_t row, int64_t first, int64_t n, C* tile) {
  std::fill(tile + n, tile + kSlab, C(0));
  if (g.bias)
    for (int64_t o = 0; o < n; ++o) tile[o] += widened(g.bias[first + o]);
  if (g.activation == Activation::gelu_new) gelu_steps<sizeof(X) == 2>(tile, n);
  X* y = g.y + row * g.outputs + first;
  for (int64_t o = 0; o < n; ++o) store_narrow(tile[o], y + o);
}

// Outputs [begin, end) of all rows, `sums` being what multiplies: of<n>(row, output, apart, out) gives n outputs, each
// `apart` further than the one before. The weights of four outputs stay in the nearest cache for up to eight rows.
template <class C, class X, class W, class Sums>
HWY_INLINE void in_slabs(const Gemv<X, W>& g, int64_t begin, int64_t end, const Sums& sums) {
  HWY_ALIGN C tile[kRowsAtOnce * kSlab];
  HWY_ALIGN C four[kStreams];
  for (int64_t first = begin; first < end; first += kSlab) {
    const int64_t n = std::min(kSlab, end - first), quarter = n / kStreams;
    for (int64_t row = 0; row < g.rows; row += kRowsAtOnce) {
      const int64_t rows = std::min(kRowsAtOnce, g.rows - row);
      for (int64_t o = 0; o < quarter; ++o)
        for (int64_t r = 0; r < rows; ++r) {
          sums.template of<kStreams>(row + r, first + o, quarter, four);
          for (int64_t k = 0; k < kStreams; ++k) tile[r * kSlab + k * quarter + o] = four[k];
        }
      for (int64_t o = quarter * kStreams; o < n; ++o)
        for (int64_t r = 0; r < rows; ++r) sums.template of<1>(row + r, first + o, 0, tile + r * kSlab + o);
      for (int64_t r = 0; r < rows; ++r) finish(g, row + r, first, n, tile + r * kSlab);
    }
  }
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
