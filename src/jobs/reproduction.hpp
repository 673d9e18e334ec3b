// Does the reference's recording reproduce itself here? Before anything is judged by its program, the results that it
// recorded are held against what the program computes on this machine.
#pragma once
#include <string>
#include <vector>

#include "core/result.hpp"
#include "core/segment.hpp"
#include "judge/limits.hpp"
#include "trace/program.hpp"

namespace parity {

class Reproduction {
 public:
  Reproduction(const Dump& dump, const Program& program, const Thresholds& limits);

  /// The recorded value of a boundary, undefined when none is stored; held against `computed`, the program's result on
  /// the recorded values before it. Throws Error for a value that cannot be read.
  at::Tensor check(size_t boundary, const at::Tensor& computed);

  /// Untrusted rows about recorded results that do not come out here: the first ones in full, and how many more.
  std::vector<OpResult> rows() const;

 private:
  bool differs_in_ties(size_t boundary, const at::Tensor& recorded, const at::Tensor& computed) const;

  const Dump& dump_;
  const Program& program_;
  const Thresholds& limits_;
  const bool half_program_;      // bf16 or fp16 somewhere
  const std::string elsewhere_;  // why its kernels are others than this process's, in brackets; "" when they are not
  std::vector<OpResult> rows_;
};

}  // namespace parity
