// What the sweep over the op table needs to know about an op: cases, an independent fp64 reference, and how wrong it
// may be.
#pragma once
#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parity {

/// One set of arguments, in float64. The sweep rounds them to the storage dtype before both sides see them.
struct OpCase {
  std::string name;
  std::vector<at::Tensor> in;
};

/// The accepted error of an op whose arguments are stored in `storage`. Absent: not limited, never zero.
struct OpBound {
  at::ScalarType storage;
  std::optional<double> ulp{};  // of the result's dtype, largest element; for elementwise ops
  std::optional<double>
      rel_l2{};  // ||actual - expected|| / ||expected|| in unit roundoffs of the result's dtype; for sums
};

/// The same op by other code, held to the same reference.
struct OpVariant {
  std::string_view name;  // "own": the kernels of kernels/cpu
  at::Tensor (*run)(const OpCase&);
  std::vector<OpBound> bounds;
};

/// A row of the op table. The bounds stand beside the op's code with the measured worst case.
struct OpRow {
  std::string_view name;
  at::Tensor (*reference)(const OpCase&);  // plain loops over doubles; shares no code with `run`
  at::Tensor (*run)(const OpCase&);        // the op under test, on arguments in the storage dtype
  std::vector<OpCase> (*cases)();
  // About twice the worst measured with 2 threads on AVX-512 + AMX: other kernels round elsewhere.
  std::vector<OpBound> bounds;
  std::vector<OpVariant> variants{};  // besides `run`, which is LibTorch's ("aten")
};

/// What was measured; no judgement here.
struct OpError {
  int64_t count = 0, zeros = 0;    // elements; those whose expected value is 0
  int64_t special_mismatch = 0;    // NaN or infinity on one side only, or unlike
  double max_ulp = 0, rel_l2 = 0;  // rel_l2 in unit roundoffs of `actual`'s dtype
  int64_t worst = -1;              // flat index of max_ulp
  double worst_expected = 0, worst_actual = 0;
};

/// `expected` (float64) is rounded to `actual`'s dtype for the ULPs, so that only the op's own error counts; rel_l2 is
/// against the unrounded. Complex tensors count as pairs. Throws Error when the shapes differ.
OpError measure_op(const at::Tensor& expected, const at::Tensor& actual);

/// Numbers with a real spread for cases: standard normal times `scale` plus `shift`, by a fixed generator. (shape),
/// float64.
at::Tensor spread(at::IntArrayRef shape, uint64_t seed, double scale = 1.0, double shift = 0.0);

}  // namespace parity
