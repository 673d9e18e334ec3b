// Numbers as a narrower format holds them, kept in the dtype that they came in: what engines round weights, cached keys
// and values and the operands of products to.
#pragma once
#include <ATen/ATen.h>

#include <array>

namespace parity {

using Rounding = at::Tensor (*)(const at::Tensor& values);

/// One number by itself. Beyond the largest finite number: infinite, as a cast gives it; fp8 saturates.
at::Tensor to_bf16(const at::Tensor& values);
at::Tensor to_fp16(const at::Tensor& values);
at::Tensor to_tf32(const at::Tensor& values);            // to nearest, ties away from zero (cvt.rna.tf32)
at::Tensor to_tf32_truncated(const at::Tensor& values);  // the low 13 bits left out
at::Tensor to_e4m3(const at::Tensor& values);
at::Tensor to_e5m2(const at::Tensor& values);

/// Scaled so that the largest magnitude of each group becomes the format's largest: a group is the whole tensor, or
/// what lies along `axes`.
at::Tensor scaled_to(const at::Tensor& values, at::IntArrayRef axes, double largest, Rounding rounding);
/// Rounded to whole numbers within [-limit, limit], `largest` of them being the largest magnitude of a group.
at::Tensor to_integers(const at::Tensor& values, at::IntArrayRef axes, int largest);

/// 256 steps from the least to the largest of what lies along `axis`. `zero`: whole numbers to be taken for those that
/// stand for 0, where their own are none: a port's fault.
struct ZeroPoint {
  int moved = 0;        // by so many steps
  bool none = false;    // left out: 0 is taken for it
  int stored_from = 0;  // the least of the numbers stored: 0, or -128 in signed bytes
};
at::Tensor to_int8_asymmetric(const at::Tensor& values, int64_t axis, const ZeroPoint& zero = {});
/// to_integers of 127 steps along `axis`, read with a zero point that is `moved` steps from 0: a port's fault.
at::Tensor to_int8_moved(const at::Tensor& values, int64_t axis, int moved);

/// Formats of blocks along `axis`; throw std::runtime_error where it is no multiple of the block.
at::Tensor to_int4_groups(const at::Tensor& values, int64_t axis, int64_t group);      // symmetric, absmax / 7
at::Tensor to_int4_asymmetric(const at::Tensor& values, int64_t axis, int64_t group);  // 16 steps from min to max
at::Tensor to_q8_0(const at::Tensor& values, int64_t axis, int64_t group);             // fp16 scale absmax / 127
at::Tensor to_q4_0(const at::Tensor& values, int64_t axis, int64_t group);             // fp16 scale extreme / -8
at::Tensor to_mxfp4(const at::Tensor& values, int64_t axis, int64_t group);            // OCP: e2m1, scale a power of 2

}  // namespace parity
