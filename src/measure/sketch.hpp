// Making sketches of tensors, and what two of them say about the difference of the tensors. No limit, no verdict.
#pragma once
#include <cstdint>

#include "core/sketch.hpp"

namespace at {
class Tensor;
}

namespace parity {

/// The 64 bits that say where number `index` of a tensor goes: bit 63 is its sign, bits 51 … 62 its bucket of 4096.
/// splitmix64's output function (Steele, Lea, Flood 2014, OOPSLA) of a counter that begins at FORMAT.md's seed.
inline uint64_t sketch_hash(uint64_t index) {
  uint64_t z = index * 0x9E3779B97F4A7C15 + 0x7061726974792D31;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}
inline size_t sketch_bucket(uint64_t hash) { return (hash >> 51) & (Sketch::kMostBuckets - 1); }

/// How many buckets a recorder gives a tensor of `count` numbers: one per 512, a power of two, 512 … 4096.
int64_t sketch_buckets(int64_t count);

/// The sketch of a tensor of any dtype and layout; `buckets` a power of two up to 4096. Block by block, so memory does
/// not grow with the tensor; the same digits for any thread count. Equal to the recorders' up to the order of fp64
/// sums.
Sketch sketch_of(const at::Tensor& tensor, int64_t buckets);

/// With fewer buckets: bucket b of many is bucket b mod `buckets` of few.
std::vector<double> folded(const std::vector<double>& buckets, size_t size);

/// What S(candidate) - S(reference) = S(candidate - reference) says.
struct SketchDifference {
  std::vector<double> buckets;  // of the difference
  double norm = 0;              // ||candidate - reference||, estimated without bias in its square
  double rel_l2 = 0;            // over the reference's exact norm; infinite when that is 0 and the difference is not
  double standard_error =
      0;             // of rel_l2, relative: at most 1 / sqrt(2 buckets) (Thorup & Zhang 2012, SIAM J. Comput. 41:293)
  double floor = 0;  // rel_l2 below this cannot be told from the rounding of the fp64 sums
};

/// Both of tensors of one shape. The greater number of buckets is folded to the smaller.
SketchDifference difference(const Sketch& reference, const Sketch& candidate);

}  // namespace parity
