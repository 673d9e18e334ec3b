// Sketches in a recording (probes/FORMAT.md, "Sketches"): a few kB that stand for a tensor of any size. Reading alone;
// making and comparing them is src/compare/sketch.hpp.
#pragma once
#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "dump/dump.hpp"

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

/// A named tensor of a recording of level sketch.
struct SketchPoint {
  std::string path, role, kind;  // kind: class of the module that returned it, "" when unknown
  int call = 0;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  std::string key;  // /values/<key>: its sketch, or the tensor itself; empty: nothing is stored of it
  bool sketched = false;
  size_t event = 0;  // its line in /trace/events, from 0
};

/// Everything named, in the order of recording. Throws Error naming the event: malformed, a sketch of another version,
/// one that holds a part of its tensor only (the files of all ranks have to be merged first).
std::vector<SketchPoint> sketch_points(const Dump& dump);

/// The sketch of a point that has one. Throws Error for a damaged one: absent, not one row of a power of two of fp64
/// buckets, up to 4096, not finite, counts that do not fit the shape.
Sketch read_sketch(const Dump& dump, const SketchPoint& point);

}  // namespace parity
