// What one thread adds up of one tile of a pair: the same code on a GPU and on the CPU. Batches are read ahead, so that
// many reads are under way at once; in one without NaN and infinities nothing branches.
#pragma once
#include "kernels/cuda/pair_step.hpp"

#ifdef __CUDA_ARCH__
#define PARITY_UNROLL _Pragma("unroll")
#define PARITY_UNROLL_TWICE _Pragma("unroll 2")  // no registers are copied from one batch to the other
#else
#define PARITY_UNROLL
#define PARITY_UNROLL_TWICE
#endif

namespace parity::kernels::cuda {

constexpr int kThreads = 256;  // of a block, a power of two: a thread's elements are so far apart
constexpr int kBatch = 8;      // of its elements are read at a time

struct KeepNothing {
  static constexpr bool kNothing = true;
  PARITY_HOST_DEVICE void operator()(int, double) const {}
};

PARITY_HOST_DEVICE inline int lowest_bit(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __ffs(static_cast<int>(bits)) - 1;
#else
  return __builtin_ctz(bits);
#endif
}

/// Hides from the compiler of a GPU that these bits were read as 16: it would narrow comparisons to that, and extend
/// the sign of both sides before each.
template <class Bits>
PARITY_HOST_DEVICE Bits whole_register(Bits bits) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Bits) == 4) asm("" : "+r"(bits));
#endif
  return bits;
}

/// Of two numbers as sign and magnitude: on one side of zero magnitudes are subtracted, else they add up.
template <class Bits>
PARITY_HOST_DEVICE Bits ulps_apart(Bits r, Bits c, Format f) {
  const auto mask = static_cast<Bits>(magnitude_mask(f));
  const Bits mr = r & mask, mc = c & mask;
  if ((r ^ c) > mask) return mr + mc;
  return mr > mc ? mr - mc : mc - mr;
}

/// `keep(band, |d|)` takes what lies inside the bands.
template <class Types, class Keep>
class TileSums {
 public:
  using Bits = typename Types::Bits;
  /// Of two narrow floats many differences are the tie: they are counted where they are met.
  static constexpr bool kTiesAtOnce = Types::kNarrow;

  /// From element `begin` on, of `pair.n` > 0.
  PARITY_HOST_DEVICE TileSums(const Pair& pair, int64_t begin, const Bands& bands, Keep& keep)
      : pair_(pair), bands_(bands), keep_(keep), begin_(begin), first_r_(reference(0)), first_c_(candidate(0)) {}

  /// Adds `each` elements, as far as there are so many. The next batch is on its way while one is added.
  PARITY_HOST_DEVICE void add(int each) {
    Batch now;
    bool whole = read(0, now);
    PARITY_UNROLL_TWICE
    for (int i = 0; i < each; i += kBatch) {
      Batch next;
      const bool next_is_whole = i + kBatch < each && read(i + kBatch, next);
      if (!whole || !add_finite(now, i))
        for (int k = i; k < i + kBatch && place(k) < pair_.n; ++k) add_pair(k);
      if (next_is_whole) now = next;
      whole = next_is_whole;
    }
  }

  /// As a part of the whole array.
  PARITY_HOST_DEVICE PairTotals totals() const {
    PairTotals out;
    out.max_d = t_.max_d, out.worst = t_.worst < 0 ? -1 : place(t_.worst);
    out.sum_d = t_.sum_d, out.sum_dd = t_.sum_dd, out.sum_r = t_.sum_r, out.sum_c = t_.sum_c;
    out.sum_rr = t_.sum_rr, out.sum_cc = t_.sum_cc, out.sum_rc = t_.sum_rc, out.sum_dr = t_.sum_dr;
    out.not_finite = t_.not_finite, out.special_mismatch = t_.special_mismatch;
    out.special_reference = t_.special_reference, out.special_candidate = t_.special_candidate;
    out.zeros_reference = t_.zeros_reference, out.equal = t_.equal;
    for (int b = 0; b < kBands; ++b) out.below[b] = t_.below[b], out.tied[b] = t_.tied[b];
    out.max_ulp = t_.max_ulp, out.bits_known = t_.bits_known;
    out.differs_reference = t_.differs_reference, out.differs_candidate = t_.differs_candidate;
    out.any_candidate = t_.any_candidate;
    return out;
  }

