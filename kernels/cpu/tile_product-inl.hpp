// A product of small matrices that lie in the caches, by rows of registers. Included by kernels inside Highway's
// foreach_target, once per instruction set: no include guard of the usual kind.
#include <hwy/highway.h>

#include <cstdint>

#include "kernels/cpu/widen-inl.hpp"

#if defined(PARITY_TILE_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PARITY_TILE_PRODUCT_INL
#undef PARITY_TILE_PRODUCT_INL
#else
#define PARITY_TILE_PRODUCT_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

// Sums kept in registers: 6 x 4 vectors leave room for a row of b where there are 32 registers, 6 x 2 where there
// are 16.
constexpr int64_t kRows = 6;
constexpr int64_t kPanel = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

// `rows` rows of c over one panel of columns: its own sum first, then added to what is there.
template <bool add, int64_t rows, class C, class D>
HWY_INLINE void panel(D d, const C* HWY_RESTRICT a, int64_t a_step, const C* HWY_RESTRICT b, int64_t b_step,
                      C* HWY_RESTRICT c, int64_t c_step, int64_t depth) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[rows][kPanel];
  for (auto& row : sums)
    for (auto& sum : row) sum = hn::Zero(d);
  for (int64_t k = 0; k < depth; ++k) {
    hn::Vec<D> line[kPanel];
    for (int64_t j = 0; j < kPanel; ++j) line[j] = hn::LoadU(d, b + k * b_step + j * lanes);
    for (int64_t i = 0; i < rows; ++i) {
      const auto x = hn::Set(d, a[i * a_step + k]);
      for (int64_t j = 0; j < kPanel; ++j) sums[i][j] = hn::MulAdd(x, line[j], sums[i][j]);
    }
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < kPanel; ++j) {
      C* to = c + i * c_step + j * lanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sums[i][j]) : sums[i][j], d, to);
    }
}

template <bool add, int64_t rows, class C, class D>
HWY_INLINE void row_group(D d, const C* a, int64_t a_step, const C* b, int64_t b_step, C* c, int64_t c_step,
                          int64_t columns, int64_t depth) {
  const int64_t width = kPanel * static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < columns; j += width) panel<add, rows>(d, a, a_step, b + j, b_step, c + j, c_step, depth);
}

/// c (rows, columns) = a (rows, depth) b (depth, columns), or += with `add`; rows of each lie `…_step` elements apart.
/// `columns` is a multiple of a panel (64 elements at most).
template <bool add, class C>
void product(const C* a, int64_t a_step, const C* b, int64_t b_step, C* c, int64_t c_step, int64_t rows,
             int64_t columns, int64_t depth) {
  const typename Wide<C>::Tag d;
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows)
    row_group<add, kRows>(d, a + i * a_step, a_step, b, b_step, c + i * c_step, c_step, columns, depth);
  for (; i < rows; ++i) row_group<add, 1>(d, a + i * a_step, a_step, b, b_step, c + i * c_step, c_step, columns, depth);
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
