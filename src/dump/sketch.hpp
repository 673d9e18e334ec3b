// Sketches in a recording (probes/FORMAT.md, "Sketches"): a few kB that stand for a tensor of any size. Reading alone;
// making and comparing them is src/measure/sketch.hpp.
#pragma once
#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "core/sketch.hpp"
#include "dump/dump.hpp"

namespace parity {

/// A named tensor of a recording of level sketch.
struct SketchPoint {
  std::string path, role, kind;  // kind: class of the module that returned it, "" when unknown
  int call = 0;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  std::string key;  // /values/<key>: its sketch, or the tensor itself; empty: nothing is stored of it
  bool sketched = false;
  std::string source;  // the line that computed it, "" if not recorded
  size_t event = 0;    // its line in /trace/events, from 0
};

/// Everything named, in the order of recording. Throws Error naming the event: malformed, a sketch of another version,
/// one that holds a part of its tensor only (the files of all ranks have to be merged first).
std::vector<SketchPoint> sketch_points(const Dump& dump);

/// The sketch of a point that has one. Throws Error for a damaged one: absent, not one row of a power of two of fp64
/// buckets, up to 4096, not finite, counts that do not fit the shape.
Sketch read_sketch(const Dump& dump, const SketchPoint& point);

}  // namespace parity