 private:
  PARITY_HOST_DEVICE Element type_r() const { return Types::reference(pair_); }
  PARITY_HOST_DEVICE Element type_c() const { return Types::candidate(pair_); }
  PARITY_HOST_DEVICE double distance(int i) const {
    return fabs(decoded(candidate(place(i)), type_c()) - decoded(reference(place(i)), type_r()));
  }
  PARITY_HOST_DEVICE int64_t place(int i) const { return begin_ + int64_t{i} * kThreads; }
  PARITY_HOST_DEVICE Bits reference(int64_t at) const {
    return whole_register(static_cast<Bits>(raw_bits(pair_.reference, type_r(), at)));
  }
  PARITY_HOST_DEVICE Bits candidate(int64_t at) const {
    return whole_register(static_cast<Bits>(raw_bits(pair_.candidate, type_c(), at)));
  }
  PARITY_HOST_DEVICE static Bits magnitude(Bits bits, Element e) {
    return bits & static_cast<Bits>(magnitude_mask(format_of(e)));
  }
  PARITY_HOST_DEVICE static bool is_special(Bits magnitude, Element e) {
    return magnitude >= static_cast<Bits>(first_special(format_of(e)));
  }

  struct Batch {
    Bits r[kBatch], c[kBatch];
  };

  /// The batch at `i`; false, and nothing is read: the array ends before.
  PARITY_HOST_DEVICE bool read(int i, Batch& to) const {
    if (place(i + kBatch - 1) >= pair_.n) return false;
    PARITY_UNROLL
    for (int k = 0; k < kBatch; ++k) to.r[k] = reference(place(i + k)), to.c[k] = candidate(place(i + k));
    return true;
  }

  /// False, and nothing is added: not all of the batch is finite.
  PARITY_HOST_DEVICE bool add_finite(const Batch& batch, int i) {
    Bits most_r = 0, most_c = 0;
    PARITY_UNROLL
    for (int k = 0; k < kBatch; ++k) {
      const Bits mr = magnitude(batch.r[k], type_r()), mc = magnitude(batch.c[k], type_c());
      most_r = mr > most_r ? mr : most_r;
      most_c = mc > most_c ? mc : most_c;
    }
    if (is_special(most_r, type_r()) || is_special(most_c, type_c())) return false;
    uint32_t inside = 0;
    PARITY_UNROLL
    for (int k = 0; k < kBatch; ++k) inside |= add_finite(batch.r[k], batch.c[k], i + k) << (k * kBands);
    if constexpr (!Keep::kNothing) keep_inside_of_batch(i, inside);
    return true;
  }

  /// The `i`-th pair of the thread, whatever it is.
  PARITY_HOST_DEVICE void add_pair(int i) {
    const Bits r = reference(place(i)), c = candidate(place(i));
    const bool special_r = is_special(magnitude(r, type_r()), type_r()),
               special_c = is_special(magnitude(c, type_c()), type_c());
    if (special_r || special_c) return add_special(r, c, special_r, special_c);
    const uint32_t inside = add_finite(r, c, i);
    if (inside != 0) keep_inside(inside, distance(i));
  }

  PARITY_HOST_DEVICE void add_special(Bits r, Bits c, bool special_r, bool special_c) {
    add_any(r, c);
    const Kind kind_r = kind_of(decoded(r, type_r())), kind_c = kind_of(decoded(c, type_c()));
    t_.special_reference += special_r;
    t_.special_candidate += special_c;
    t_.special_mismatch += kind_r != kind_c;
    t_.equal += kind_r == kind_c;  // NaN equals NaN whatever its payload
    t_.not_finite += 1;
  }

