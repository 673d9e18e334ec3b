// What is kept of a tensor's content for pairing: a few values of it, in every layout another program may keep it in.
#pragma once
#include <ATen/ATen.h>

#include <array>
#include <vector>

#include "pair/name_map.hpp"

namespace parity {

/// One way to read a tensor: a part of it, its axes in some order; then flat. Two tensors hold the same numbers under a
/// reading exactly when their flat sequences agree, so any reshape that keeps the order is covered as well.
struct Reading {
  static constexpr size_t kSamples = 32;
  std::array<int64_t, 3> slice{};         // axis, begin, length; length 0: the whole tensor
  std::vector<int64_t> factors;           // the last axis read as so many axes; empty: as one. Then a permutation
  std::vector<int64_t> permutation;       // of all axes; empty: as they are
  int64_t count = 0;                      // elements
  float scale = 0;                        // median of the samples' absolute values, those that are not 0
  float distinct = 0;                     // different values among the samples
  bool integers = true;                   // all samples are: a count, a mask, a position
  std::array<float, kSamples> samples{};  // asinh(x / scale): a few huge channels must not be all that counts
  bool whole() const { return slice[2] == 0; }
  bool as_is() const { return whole() && permutation.empty(); }
};

struct Fingerprint {
  double mean = 0, rms = 0;       // of the finite elements
  int64_t nonfinite = 0;          // elements
  std::vector<Reading> readings;  // the first: as it is. Empty for a tensor without elements
};

/// Samples stand at fixed places of the flat sequence (its length times the fractional parts of multiples of the golden
/// ratio, which no axis length resonates with). Readings: every order of the axes longer than 1 when there are up to
/// four, else every exchange of two neighbouring groups of axes (NCDHW <-> NDHWC); the parts of a fused tensor: halves
/// and thirds of the last axis (and of axis 1 from rank 4 on), the elements of an axis of 2 or 3, and the query, key
/// and value parts of grouped-query attention. Of an engine's tensor also heads with their rows interleaved (or, of
/// interleaved ones, in halves) and scores without the padding of its key cache. Costs one pass and about 0.2 kB a
/// reading. Of the reference's tensor only whole readings: parts are looked for in the port's.
enum class Origin { reference, model, engine };
Fingerprint fingerprint_of(const at::Tensor& tensor, Origin origin = Origin::model);

/// How far two readings lie apart, as one relative difference: sqrt(1 - c), where c is Lin's concordance correlation of
/// the samples times the agreement of their scales (Lin 1989, Biometrics 45:255; unlike Pearson's it sees gain and
/// offset). About the relative L2 difference where that is small, 1 where nothing agrees or nothing can be said.
double content_distance(const Reading& a, const Reading& b);

/// 1 - 2 a b / (a^2 + b^2) of two scales, both above 0 or both 0; in a form that is never below 0. Rounded, the other
/// one was -1e-16 for equal contents whose sums had been taken in another order: its root is NaN.
double scale_disagreement(double a, double b);

/// 0 … 1: what agreement of two readings up to `distance` is worth; next to nothing for a mask, a constant, a handful
/// of numbers, unless these have decimals that agree.
double content_weight(const Reading& a, const Reading& b, double distance);

/// The layout under which a candidate of shape `candidate`, read so, becomes the reference of shape `reference`, read
/// so.
Layout layout_between(const Reading& reading, at::IntArrayRef candidate, const Reading& reference_reading,
                      at::IntArrayRef reference);

}  // namespace parity
