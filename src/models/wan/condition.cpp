// What the blocks are conditioned on: time step, frame rate, text and image.
#include <fmt/format.h>

#include "core/error.hpp"
#include "models/wan/model.hpp"

namespace parity {
namespace {

// (batch, frames, …) -> (batch, frames * height * width, …): every token gets its frame's values.
at::Tensor per_token(const at::Tensor& x, const Grid& grid) {
  auto shape = x.sizes().vec();
  const auto wide = x.unsqueeze(2).unsqueeze(2);
  std::vector<int64_t> times(wide.dim(), 1);
  times[2] = grid[1], times[3] = grid[2];
  shape[1] *= grid[1] * grid[2];
  return wide.repeat(times).view(shape);
}

}  // namespace

at::Tensor WanModel::frame_rate(const WanInputs& inputs, Probe& probe) const {
  if (!inputs.fps.defined()) throw Error("[wan] the model needs a frame rate, the recording has no input 'fps'");
  auto x = probe("fps_embedding", at::embedding(weights_.fps_embedding, inputs.fps.to(at::kLong)));
  x = linear("fps_projection.0", cast(WanCast::fps, x, probe), weights_.fps0, probe);
  x = probe("fps_projection.1", ops_.silu(x));
  x = linear("fps_projection.2", x, weights_.fps2, probe).unflatten(1, {6, config_.dim});
  // The originals' order: rows of e0 run sample by sample, this repeats frame by frame, so rates mix when samples
  // differ.
  return inputs.diffusion_forcing ? x.repeat({inputs.time.size(1), 1, 1}) : x;
}

void WanModel::embed_time(const WanInputs& inputs, const Grid& grid, Conditions& out, Probe& probe) const {
  const auto& t = inputs.time;
  const bool keeps_frames = config_.diffusers && t.dim() == 2;  // (batch, frames, dim) instead of (batch * frames, dim)
  const auto with_frames = [&](const at::Tensor& x) { return keeps_frames ? x.view({t.size(0), t.size(1), -1}) : x; };
  auto s = ops_.sinusoid(t.flatten(), config_.freq_dim, path_.sinusoid, precision_);
  if (path_.sinusoid == SinusoidForm::f64_diffusers) s = with_frames(s);
  s = with_frames(probe("condition/sinusoid", std::move(s)));
  auto e = cast(WanCast::sinusoid, s, probe).to(dtype(path_.time_mlp));
  e = linear("time_embedding.0", e, weights_.time0, probe);
  e = probe("time_embedding.1", ops_.silu(e));
  e = cast(WanCast::time, linear("time_embedding.2", e, weights_.time2, probe), probe);
  auto e0 = linear("time_projection.1", probe("time_projection.0", ops_.silu(e)), weights_.time_projection, probe);
  e0 = e0.unflatten(-1, {6, config_.dim});
  if (config_.sample_info) e0 = probe("condition/add.0", ops_.add(std::move(e0), frame_rate(inputs, probe)));
  if (inputs.diffusion_forcing) {
    e = per_token(e.view({t.size(0), t.size(1), config_.dim}), grid);
    e0 = per_token(e0.view({t.size(0), t.size(1), 6, config_.dim}), grid).transpose(1, 2).contiguous();
  } else if (t.dim() == 2) {
    out.axis = 2;
  }
  out.e = std::move(e), out.e0 = std::move(e0);
}

at::Tensor WanModel::embed_text(const at::Tensor& context, Probe& probe) const {
  auto x = cast_to(WanCast::text, context.to(redirect(context.scalar_type(), precision_)), dtype(Slot::low),
                   context.scalar_type() != low_, probe);
  x = linear("text_embedding.0", x, weights_.text0, probe);
  x = probe("text_embedding.1", ops_.gelu(std::move(x), GeluForm::tanh));
  return linear("text_embedding.2", x, weights_.text2, probe);
}

at::Tensor WanModel::embed_image(const at::Tensor& image, Probe& probe) const {
  constexpr double kEps = 1e-5;  // torch.nn.LayerNorm's default, which both code bases leave
  const auto norm = [&](std::string_view name, const at::Tensor& y, const Affine& w) {
    const auto compute = path_.norm == Slot::input ? y.scalar_type() : dtype(Slot::f32);
    const auto result = path_.image_norm_out == Slot::input ? y.scalar_type() : dtype(Slot::f32);
    return probe(name, ops_.layer_norm(y, w.weight, w.bias, kEps, compute, result));
  };
  auto x = image.to(redirect(image.scalar_type(), precision_));
  if (weights_.image_position.defined())  // first and last frame: two images are one sequence
    x = probe("img_emb/add.0", ops_.add(x.view({-1, 2 * x.size(1), x.size(2)}), weights_.image_position));
  x = norm("img_emb.proj.0", x, weights_.image_norm1);
  x = linear("img_emb.proj.1", cast(WanCast::image, x, probe), weights_.image1, probe);
  x = probe("img_emb.proj.2", ops_.gelu(std::move(x), GeluForm::erf));
  x = linear("img_emb.proj.3", x, weights_.image3, probe);
  return norm("img_emb.proj.4", x, weights_.image_norm2);
}

void WanModel::embed_context(const WanInputs& inputs, Conditions& out, Probe& probe) const {
  auto text = embed_text(inputs.context, probe), image = at::Tensor();
  if (config_.image()) {
    if (!inputs.image.defined())
      throw Error("[wan] an image-to-video model, and the recording has no image tokens among its inputs");
    const auto context = probe("/context", at::cat({embed_image(inputs.image, probe), text}, 1));
    const auto cut = ops_.image_tokens(context.size(1), config_);
    if (cut <= 0 || cut >= context.size(1))
      throw Error(
          fmt::format("[wan] a context of {} tokens cannot be cut after {} image tokens", context.size(1), cut));
    image = context.slice(1, 0, cut), text = context.slice(1, cut);
  }
  // Cut first, then cast, as the originals do: a slice of several samples that no cast copies is not contiguous, and
  // its linear layers round the product before they add the bias. One cast here serves all blocks.
  out.context_dtype = text.scalar_type();
  out.text = cast_to(WanCast::context, text, dtype(Slot::low), false, probe);
  if (image.defined()) out.image = cast_to(WanCast::context, image, dtype(Slot::low), false, probe);
}

}  // namespace parity
