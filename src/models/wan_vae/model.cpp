#include "models/wan_vae/model.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "core/error.hpp"

namespace parity {
namespace {

void check_clip(const at::Tensor& x, int64_t channels, const char* what) {
  if (x.dim() != 5 || x.size(1) != channels || x.size(2) < 1)
    throw Error(fmt::format("[wan-vae] the {} are {}; (batch, {}, frames, height, width) is expected", what,
                            c10::str(x.sizes()), channels));
}

}  // namespace

LatentScale latent_scale(const WanVaeConfig& config, at::ScalarType dtype) {
  const auto row = [&](const std::vector<double>& numbers) {
    return at::tensor(numbers, at::kFloat).view({1, config.latent_channels, 1, 1, 1}).to(dtype);
  };
  return {row(config.latents_mean), row(config.latents_std).reciprocal()};
}

WanVaeModel::WanVaeModel(const WanVaeConfig& config, Precision precision, const WeightSource& weights, WanVaeOps ops)
    : config_(config),
      encoder_(wan_vae_encoder(config)),
      decoder_(wan_vae_decoder(config)),
      ops_(std::move(ops)),
      weights_(load_wan_vae_weights(config, precision, weights)) {}

at::Tensor WanVaeModel::causal(std::string_view name, const at::Tensor& x, const Affine& w, FeatureCache* cache,
                               Probe& probe) const {
  if (!cache) return probe(name, ops_.causal_conv(x, w.weight, w.bias, {}, 1));
  auto& slot = cache->next();
  const auto y = ops_.causal_conv(x, w.weight, w.bias, slot.frames, 1);
  slot = {true, ops_.keep(slot.frames, x, /*count=*/2)};
  return probe(name, y);
}

at::Tensor WanVaeModel::half(const VaeHalf& half, const VaeHalfWeights& w, at::Tensor x, FeatureCache* cache,
                             Probe& probe) const {
  if (cache) cache->begin_chunk();
  {
    const Probe::Scope in_half(probe, half.path);
    x = causal(".conv_in", x, w.conv_in, cache, probe);
  }
  for (size_t i = 0; i < half.layers.size(); ++i) {
    const Probe::Scope in_layer(probe, half.layers[i].path);
    x = layer(half.layers[i].stage, w.layers[i], x, cache, probe);
  }
  const Probe::Scope in_half(probe, half.path);
  x = probe(".norm_out", ops_.norm(x, w.norm_out));
  x = probe(".nonlinearity", ops_.silu(x));
  return causal(".conv_out", x, w.conv_out, cache, probe);
}

at::Tensor WanVaeModel::decode(const at::Tensor& z, VaeWay way, Probe& probe) const {
  const c10::NoGradGuard no_grad;
  check_clip(z, config_.latent_channels, "latents");
  const auto x = causal("post_quant_conv", z, weights_.post_quant_conv, nullptr, probe);
  std::vector<at::Tensor> frames;
  FeatureCache cache;
  if (way == VaeWay::whole)
    frames.push_back(half(decoder_, weights_.decoder, x, nullptr, probe));
  else
    for (int64_t i = 0; i < x.size(2); ++i)
      frames.push_back(half(decoder_, weights_.decoder, x.narrow(2, i, 1), &cache, probe));
  return probe("", at::cat(frames, 2).clamp(-1.0, 1.0));
}

at::Tensor WanVaeModel::encode(const at::Tensor& x, VaeWay way, Probe& probe) const {
  const c10::NoGradGuard no_grad;
  check_clip(x, config_.in_channels, "frames");
  constexpr int64_t kGroup = 4;
  const int64_t groups = (x.size(2) - 1) / kGroup;
  std::vector<at::Tensor> encoded;
  FeatureCache cache;
  if (way == VaeWay::whole) {
    encoded.push_back(half(encoder_, weights_.encoder, x.narrow(2, 0, 1 + kGroup * groups), nullptr, probe));
  } else {
    encoded.push_back(half(encoder_, weights_.encoder, x.narrow(2, 0, 1), &cache, probe));
    for (int64_t i = 0; i < groups; ++i)
      encoded.push_back(half(encoder_, weights_.encoder, x.narrow(2, 1 + kGroup * i, kGroup), &cache, probe));
  }
  return causal("quant_conv", at::cat(encoded, 2), weights_.quant_conv, nullptr, probe);
}

at::Tensor WanVaeModel::from_transformer(const at::Tensor& latents, Probe& probe) const {
  check_clip(latents, config_.latent_channels, "latents");
  const auto scale = ops_.scale(config_, latents.scalar_type());
  return probe("/add.0", probe("/div.0", latents / scale.reciprocal_std) + scale.mean);
}

at::Tensor WanVaeModel::to_transformer(const at::Tensor& encoded, Probe& probe) const {
  const auto scale = ops_.scale(config_, encoded.scalar_type());
  const auto mean = encoded.narrow(1, 0, config_.latent_channels);  // the distribution's most likely value
  return probe("", probe("/sub.0", mean - scale.mean) * scale.reciprocal_std);
}

}  // namespace parity
