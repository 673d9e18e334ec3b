// What a GPU does with one pair of elements and with two partial results, and in which order: the same code runs on the
// CPU in a test. Sums are explicit fused multiply-adds, so that both give the same digits.
#pragma once
#include <cmath>
#include <type_traits>

#include "kernels/cuda/bands.hpp"
#include "kernels/cuda/element.hpp"

namespace parity::kernels::cuda {

/// Two arrays of n elements in the memory of one device, d = candidate - reference.
struct Pair {
  const void *reference = nullptr, *candidate = nullptr;
  Element reference_type = Element::fp32, candidate_type = Element::fp32;
  int64_t n = 0;
};

/// Sums over pairs of which both are finite, and counts of all. `Bits` holds the bits of an element of either side.
template <class Bits, class Count>
struct Sums {
  double max_d = -1;                                      // of |d|; below 0: no pair was finite
  double sum_d = 0, sum_dd = 0;                           // of |d|, d^2
  double sum_r = 0, sum_c = 0;                            // of |r|, |c|
  double sum_rr = 0, sum_cc = 0, sum_rc = 0, sum_dr = 0;  // of r^2, c^2, r c, d r
  Count worst = -1;                                       // the first element that has max_d
  Count not_finite = 0, special_reference = 0, special_candidate = 0, special_mismatch = 0;
  Count zeros_reference = 0;
  Count equal = 0;           // equal bits; of specials: of one kind
  Count below[kBands] = {};  // |d| that lie below each band of `Bands`
  Count tied[kBands] = {};   // that are the band's tie
  Bits max_ulp = 0;          // of finite pairs, in the reference's format
  // The bits in which some element differs from the first one, and those that are set in some candidate.
  Bits differs_reference = 0, differs_candidate = 0, any_candidate = 0;
  bool bits_known = true;  // false: a candidate is no number of the reference's format; `equal`, `max_ulp` mean nothing
};
using PairTotals = Sums<uint64_t, int64_t>;

enum class Kind : uint8_t { finite, nan, plus, minus };
PARITY_HOST_DEVICE inline Kind kind_of(double x) {
  const uint64_t bits = bits_of(x), magnitude = bits & kMagnitude64;
  if (magnitude < kInfinity64) return Kind::finite;
  return magnitude > kInfinity64 ? Kind::nan : bits > kMagnitude64 ? Kind::minus : Kind::plus;
}

/// |d| of pair `i` if both elements are finite, else a NaN.
PARITY_HOST_DEVICE inline double distance_at(const Pair& pair, int64_t i) {
  const double r = value_at(pair.reference, pair.reference_type, i),
               c = value_at(pair.candidate, pair.candidate_type, i);
  const bool finite = kind_of(r) == Kind::finite && kind_of(c) == Kind::finite;
  return double_of(finite ? bits_of(c - r) & kMagnitude64 : kInfinity64 | 1);
}

// The element types of a pair: known to the compiler, or to the pair alone.
template <Element kReference, Element kCandidate>
struct KnownTypes {
  static constexpr bool kNarrow = bytes_of(kReference) <= 2 && bytes_of(kCandidate) <= 2;
  using Bits = std::conditional_t<(bytes_of(kReference) < 8 && bytes_of(kCandidate) < 8), uint32_t, uint64_t>;
  PARITY_HOST_DEVICE static constexpr Element reference(const Pair&) { return kReference; }
  PARITY_HOST_DEVICE static constexpr Element candidate(const Pair&) { return kCandidate; }
};
struct AnyTypes {
  static constexpr bool kNarrow = false;
  using Bits = uint64_t;
  PARITY_HOST_DEVICE static Element reference(const Pair& pair) { return pair.reference_type; }
  PARITY_HOST_DEVICE static Element candidate(const Pair& pair) { return pair.candidate_type; }
};

/// Calls `f` with the types of a pair: each of the usual mixes has a loop of its own.
template <class F>
auto with_types(const Pair& pair, F&& f) {
  using enum Element;
  const auto is = [&](Element r, Element c) { return pair.reference_type == r && pair.candidate_type == c; };
  if (is(fp32, fp32)) return f(KnownTypes<fp32, fp32>());
  if (is(bf16, bf16)) return f(KnownTypes<bf16, bf16>());
  if (is(fp16, fp16)) return f(KnownTypes<fp16, fp16>());
  if (is(fp64, fp64)) return f(KnownTypes<fp64, fp64>());
  if (is(fp32, bf16)) return f(KnownTypes<fp32, bf16>());
  if (is(bf16, fp32)) return f(KnownTypes<bf16, fp32>());
  if (is(fp32, fp16)) return f(KnownTypes<fp32, fp16>());
  if (is(fp16, fp32)) return f(KnownTypes<fp16, fp32>());
  return f(AnyTypes());
}

/// Adds what others have summed. The order of calls decides the digits; the first of equal maxima is the lower index.
PARITY_HOST_DEVICE inline void merge(PairTotals& t, const PairTotals& other) {
  if (other.max_d > t.max_d || (other.max_d == t.max_d && other.worst < t.worst)) {
    t.max_d = other.max_d;
    t.worst = other.worst;
  }
  t.sum_d += other.sum_d;
  t.sum_dd += other.sum_dd;
  t.sum_r += other.sum_r;
  t.sum_c += other.sum_c;
  t.sum_rr += other.sum_rr;
  t.sum_cc += other.sum_cc;
  t.sum_rc += other.sum_rc;
  t.sum_dr += other.sum_dr;
  t.not_finite += other.not_finite;
  t.special_reference += other.special_reference;
  t.special_candidate += other.special_candidate;
  t.special_mismatch += other.special_mismatch;
  t.zeros_reference += other.zeros_reference;
  t.equal += other.equal;
  for (int b = 0; b < kBands; ++b) {
    t.below[b] += other.below[b];
    t.tied[b] += other.tied[b];
  }
  t.max_ulp = other.max_ulp > t.max_ulp ? other.max_ulp : t.max_ulp;
  t.differs_reference |= other.differs_reference;
  t.differs_candidate |= other.differs_candidate;
  t.any_candidate |= other.any_candidate;
  t.bits_known = t.bits_known && other.bits_known;
}

/// The whole of a pair.
struct PairResult {
  PairTotals totals;
  int64_t finite = 0;                               // pairs of which both elements are
  double worst_reference = 0, worst_candidate = 0;  // the elements at totals.worst
};
PARITY_HOST_DEVICE inline PairResult finished(const Pair& pair, const PairTotals& totals) {
  PairResult out{totals, pair.n - totals.not_finite};
  if (totals.worst < 0) return out;
  out.worst_reference = value_at(pair.reference, pair.reference_type, totals.worst);
  out.worst_candidate = value_at(pair.candidate, pair.candidate_type, totals.worst);
  return out;
}

}  // namespace parity::kernels::cuda
