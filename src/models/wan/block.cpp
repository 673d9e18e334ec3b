// A transformer block and the head behind the last one.
#include <fmt/format.h>

#include "models/wan/model.hpp"

namespace parity {

at::Tensor WanModel::norm(std::string_view name, const at::Tensor& x, const Affine& affine, Probe& probe) const {
  const auto compute = path_.norm == Slot::input ? x.scalar_type() : dtype(path_.norm);
  const auto result = path_.norm_out == Slot::input ? x.scalar_type() : dtype(path_.norm_out);
  return probe(name, ops_.layer_norm(x, affine.weight, affine.bias, config_.eps, compute, result));
}

at::Tensor WanModel::block(int64_t index, at::Tensor x, const Conditions& c, Probe& probe) const {
  const auto& w = weights_.blocks[index];
  const Probe::Scope in_block(probe, fmt::format("blocks.{}", index));
  // shift, scale, gate of self-attention, then of the FFN
  const auto m = ops::parts_of(probe("/modulation", ops_.modulation(w.modulation, c.e0, c.axis)), c.axis);

  auto y = norm(".norm1", x, {}, probe);
  y = probe("/mul_add_add.0", ops_.modulate(std::move(y), m[1], m[0], precision_));
  y = self_attention(w.self_attn, cast(WanCast::self_attn_in, y, probe), c, probe);
  x = probe("/mul_add.0", ops_.gate(x, std::move(y), m[2], precision_));
  x = cast(WanCast::residual, x, probe);

  const auto& point = casts_[static_cast<size_t>(WanCast::norm3_in)];
  y = path_.norm3_in == Slot::context ? cast_to(WanCast::norm3_in, x, c.context_dtype, point.recorded, probe) : x;
  if (config_.cross_attn_norm) y = norm(".norm3", y, w.norm3, probe);
  y = cross_attention(w.cross_attn, cast(WanCast::cross_attn_in, y, probe), c, probe);
  x = probe("/add.0", ops_.add(std::move(x), y));

  y = norm(".norm2", x, {}, probe);
  y = probe("/mul_add_add.1", ops_.modulate(std::move(y), m[4], m[3], precision_));
  y = linear(".ffn.0", cast(WanCast::ffn_in, y, probe), w.ffn0, probe);
  y = probe(".ffn.1", ops_.gelu(std::move(y), GeluForm::tanh));
  y = linear(".ffn.2", y, w.ffn2, probe);
  x = probe("/mul_add.1", ops_.gate(x, std::move(y), m[5], precision_));
  return probe("", cast(WanCast::block_out, x, probe));
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
