// The kernels of compare_ranks.hpp. Highway compiles this file once per instruction set (foreach_target.h includes it
// again).
#include "kernels/cpu/compare_ranks.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/compare_ranks.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/highway.h>

#include "kernels/cpu/marked-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

/// Bit i is whether a[i] is `test`ed true, of kWord elements.
template <class Test>
HWY_INLINE uint64_t word_of(const double* a, Test&& test) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  uint64_t word = 0;
  for (int64_t k = 0; k < kWord; k += lanes) word |= bits_of(test(hn::LoadU(D(), a + k))) << k;
  return word;
}

int64_t above(const double* a, int64_t n, double low, double* out) {
  const V bound = hn::Set(D(), low);
  int64_t i = 0, found = 0;
  for (; i + kWord <= n; i += kWord)
    found += copy_marked(a + i, word_of(a + i, [&](V v) HWY_ATTR { return hn::Gt(v, bound); }), out + found);
  for (; i < n; ++i) {
    out[found] = a[i];
    found += a[i] > low;
  }
  return found;
}

BlockFound between(const double* a, int64_t n, const BlockInterval& k, double* inside) {
  const V low = hn::Set(D(), k.low), high = hn::Set(D(), k.high), tie = hn::Set(D(), k.tie);
  BlockFound all;
  int64_t i = 0;
  for (; i + kWord <= n; i += kWord) {
    const uint64_t over = word_of(a + i, [&](V v) HWY_ATTR { return hn::Gt(v, low); }),
                   tied = word_of(a + i, [&](V v) HWY_ATTR { return hn::Eq(v, tie); }),
                   under = word_of(a + i, [&](V v) HWY_ATTR { return hn::Lt(v, high); });
    all.above += std::popcount(over);
    all.tied += std::popcount(tied);
    all.inside += copy_marked(a + i, over & under & ~tied, inside + all.inside);
  }
  for (; i < n; ++i) {
    const bool over = a[i] > k.low, tied = a[i] == k.tie;
    all.above += over;
    all.tied += tied;
    inside[all.inside] = a[i];
    all.inside += over && a[i] < k.high && !tied;
  }
  return all;
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(above);
HWY_EXPORT(between);

int64_t block_above(const double* a, int64_t n, double low, double* out) {
  return HWY_DYNAMIC_DISPATCH(above)(a, n, low, out);
}

BlockFound block_between(const double* a, int64_t n, const BlockInterval& interval, double* inside) {
  return HWY_DYNAMIC_DISPATCH(between)(a, n, interval, inside);
}

}  // namespace parity::kernels
#endif
