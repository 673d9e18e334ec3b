// What two sketches of one boundary say: a verdict, and in words what kind of difference it is.
#pragma once
#include <string>
#include <vector>

#include "core/result.hpp"
#include "measure/sketch.hpp"

namespace parity {

struct SketchedTensor {
  Sketch sketch;
  at::ScalarType dtype = at::kFloat;
};

/// `inherited`: unit roundoff of the coarsest dtype in the model; free-running errors come from anywhere in it.
/// Fills verdict, gate, diagnosis, limits and `free` of a row. Its shape is the reference's; shapes and dtype classes
/// are known to agree. Limits are those for whole tensors without a program (jobs/plain_job.hpp), widened by four
/// standard errors of the estimate: between "surely more" and "surely less" the verdict is inconclusive. A difference
/// that passes as a whole but sits in few elements, each far more than a rounding off, is inconclusive, too.
void judge_sketches(OpResult& row, const SketchedTensor& reference, const SketchedTensor& candidate, double inherited);

/// The kind of difference, from what is linear or exact in a sketch: a sign, a gain, an offset, the same numbers at
/// other places, a few elements, one slice of the tensor; "" when nothing is special about it. `limit`: relative L2
/// that roundings explain.
std::string sketch_diagnosis(const Sketch& reference, const Sketch& candidate, const SketchDifference& difference,
                             const std::vector<int64_t>& shape, double limit);

/// About how many numbers differ, from how many buckets do (linear counting: Whang, Vander-Zanden & Taylor 1990, ACM
/// TODS 15:208); negative when too many buckets differ to tell. Exact zeros elsewhere are needed: other kernels fill
/// every bucket.
double differing_numbers(const SketchDifference& difference, const Sketch& reference);

}  // namespace parity
