// A transformer block and the head behind the last one.
#include <fmt/format.h>

#include "models/wan/model.hpp"

namespace parity {

at::Tensor WanModel::norm(std::string_view name, const at::Tensor& x, const Affine& affine, Probe& probe) const {
  const auto compute = path_.norm == Slot::input ? x.scalar_type() : dtype(path_.norm);
  const auto result = path_.norm_out == Slot::input ? x.scalar_type() : dtype(path_.norm_out);
  return probe(name, ops_.layer_norm(x, affine.weight, affine.bias, config_.eps, compute, result));
}

// May a norm and what follows it up to the cast `to` be one pass? Only where they round nothing but the result.
bool WanModel::in_one_pass(const at::Tensor& x, WanCast to, Probe& probe) const {
  const auto stored = x.scalar_type();
  if (probe.active() || casts_[static_cast<size_t>(to)].to != stored || stored == at::kHalf) return false;
  const auto wide = stored == at::kDouble ? at::kDouble : at::kFloat;
  const auto of = [&](Slot slot) { return slot == Slot::input ? stored : dtype(slot); };
  return of(path_.norm) == wide && of(path_.norm_out) == wide;
}

// Its result is already cast where it was one pass.
at::Tensor WanModel::affine_norm(std::string_view name, const at::Tensor& x, const Affine& affine, WanCast to,
                                 Probe& probe) const {
  if (!ops_.norm_modulate || !in_one_pass(x, to, probe)) return norm(name, x, affine, probe);
  return ops_.norm_modulate(x, affine.weight.view({1, 1, -1}), affine.bias.view({1, 1, -1}), config_.eps);
}

at::Tensor WanModel::modulated(std::string_view norm_name, std::string_view name, const at::Tensor& x,
                               const at::Tensor& scale, const at::Tensor& shift, WanCast to, Probe& probe) const {
  if (ops_.norm_modulate && scale.size(1) == 1 && in_one_pass(x, to, probe))
    return ops_.norm_modulate(x, 1 + scale, shift, config_.eps);
  auto y = norm(norm_name, x, {}, probe);
  y = probe(name, ops_.modulate(std::move(y), scale, shift, precision_));
  return cast(to, y, probe);
}

at::Tensor WanModel::gated(std::string_view name, const at::Tensor& x, at::Tensor y, const at::Tensor& gate, WanCast to,
                           Probe& probe) const {
  if (ops_.gate_residual && gate.size(1) == 1 && x.scalar_type() == y.scalar_type() && in_one_pass(x, to, probe))
    return ops_.gate_residual(x, std::move(y), gate);
  return cast(to, probe(name, ops_.gate(x, std::move(y), gate, precision_)), probe);
}

at::Tensor WanModel::block(int64_t index, at::Tensor x, const Conditions& c, Probe& probe) const {
  const auto& w = weights_.blocks[index];
  const Probe::Scope in_block(probe, fmt::format("blocks.{}", index));
  // shift, scale, gate of self-attention, then of the FFN
  const auto m = ops::parts_of(probe("/modulation", ops_.modulation(w.modulation, c.e0, c.axis)), c.axis);

  auto y = modulated(".norm1", "/mul_add_add.0", x, m[1], m[0], WanCast::self_attn_in, probe);
  y = self_attention(w.self_attn, y, c, probe);
  x = gated("/mul_add.0", x, std::move(y), m[2], WanCast::residual, probe);

  const auto& point = casts_[static_cast<size_t>(WanCast::norm3_in)];
  y = path_.norm3_in == Slot::context ? cast_to(WanCast::norm3_in, x, c.context_dtype, point.recorded, probe) : x;
  if (config_.cross_attn_norm) y = affine_norm(".norm3", y, w.norm3, WanCast::cross_attn_in, probe);
  y = cross_attention(w.cross_attn, cast(WanCast::cross_attn_in, y, probe), c, probe);
  x = probe("/add.0", ops_.add(std::move(x), y));

  y = modulated(".norm2", "/mul_add_add.1", x, m[4], m[3], WanCast::ffn_in, probe);
  y = linear(".ffn.0", y, w.ffn0, probe);
  y = probe(".ffn.1", ops_.gelu(std::move(y), GeluForm::tanh));
  y = linear(".ffn.2", y, w.ffn2, probe);
  return probe("", gated("/mul_add.1", x, std::move(y), m[5], WanCast::block_out, probe));
}

at::Tensor WanModel::head(const at::Tensor& x, const Conditions& c, const Grid& grid, Probe& probe) const {
  const auto m = ops::parts_of(
      probe("head/modulation", ops_.modulation(weights_.head_modulation, c.e.unsqueeze(c.axis), c.axis)), c.axis);
  const auto wide = dtype(Slot::f32);
  auto y = probe("head.norm", ops_.layer_norm(x, {}, {}, config_.eps, wide, wide));
  y = probe("head/mul_add_add.0", ops_.modulate(std::move(y), m[1], m[0], precision_));
  y = linear("head.head", cast(WanCast::head_in, y, probe), weights_.head, probe);
  return probe("", ops_.unpatchify(y, grid, config_.patch));
}

}  // namespace parity
