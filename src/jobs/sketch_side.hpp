// One side of a comparison of sketches: named tensors, each as a sketch, whole, or both.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "jobs/sides.hpp"
#include "measure/sketch.hpp"

namespace parity {

struct SketchSideTensor {
  std::string path;  // inputs and weights: as FORMAT.md names their groups
  int call = 0;
  std::string kind;  // class of the module, "input", "weight", else "tensor"
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  bool of_op = false;                  // an op's result inside a module
  int64_t boundary = -1;               // in the side's program, -1: none
  std::string source{};                // the line that computed it, "" if not recorded
  std::function<at::Tensor()> load{};  // empty: only the sketch is there
  std::function<Sketch()> read{};      // empty: only the values are
};

/// Everything that can be compared: inputs, weights, then outputs in order. `side` must outlive it. Throws Error.
std::vector<SketchSideTensor> sketch_side(const OpenedSide& side);

}  // namespace parity
