// The kernel of decode_attention.hpp. Highway compiles this file once per instruction set.
#include "kernels/cpu/decode_attention.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/decode_attention.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/widen-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

constexpr int64_t kKeys = 64;  // of a block: their scores are one cache line of bytes a key at most

template <class T>
struct Online {
  using C = typename Wide<T>::Number;
  HWY_ALIGN C scores[kKeys];
  HWY_ALIGN C sum[kMaxHeadWidth];  // of weights times values, relative to `largest`
  C largest, total;
};

// The block's scores, and the largest so far; what was summed before is brought to it.
template <class T>
HWY_INLINE void scores_of(const Attend<T>& a, int64_t first, int64_t n, Online<T>& o) {
  using C = typename Online<T>::C;
  C largest = o.largest, poison = 0;
  for (int64_t j = 0; j < n; ++j) {
    C score = dot(a.q, a.k + (first + j) * a.key_step, a.dim) * static_cast<C>(a.scale);
    if (a.bias) score += widened(a.bias[first + j]);
    o.scores[j] = score;
    poison += score * 0;  // NaN and infinity go through to the result: the exponential below would lose them
    largest = std::max(largest, score);
  }
  std::fill(o.scores + n, o.scores + kKeys, -std::numeric_limits<C>::infinity());
  if (largest > o.largest) {
    const C factor = std::exp(o.largest - largest);
    for (int64_t e = 0; e < a.dim; ++e) o.sum[e] *= factor;
    o.total *= factor;
    o.largest = largest;
  }
  o.total += poison;
}

template <class T>
HWY_INLINE void weigh(Online<T>& o) {
  const typename Wide<T>::Tag d;
  const auto largest = hn::Set(d, o.largest);
  auto total = hn::Zero(d);
  for (int64_t j = 0; j < kKeys; j += static_cast<int64_t>(hn::Lanes(d))) {
    const auto weight = hn::Exp(d, hn::Sub(hn::Load(d, o.scores + j), largest));
    hn::Store(weight, d, o.scores + j);
    total = hn::Add(total, weight);
  }
  o.total += hn::GetLane(hn::SumOfLanes(d, total));
}

// The block's own sum first, in four parts, then added to the rest: the error grows with kKeys / 4, not with all keys,
// which counts where most values are alike (padded text), and the multiplications do not wait for each other.
template <class T>
HWY_INLINE void add_values(const Attend<T>& a, int64_t first, int64_t n, Online<T>& o) {
  const typename Wide<T>::Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* v = a.v + first * a.value_step;
  int64_t e = 0;
  for (; e + lanes <= a.dim; e += lanes) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const auto add = [&](int64_t j, auto& sum) {
      sum = hn::MulAdd(hn::Set(d, o.scores[j]), widened(d, v + j * a.value_step + e), sum);
    };
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) add(j, s0), add(j + 1, s1), add(j + 2, s2), add(j + 3, s3);
    for (; j < n; ++j) add(j, s0);
    hn::Store(hn::Add(hn::Load(d, o.sum + e), hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))), d, o.sum + e);
  }
  for (; e < a.dim; ++e) {
    typename Online<T>::C part[4] = {};
    for (int64_t j = 0; j < n; ++j) part[j % 4] += o.scores[j] * widened(v[j * a.value_step + e]);
    o.sum[e] += (part[0] + part[1]) + (part[2] + part[3]);
  }
}

template <class T>
void one_query(const Attend<T>& a) {
  using C = typename Online<T>::C;
  Online<T> o;
  std::fill(o.sum, o.sum + a.dim, C(0));
  o.largest = a.sink ? widened(*a.sink) : -std::numeric_limits<C>::infinity();
  o.total = a.sink ? C(1) : C(0);
  for (int64_t first = 0; first < a.keys; first += kKeys) {
    const int64_t n = std::min(kKeys, a.keys - first);
    scores_of(a, first, n, o);
    weigh(o);
    add_values(a, first, n, o);
  }
  for (int64_t e = 0; e < a.dim; ++e) store_narrow(o.sum[e] / o.total, a.out + e);
}

void attend_fp64(const Attend<double>& a) { one_query(a); }
void attend_fp32(const Attend<float>& a) { one_query(a); }
void attend_bf16(const Attend<uint16_t>& a) { one_query(a); }

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(attend_fp64);
HWY_EXPORT(attend_fp32);
HWY_EXPORT(attend_bf16);

void attend(const Attend<double>& a) { HWY_DYNAMIC_DISPATCH(attend_fp64)(a); }
void attend(const Attend<float>& a) { HWY_DYNAMIC_DISPATCH(attend_fp32)(a); }
void attend(const Attend<uint16_t>& a) { HWY_DYNAMIC_DISPATCH(attend_bf16)(a); }

}  // namespace parity::kernels
#endif
