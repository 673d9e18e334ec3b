#include "models/wan_vae/config.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/config_keys.hpp"

namespace parity {
namespace {

constexpr ConfigKeys kVaeKeys{"wan-vae", "a Wan2.1 autoencoder's"};

Error impossible(const std::string& what) { return Error(fmt::format("[wan-vae] impossible configuration: {}", what)); }

// What a configuration may ask for and this model does not have.
void refuse_vae(const nlohmann::json& config) {
  if (kVaeKeys.take<bool>(config, "is_residual", false))
    throw Error("[wan-vae] is_residual true (Wan2.2's autoencoder) is not written here, only Wan2.1's");
  if (config.contains("patch_size") && !config["patch_size"].is_null())
    throw Error("[wan-vae] patch_size (Wan2.2's autoencoder) is not written here, only Wan2.1's");
  if (!kVaeKeys.take<std::vector<double>>(config, "attn_scales", std::vector<double>{}).empty())
    throw Error("[wan-vae] attn_scales is not written here: attention stands in the middle blocks alone");
}

void check_levels(const WanVaeConfig& c) {
  if (c.widths.empty() || c.widths.size() > 16) throw impossible(fmt::format("{} levels in dim_mult", c.widths.size()));
  for (size_t i = 0; i < c.widths.size(); ++i) {
    if (c.widths[i] <= 0 || c.widths[i] > 1024) throw impossible(fmt::format("dim_mult {}", c.widths[i]));
    if (i > 0 && c.decoder_dim * c.widths[i] % 2 != 0)
      throw impossible(
          fmt::format("{} channels at level {} of the decoder cannot be halved", c.decoder_dim * c.widths[i], i));
  }
  if (c.halves_time.size() + 1 < c.widths.size())
    throw impossible(
        fmt::format("temperal_downsample has {} entries for {} levels", c.halves_time.size(), c.widths.size()));
  for (const auto* statistic : {&c.latents_mean, &c.latents_std})
    if (static_cast<int64_t>(statistic->size()) != c.latent_channels)
      throw impossible(fmt::format("z_dim {} with {} numbers in latents_mean and {} in latents_std", c.latent_channels,
                                   c.latents_mean.size(), c.latents_std.size()));
}

std::string numbered(const std::string& path, const char* list, size_t i) {
  return fmt::format("{}.{}.{}", path, list, i);
}

// The two residual blocks with attention between them.
void add_middle(VaeHalf& half, int64_t channels) {
  const auto path = half.path + ".mid_block";
  half.layers.push_back({numbered(path, "resnets", 0), VaeStage::residual, channels, channels});
  half.layers.push_back({numbered(path, "attentions", 0), VaeStage::attention, channels, channels});
  half.layers.push_back({numbered(path, "resnets", 1), VaeStage::residual, channels, channels});
}

}  // namespace

WanVaeConfig wan_vae_config(const nlohmann::json& config) {
  if (!config.is_object())
    throw Error("[wan-vae] the recording has no model configuration: record it with the model's config");
  const auto count = [&](const char* key, int64_t otherwise) {
    const auto n = kVaeKeys.take<int64_t>(config, key, otherwise);
    if (n <= 0 || n > (1 << 16)) throw impossible(fmt::format("{} {}", key, n));
    return n;
  };
  refuse_vae(config);
  WanVaeConfig c;
  c.encoder_dim = count("base_dim", c.encoder_dim), c.decoder_dim = count("decoder_base_dim", c.encoder_dim);
  c.latent_channels = count("z_dim", c.latent_channels);
  c.in_channels = count("in_channels", c.in_channels), c.out_channels = count("out_channels", c.out_channels);
  c.residual_blocks = count("num_res_blocks", c.residual_blocks);
  c.widths = kVaeKeys.take<std::vector<int64_t>>(config, "dim_mult", c.widths);
  c.halves_time = kVaeKeys.take<std::vector<bool>>(config, "temperal_downsample", c.halves_time);
  c.latents_mean = kVaeKeys.take<std::vector<double>>(config, "latents_mean");
  c.latents_std = kVaeKeys.take<std::vector<double>>(config, "latents_std");
  check_levels(c);
  return c;
}

VaeHalf wan_vae_encoder(const WanVaeConfig& c) {
  VaeHalf half{"encoder", c.in_channels, c.encoder_dim, c.encoder_dim * c.widths.back(), 2 * c.latent_channels, {}};
  int64_t channels = half.first;
  const auto add = [&](VaeStage stage, int64_t out) {
    half.layers.push_back({numbered(half.path, "down_blocks", half.layers.size()), stage, channels, out});
    channels = out;
  };
  for (size_t level = 0; level < c.widths.size(); ++level) {
    const int64_t out = c.encoder_dim * c.widths[level];
    for (int64_t i = 0; i < c.residual_blocks; ++i) add(VaeStage::residual, out);
    if (level + 1 < c.widths.size()) add(c.halves_time[level] ? VaeStage::downsample_time : VaeStage::downsample, out);
  }
  add_middle(half, channels);
  return half;
}

VaeHalf wan_vae_decoder(const WanVaeConfig& c) {
  const int64_t widest = c.decoder_dim * c.widths.back();
  VaeHalf half{"decoder", c.latent_channels, widest, c.decoder_dim * c.widths.front(), c.out_channels, {}};
  add_middle(half, widest);
  int64_t channels = widest;
  for (size_t level = 0; level < c.widths.size(); ++level) {
    const auto path = numbered(half.path, "up_blocks", level);
    const size_t mirrored = c.widths.size() - 1 - level;
    const int64_t out = c.decoder_dim * c.widths[mirrored];
    for (int64_t i = 0; i <= c.residual_blocks; ++i) {
      half.layers.push_back({numbered(path, "resnets", static_cast<size_t>(i)), VaeStage::residual, channels, out});
      channels = out;
    }
    if (mirrored == 0) break;
    const size_t time = c.halves_time.size() - 1 - level;  // temperal_downsample, read backwards
    const auto stage = c.halves_time[time] ? VaeStage::upsample_time : VaeStage::upsample;
    half.layers.push_back({numbered(path, "upsamplers", 0), stage, channels, channels / 2});
    channels /= 2;
  }
  return half;
}

}  // namespace parity
