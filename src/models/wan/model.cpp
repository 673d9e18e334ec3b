#include "models/wan/model.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "core/error.hpp"

namespace parity {

WanModel::WanModel(const WanConfig& config, const WanDtypePath& path, at::ScalarType low, Precision precision,
                   const WeightSource& weights, WanOps ops)
    : config_(config), path_(path), low_(low), precision_(precision), ops_(std::move(ops)) {
  time_low_ = weights.get("time_embedding.0.weight").scalar_type();
  fps_low_ = config.sample_info ? weights.get("fps_embedding.weight").scalar_type() : at::kFloat;
  weights_ = load_wan_weights(config, path, low, precision, weights);
  place_casts();
}

at::Tensor WanModel::linear(std::string_view name, const at::Tensor& x, const Affine& w, Probe& probe) const {
  return probe(name, ops_.linear(x, w.weight, w.bias));
}

at::Tensor WanModel::embed_patches(const WanInputs& inputs, Probe& probe) const {
  auto x = inputs.latents;
  if (x.dim() != 5)
    throw Error(fmt::format(
        "[wan] the latents have {} dimensions; (batch, channels, frames, height, width) is expected", x.dim()));
  if (inputs.condition.defined()) x = at::cat({x, inputs.condition}, 1);
  const auto as_recorded = x.scalar_type();
  x = x.to(redirect(as_recorded, precision_));
  if (inputs.condition.defined()) x = probe("/latents", x);
  x = cast_to(WanCast::latents, x, dtype(Slot::low), as_recorded != low_, probe);
  return probe("patch_embedding",
               ops_.patch_embedding(x, weights_.patch_embedding.weight, weights_.patch_embedding.bias));
}

at::Tensor WanModel::blocks(at::Tensor x, const Conditions& c, Probe& probe) const {
  for (int64_t i = 0; i < config_.layers; ++i) x = block(i, std::move(x), c, probe);
  return x;
}

at::Tensor WanModel::forward(const WanInputs& inputs, Probe& probe, StepCache* cache) const {
  const c10::NoGradGuard no_grad;
  auto x = embed_patches(inputs, probe);
  const Grid grid{x.size(2), x.size(3), x.size(4)};
  x = ops::tokens_of(x);
  Conditions c;
  c.turn = ops_.rope_turn(weights_.rope, grid);
  if (path_.rope == RopeForm::real)
    c.turn.cos = probe("rope/cos", c.turn.cos), c.turn.sin = probe("rope/sin", c.turn.sin);
  if (config_.frames_per_block) c.mask = ops_.causal_mask(grid, config_.frames_per_block);
  embed_time(inputs, grid, c, probe);
  embed_context(inputs, c, probe);
  if (cache == nullptr) return head(blocks(std::move(x), c, probe), c, grid, probe);
  if (cache->reuses(c.e0, inputs.last_step)) return head(cache->add_to(x), c, grid, probe);
  const auto before = x.clone();  // blocks may write into what they are given
  x = blocks(std::move(x), c, probe);
  cache->keep(before, x);
  return head(x, c, grid, probe);
}

}  // namespace parity
