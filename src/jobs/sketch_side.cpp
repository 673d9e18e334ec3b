#include "jobs/sketch_side.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dump/sketch.hpp"

namespace parity {
namespace {

// As FORMAT.md names the links in a full recording.
std::string named(const std::string& role, int call, const std::string& path) {
  if (role == "output") return path;
  std::string name = path;
  for (size_t at = 0; (at = name.find('/', at)) != std::string::npos;) name.replace(at, 1, "%2F");
  return role == "weight" ? "weights/" + name : fmt::format("inputs/{}/{}", call, name);
}

std::vector<SketchSideTensor> of_sketches(const Dump& dump) {
  std::vector<SketchSideTensor> tensors;
  for (const SketchPoint& point : sketch_points(dump)) {
    if (point.key.empty()) continue;  // nothing was stored (sparse)
    SketchSideTensor t;
    t.path = named(point.role, point.call, point.path);
    t.call = point.role == "output" ? point.call : 0;
    t.kind = point.role != "output" ? point.role : point.kind.empty() ? "tensor" : point.kind;
    t.dtype = point.dtype;
    t.shape = point.shape;
    t.source = point.source;
    if (point.sketched)
      t.read = [&dump, point] { return read_sketch(dump, point); };
    else
      t.load = [&dump, value = Value{-1, point.dtype, point.shape, point.key, false, ""}] {
        return stored_value(dump, value);
      };
    tensors.push_back(std::move(t));
  }
  std::stable_partition(tensors.begin(), tensors.end(),
                        [](const auto& t) { return t.kind == "input" || t.kind == "weight"; });
  return tensors;
}

SketchSideTensor stored(const Dump& dump, std::string path, const char* kind, at::ScalarType dtype,
                        const std::vector<int64_t>& shape, const std::string& key) {
  SketchSideTensor t;
  t.path = std::move(path);
  t.kind = kind;
  t.dtype = dtype;
  t.shape = shape;
  t.load = [&dump, value = Value{-1, dtype, shape, key, false, ""}] { return stored_value(dump, value); };
  return t;
}

// Inputs and weights of a full recording: leaves of its program, or a writer's points.
std::vector<SketchSideTensor> given(const Dump& dump, const Program& program) {
  std::vector<SketchSideTensor> tensors;
  for (const Leaf& leaf : program.leaves)
    for (const std::string& link : leaf.names) {
      const char* kind = link.starts_with("inputs/") ? "input" : link.starts_with("weights/") ? "weight" : nullptr;
      if (kind != nullptr && !leaf.value.key.empty())
        tensors.push_back(stored(dump, link, kind, leaf.value.dtype, leaf.value.shape, leaf.value.key));
    }
  for (const SketchPoint& p : sketch_points(dump))
    if (p.role != "output" && !p.key.empty())
      tensors.push_back(
          stored(dump, named(p.role, p.call, p.path), p.role == "input" ? "input" : "weight", p.dtype, p.shape, p.key));
  return tensors;
}

std::vector<SketchSideTensor> of_values(const OpenedSide& side) {
  std::vector<SketchSideTensor> tensors;
  if (side.dump) tensors = given(*side.dump, side.program);
  for (const CandidateTensor& from : side.tensors) {
    SketchSideTensor t;
    t.path = from.path;
    t.call = from.call;
    t.kind = "tensor";
    t.dtype = from.dtype;
    t.shape = from.shape;
    t.of_op = from.of_op;
    t.source = from.source;
    t.load = from.load;
    if (const auto found = side.program.find(from.path, from.call)) {
      t.boundary = static_cast<int64_t>(*found);
      if (side.program.boundaries[*found].kind != "point") t.kind = side.program.boundaries[*found].kind;
    }
    tensors.push_back(std::move(t));
  }
  return tensors;
}

}  // namespace

std::vector<SketchSideTensor> sketch_side(const OpenedSide& side) {
  return side.sketched() ? of_sketches(*side.dump) : of_values(side);
}

}  // namespace parity
