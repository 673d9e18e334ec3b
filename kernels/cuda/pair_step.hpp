// What a GPU does with one pair of elements and with two partial results, and in which order: the same code runs on the
// CPU in a test. Sums are explicit fused multiply-adds, so that both give the same digits.
#pragma once
#include <cmath>

#include "kernels/cuda/element.hpp"

namespace parity::kernels::cuda {

/// Two arrays of n elements in the memory of one device, d = candidate - reference.
struct Pair {
  const void *reference = nullptr, *candidate = nullptr;
  Element reference_type = Element::fp32, candidate_type = Element::fp32;
  int64_t n = 0;
};

/// Sums over pairs of which both are finite, and counts of all.
struct PairTotals {
  double max_d = 0, sum_d = 0, sum_dd = 0;                // of |d|, |d|, d^2
  double sum_r = 0, sum_c = 0;                            // of |r|, |c|
  double sum_rr = 0, sum_cc = 0, sum_rc = 0, sum_dr = 0;  // of r^2, c^2, r c, d r
  int64_t worst = -1;                                     // the first element that has max_d
  int64_t finite = 0, special_reference = 0, special_candidate = 0, special_mismatch = 0;
  int64_t zeros_reference = 0, zeros_candidate = 0;
  int64_t equal = 0;       // equal bits; of specials: of one kind
  uint64_t max_ulp = 0;    // of finite pairs, in the reference's format
  bool bits_known = true;  // false: a candidate is no number of the reference's format; `equal`, `max_ulp` mean nothing
  bool varies_reference = false, varies_candidate = false;  // some element's bits differ from the first one's
};

enum class Kind : uint8_t { finite, nan, plus, minus };
PARITY_HOST_DEVICE inline Kind kind_of(double x) {
  const uint64_t bits = bits_of(x), magnitude = bits & kMagnitude64;
  if (magnitude < kInfinity64) return Kind::finite;
  return magnitude > kInfinity64 ? Kind::nan : bits > kMagnitude64 ? Kind::minus : Kind::plus;
}

/// |d| of a pair whose elements are both finite, else a NaN.
PARITY_HOST_DEVICE inline double distance(double r, double c) {
  const bool finite = kind_of(r) == Kind::finite && kind_of(c) == Kind::finite;
  return double_of(finite ? bits_of(c - r) & kMagnitude64 : kInfinity64 | 1);
}

/// Of two numbers as sign and magnitude: on one side of zero magnitudes are subtracted, else they add up.
PARITY_HOST_DEVICE inline uint64_t ulps_apart(uint64_t r, uint64_t c, Format f) {
  const uint64_t mr = r & magnitude_mask(f), mc = c & magnitude_mask(f);
  if ((r ^ c) > magnitude_mask(f)) return mr + mc;
  return mr > mc ? mr - mc : mc - mr;
}

PARITY_HOST_DEVICE inline void add_sums(double r, double c, int64_t i, PairTotals& t) {
  const double d = c - r, magnitude = double_of(bits_of(d) & kMagnitude64);
  if (t.worst < 0 || magnitude > t.max_d) {
    t.max_d = magnitude;
    t.worst = i;
  }
  t.sum_d += magnitude;
  t.sum_dd = fma(d, d, t.sum_dd);
  t.sum_r += double_of(bits_of(r) & kMagnitude64);
  t.sum_c += double_of(bits_of(c) & kMagnitude64);
  t.sum_rr = fma(r, r, t.sum_rr);
  t.sum_cc = fma(c, c, t.sum_cc);
  t.sum_rc = fma(r, c, t.sum_rc);
  t.sum_dr = fma(d, r, t.sum_dr);
  t.finite += 1;
}

PARITY_HOST_DEVICE inline void add_bits(uint64_t r, uint64_t c, double value, const Pair& pair, PairTotals& t) {
  const Format f = format_of(pair.reference_type);
  if (pair.reference_type != pair.candidate_type && !encoded_exactly(value, f, c)) {
    t.bits_known = false;
    return;
  }
  t.equal += r == c;
  const uint64_t apart = ulps_apart(r, c, f);
  t.max_ulp = apart > t.max_ulp ? apart : t.max_ulp;
}

/// Adds pair `i`.
PARITY_HOST_DEVICE inline void add_pair(const Pair& pair, int64_t i, PairTotals& t) {
  const uint64_t bits_r = raw_bits(pair.reference, pair.reference_type, i),
                 bits_c = raw_bits(pair.candidate, pair.candidate_type, i);
  const double r = decoded(bits_r, format_of(pair.reference_type)), c = decoded(bits_c, format_of(pair.candidate_type));
  t.varies_reference = t.varies_reference || bits_r != raw_bits(pair.reference, pair.reference_type, 0);
  t.varies_candidate = t.varies_candidate || bits_c != raw_bits(pair.candidate, pair.candidate_type, 0);
  t.zeros_reference += r == 0;
  t.zeros_candidate += c == 0;
  const Kind kind_r = kind_of(r), kind_c = kind_of(c);
  if (kind_r == Kind::finite && kind_c == Kind::finite) {
    add_sums(r, c, i, t);
    add_bits(bits_r, bits_c, c, pair, t);
    return;
  }
  t.special_reference += kind_r != Kind::finite;
  t.special_candidate += kind_c != Kind::finite;
  t.special_mismatch += kind_r != kind_c;
  t.equal += kind_r == kind_c;  // NaN equals NaN whatever its payload
}

/// Adds what others have summed. The order of calls decides the digits; the first of equal maxima is the lower index.
PARITY_HOST_DEVICE inline void merge(PairTotals& t, const PairTotals& other) {
  if (other.worst >= 0 && (t.worst < 0 || other.max_d > t.max_d || (other.max_d == t.max_d && other.worst < t.worst))) {
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
  t.finite += other.finite;
  t.special_reference += other.special_reference;
  t.special_candidate += other.special_candidate;
  t.special_mismatch += other.special_mismatch;
  t.zeros_reference += other.zeros_reference;
  t.zeros_candidate += other.zeros_candidate;
  t.equal += other.equal;
  t.max_ulp = other.max_ulp > t.max_ulp ? other.max_ulp : t.max_ulp;
  t.bits_known = t.bits_known && other.bits_known;
  t.varies_reference = t.varies_reference || other.varies_reference;
  t.varies_candidate = t.varies_candidate || other.varies_candidate;
}

// The order of the sums, whatever the device and its grid: elements lie in tiles, a tile's are dealt out to kThreads
// sums, and these are merged as a tree; so are the tiles' sums.
constexpr int kThreads = 256;  // a power of two
constexpr int64_t kTile = int64_t{64} * kThreads;

PARITY_HOST_DEVICE constexpr int64_t tiles_of(int64_t n) { return (n + kTile - 1) / kTile; }

/// The share of `thread` < kThreads in tile `tile`.
PARITY_HOST_DEVICE inline PairTotals share_of_tile(const Pair& pair, int64_t tile, int thread) {
  PairTotals t;
  const int64_t begin = tile * kTile, end = begin + kTile < pair.n ? begin + kTile : pair.n;
  for (int64_t i = begin + thread; i < end; i += kThreads) add_pair(pair, i, t);
  return t;
}

/// The share of `thread` < kThreads in the sums of all tiles.
PARITY_HOST_DEVICE inline PairTotals share_of_tiles(const PairTotals* tiles, int64_t count, int thread) {
  PairTotals t;
  for (int64_t i = thread; i < count; i += kThreads) merge(t, tiles[i]);
  return t;
}

/// One step of the tree over kThreads sums, of `half` = kThreads / 2, … 2, 1 pairs: what `thread` < half does. The
/// total is then the first.
PARITY_HOST_DEVICE inline void merge_step(PairTotals* shares, int half, int thread) {
  merge(shares[thread], shares[thread + half]);
}

}  // namespace parity::kernels::cuda
