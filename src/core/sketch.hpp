// A few kB that stand for a tensor of any size (probes/FORMAT.md, "Sketches").
#pragma once
#include <c10/core/ScalarType.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace parity {

/// CountSketch and exact statistics of the numbers of one tensor (of a complex one: real and imaginary parts in turn).
struct Sketch {
  static constexpr int64_t kMostBuckets = 4096;

  std::vector<double> buckets;         // a power of two of them
  int64_t count = 0;                   // numbers
  int64_t nan = 0, inf = 0, zero = 0;  // how many of them
  double sum = 0, sum_squares = 0;     // of the finite ones, as the rest
  double min = INFINITY, max = -INFINITY;
  uint64_t specials = 0;             // hash of where the NaN, +Inf and -Inf are
  std::vector<at::ScalarType> fits;  // narrower dtypes that hold every finite number exactly

  double norm() const { return std::sqrt(sum_squares); }
};

}  // namespace parity
