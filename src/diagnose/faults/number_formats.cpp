#include "diagnose/faults/number_formats.hpp"

#include <stdexcept>

#include "diagnose/faults/arithmetic_constants.hpp"

namespace parity {
namespace {

at::Tensor through(const at::Tensor& values, at::ScalarType format) {
  return values.to(at::kFloat).to(format).to(values.scalar_type());
}

// The upper 19 bits of a float, after `added` is added to the others.
at::Tensor upper_bits(const at::Tensor& values, int32_t added) {
  const at::Tensor floats = values.to(at::kFloat).contiguous();
  const at::Tensor bits = at::bitwise_and(floats.view(at::kInt) + added, ~((1 << kTf32Dropped) - 1));
  return at::where(at::isfinite(floats), bits.view(at::kFloat), floats).to(values.scalar_type());
}

at::Tensor no_zero(const at::Tensor& scale) { return at::where(scale.eq(0), at::ones_like(scale), scale); }

// The blocks of `axis` as the last axis: (…, blocks, group).
at::Tensor in_blocks(const at::Tensor& values, int64_t axis, int64_t group) {
  const at::Tensor last = values.movedim(axis, -1).contiguous();
  if (last.size(-1) % group != 0) throw std::runtime_error("no whole number of blocks");
  return last.unflatten(-1, {last.size(-1) / group, group});
}

at::Tensor out_of_blocks(const at::Tensor& blocks, int64_t axis) {
  return blocks.flatten(-2, -1).movedim(-1, axis).contiguous();
}

// scaled_to, whatever rounds.
template <class F>
at::Tensor scaled(const at::Tensor& values, at::IntArrayRef axes, double largest, F&& rounding) {
  const at::Tensor magnitude = values.abs();
  const at::Tensor scale = no_zero((axes.empty() ? magnitude.amax() : magnitude.amax(axes, true)) / largest);
  return rounding(values / scale) * scale;
}

// `steps` of them from the least to the largest of what lies along `axis`.
at::Tensor asymmetric(const at::Tensor& values, int64_t axis, int steps, const ZeroPoint& zero = {}) {
  const at::Tensor lowest = values.amin({axis}, true), highest = values.amax({axis}, true);
  const at::Tensor scale = no_zero((highest - lowest) / steps);
  const at::Tensor own = (-lowest / scale).round() + zero.stored_from;
  const at::Tensor stored = ((values / scale).round() + own).clamp(zero.stored_from, zero.stored_from + steps);
  return (zero.none ? stored : stored - own - zero.moved) * scale;
}

}  // namespace

at::Tensor to_bf16(const at::Tensor& values) { return through(values, at::kBFloat16); }
at::Tensor to_fp16(const at::Tensor& values) { return through(values, at::kHalf); }
at::Tensor to_tf32(const at::Tensor& values) { return upper_bits(values, 1 << (kTf32Dropped - 1)); }
at::Tensor to_tf32_truncated(const at::Tensor& values) { return upper_bits(values, 0); }
at::Tensor to_e4m3(const at::Tensor& values) {
  return through(values.clamp(-kLargestE4m3, kLargestE4m3), at::kFloat8_e4m3fn);
}
at::Tensor to_e5m2(const at::Tensor& values) {
  return through(values.clamp(-kLargestE5m2, kLargestE5m2), at::kFloat8_e5m2);
}

at::Tensor scaled_to(const at::Tensor& values, at::IntArrayRef axes, double largest, Rounding rounding) {
  return scaled(values, axes, largest, rounding);
}

at::Tensor to_integers(const at::Tensor& values, at::IntArrayRef axes, int largest) {
  return scaled(values, axes, largest, [](const at::Tensor& t) { return t.round(); });
}

at::Tensor to_int8_asymmetric(const at::Tensor& values, int64_t axis, const ZeroPoint& zero) {
  return asymmetric(values, axis, kInt8Steps, zero);
}

at::Tensor to_int8_moved(const at::Tensor& values, int64_t axis, int moved) {
  return scaled(values, {axis}, kLargestInt8, [moved](const at::Tensor& t) { return t.round() - moved; });
}

at::Tensor to_int4_groups(const at::Tensor& values, int64_t axis, int64_t group) {
  return out_of_blocks(to_integers(in_blocks(values, axis, group), {-1}, kLargestInt4), axis);
}

at::Tensor to_int4_asymmetric(const at::Tensor& values, int64_t axis, int64_t group) {
  return out_of_blocks(asymmetric(in_blocks(values, axis, group), -1, kInt4Steps), axis);
}

at::Tensor to_q8_0(const at::Tensor& values, int64_t axis, int64_t group) {
  const at::Tensor blocks = in_blocks(values, axis, group).to(at::kFloat);
  const at::Tensor scale = blocks.abs().amax({-1}, true) / kLargestInt8;
  const at::Tensor steps = (blocks * no_zero(scale).reciprocal()).round();
  return out_of_blocks(steps * to_fp16(scale), axis).to(values.scalar_type());
}

at::Tensor to_q4_0(const at::Tensor& values, int64_t axis, int64_t group) {
  const at::Tensor blocks = in_blocks(values, axis, group).to(at::kFloat);
  const at::Tensor extreme = blocks.gather(-1, blocks.abs().argmax(-1, true));  // with its sign
  const at::Tensor scale = extreme / -kQ4Zero;
  const at::Tensor steps = (blocks * no_zero(scale).reciprocal() + (kQ4Zero + kHalfStep)).floor().clamp(0, kInt4Steps);
  return out_of_blocks((steps - kQ4Zero) * to_fp16(scale), axis).to(values.scalar_type());
}

at::Tensor to_mxfp4(const at::Tensor& values, int64_t axis, int64_t group) {
  const at::Tensor blocks = in_blocks(values, axis, group);
  const at::Tensor largest = no_zero(blocks.abs().amax({-1}, true));
  const at::Tensor scale = at::exp2(largest.log2().floor() - 2);  // the largest exponent of e2m1 is 2
  const at::Tensor scaled = blocks / scale, magnitude = scaled.abs();
  const at::Tensor step =
      at::where(magnitude.lt(4), at::where(magnitude.lt(2), kHalfStep, 1), 2).to(scaled.scalar_type());
  return out_of_blocks((scaled / step).round().mul(step).clamp(-kLargestE2m1, kLargestE2m1) * scale, axis);
}

}  // namespace parity
