// The model's casts as data: where they point, to which dtype they go, and whether the recorded program has them.
#include <fmt/format.h>

#include "models/wan/model.hpp"

namespace parity {

at::ScalarType WanModel::recorded(Slot slot) const {
  switch (slot) {
    case Slot::low:
      return low_;
    case Slot::weight:
      return time_low_;
    case Slot::context:  // fp32 image tokens beside half-width text tokens make the whole context fp32
      return config_.image() && path_.image_norm_out == Slot::f32 ? at::kFloat : low_;
    default:
      return at::kFloat;
  }
}

at::ScalarType WanModel::dtype(Slot slot) const { return redirect(recorded(slot), precision_); }

// Names are relative to where the cast stands: a block, its attention, or the model.
void WanModel::place_casts() {
  const auto stream = recorded(path_.residual);  // after the first gate
  const auto norm3_in = path_.norm3_in == Slot::context ? recorded(Slot::context) : stream;
  const bool norm3_keeps = !config_.cross_attn_norm || path_.norm_out == Slot::input;
  const auto norm3_out = norm3_keeps ? norm3_in : at::kFloat;
  const auto turned = path_.rms == RmsForm::round_once ? low_ : at::kFloat;  // q and k before SDPA
  const auto image_norm = path_.image_norm_out == Slot::f32 ? at::kFloat : low_;
  const auto sinusoid = path_.sinusoid == SinusoidForm::f32 ? at::kFloat : at::kDouble;
  const auto put = [this](WanCast which, std::string_view name, at::ScalarType from, at::ScalarType to) {
    casts_[static_cast<size_t>(which)] = {name, redirect(to, precision_), from != to};
  };
  put(WanCast::latents, "patch_embedding/cast.0", low_,
      low_);  // the two that depend on the inputs are settled in the call
  put(WanCast::text, "text_embedding/cast.0", low_, low_);
  put(WanCast::context, "", low_, low_);
  put(WanCast::sinusoid, "condition/cast.0", sinusoid, recorded(path_.sinusoid_out));
  put(WanCast::time, "condition/cast.1", recorded(path_.time_mlp), recorded(path_.time_out));
  put(WanCast::fps, "fps_embedding/cast.0", fps_low_, recorded(path_.time_projection));
  put(WanCast::image, "img_emb/cast.0", image_norm, low_);
  put(WanCast::self_attn_in, "/cast.0", at::kFloat, low_);
  put(WanCast::residual, "/cast.1", at::kFloat, stream);
  put(WanCast::norm3_in, "/cast.2", stream, norm3_in);
  put(WanCast::cross_attn_in, "/cast.3", norm3_out, low_);
  put(WanCast::ffn_in, "/cast.4", at::kFloat, low_);
  put(WanCast::self_attn_q, "/cast.0", turned, low_);
  put(WanCast::self_attn_k, "/cast.1", turned, low_);
  put(WanCast::cross_attn_q, "/cast.0", turned, low_);
  put(WanCast::cross_attn_k, "/cast.1", turned, low_);
  put(WanCast::cross_attn_k_img, "/cast.2", turned, low_);
  put(WanCast::cross_attn_o, "/cast.3", path_.attention_out == Slot::input ? turned : low_, low_);
  put(WanCast::block_out, "", at::kFloat, recorded(path_.block_out));
  put(WanCast::head_in, "head/cast.0", at::kFloat, recorded(path_.head));
}

at::Tensor WanModel::cast(WanCast which, const at::Tensor& x, Probe& probe) const {
  const auto& point = casts_[static_cast<size_t>(which)];
  return cast_to(which, x, point.to, point.recorded, probe);
}

at::Tensor WanModel::cast_to(WanCast which, const at::Tensor& x, at::ScalarType to, bool is_recorded,
                             Probe& probe) const {
  auto y = ops_.cast(which, x, to);
  const auto name = casts_[static_cast<size_t>(which)].name;
  return is_recorded && !name.empty() ? probe(name, std::move(y)) : y;
}

}  // namespace parity
