// Measuring a port's tensor, computed from the port's own inputs by the reference's program in several arithmetics. No
// limit and no judgement here.
#pragma once
#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "measure/evidence.hpp"

namespace parity {

/// The same numbers in fp64 (complex128; integers as they are).
at::Tensor raised(const at::Tensor& tensor);

at::Tensor finite_or_zero(const at::Tensor& tensor);

/// value - base, element by element in fp64; the value itself where `base` is undefined. Nothing of its size is made.
struct Difference {
  at::Tensor value, base;

  Difference(at::Tensor of, at::Tensor less = {})  // NOLINT(google-explicit-constructor)
      : value(std::move(of)), base(std::move(less)) {}
};

/// d on g. Non-finite elements of either are left out; all zero when nothing is left or g is zero. `weight`, if
/// defined, of the same shape, is multiplied into both. `parts`: so many numbers, each of as many elements behind one
/// another, may be what is off (a group norm's statistics); then they are counted, and not elements and rows. 0:
/// unknown. Throws Error for shapes that do not agree.
Projection project(const Difference& difference, const Difference& direction, double reference_norm,
                   const at::Tensor& weight = {}, int64_t parts = 0);

/// Of the elements that differ: the share whose magnitude is smaller in the candidate; 0 when none differs.
double share_towards_zero(const at::Tensor& reference, const at::Tensor& candidate);

/// The values at one boundary, in the reference's layout, all computed from the candidate's values before it.
struct LocalValues {
  at::Tensor candidate;           // as recorded
  at::Tensor oracle;              // fp64
  at::Tensor recorded;            // the reference's dtypes and kernels
  std::vector<at::Tensor> valid;  // the reference's dtypes, other valid arithmetics (trace/replay.hpp, Arithmetic)
};

/// Throws Error for shapes that do not agree.
Evidence measure_local(const LocalValues& values);

/// Variance of a valid arithmetic's difference from `recorded` at each element: its own rounding's (u x)^2 / 3, and
/// what the others in `valid` differ by in its row. Dividing by its root makes a matched filter of a projection (white
/// noise); without it the few largest elements decide.
at::Tensor noise_by_element(const at::Tensor& recorded, const std::vector<at::Tensor>& valid);

/// Of `project` without and with `weight` (that root's inverse) the one that stands out more; without, where `weight`
/// is undefined. Its sizes, and what it leaves, are without.
Projection stronger_projection(const Difference& difference, const Difference& direction, double reference_norm,
                               const at::Tensor& weight, int64_t parts = 0);

/// Is each finite value one of `dtype`'s numbers, whatever container it lies in?
bool all_held_by(const at::Tensor& values, at::ScalarType dtype);

/// The narrowest of bf16 and fp16 that holds all values of `candidate`, both in fp32; nullopt where neither does.
std::optional<Narrower> held_by_half(const at::Tensor& recorded, const at::Tensor& candidate);

/// The dtype that a tensor's values need: bf16 values kept in an fp32 or fp64 container count as bf16 when `narrow` is
/// bf16 (a port that could not write bf16 and converted), else the container's dtype.
at::ScalarType effective_dtype(const at::Tensor& values, at::ScalarType narrow);

}  // namespace parity