  PARITY_HOST_DEVICE void add_any(Bits r, Bits c) {
    t_.zeros_reference += magnitude(r, type_r()) == 0;
    t_.differs_reference |= r ^ first_r_;
    t_.differs_candidate |= c ^ first_c_;
    t_.any_candidate |= magnitude(c, type_c());
  }

  /// Which bands |d| lies in, a bit each.
  PARITY_HOST_DEVICE uint32_t add_finite(Bits bits_r, Bits bits_c, int i) {
    add_any(bits_r, bits_c);
    const double r = decoded(bits_r, type_r()), c = decoded(bits_c, type_c()), d = c - r;
    if (fabs(d) > t_.max_d) {
      t_.max_d = fabs(d);
      t_.worst = i;
    }
    t_.sum_d += fabs(d);
    t_.sum_dd = fma(d, d, t_.sum_dd);
    t_.sum_r += fabs(r);
    t_.sum_c += fabs(c);
    t_.sum_rr = fma(r, r, t_.sum_rr);
    t_.sum_cc = fma(c, c, t_.sum_cc);
    t_.sum_rc = fma(r, c, t_.sum_rc);
    t_.sum_dr = fma(d, r, t_.sum_dr);
    add_bits(bits_r, bits_c, c);
    if constexpr (Keep::kNothing) return 0;
    return add_bands(fabs(d));
  }

  /// Equality and ULP of a finite pair whose candidate is `value`.
  PARITY_HOST_DEVICE void add_bits(Bits r, Bits c, double value) {
    const Format f = format_of(type_r());
    if (type_r() != type_c()) {
      uint64_t there = 0;
      t_.bits_known = t_.bits_known && encoded_exactly(value, f, there);
      if (!t_.bits_known) return;
      c = static_cast<Bits>(there);
    }
    t_.equal += r == c;
    const Bits apart = ulps_apart(r, c, f);
    t_.max_ulp = apart > t_.max_ulp ? apart : t_.max_ulp;
  }

  PARITY_HOST_DEVICE uint32_t add_bands(double d) {
    uint32_t inside = 0;
    PARITY_UNROLL
    for (int b = 0; b < kBands; ++b) {
      const uint32_t above = key_of(d) - bands_.band[b].low;  // both are less than 2^31, or the band is empty
      t_.below[b] += static_cast<int32_t>(above >> 31);
      const bool tied = kTiesAtOnce && d == bands_.band[b].tie;
      t_.tied[b] += tied;
      inside |= static_cast<uint32_t>(above <= bands_.band[b].width && !tied) << b;
    }
    return inside;
  }

  /// `inside`: the bands that |d| lies in, a bit each.
  PARITY_HOST_DEVICE void keep_inside(uint32_t inside, double d) {
    PARITY_UNROLL
    for (int b = 0; b < kBands; ++b) {
      if ((inside >> b & 1) == 0) continue;
      if (d == bands_.band[b].tie)
        t_.tied[b] += 1;
      else
        keep_(b, d);
    }
  }

  /// The same for the batch at `i`, kBands bits for each pair: few are set, and those pairs are read again.
  PARITY_HOST_DEVICE void keep_inside_of_batch(int i, uint32_t inside) {
    constexpr uint32_t kOfOne = (uint32_t{1} << kBands) - 1;
    while (inside != 0) {
      const int k = lowest_bit(inside) / kBands;
      keep_inside(inside >> (k * kBands) & kOfOne, distance(i + k));
      inside &= ~(kOfOne << (k * kBands));
    }
  }

  const Pair& pair_;
  const Bands& bands_;
  Keep& keep_;
  int64_t begin_;
  Bits first_r_, first_c_;
  Sums<Bits, int32_t> t_;
};

}  // namespace parity::kernels::cuda
