#include "models/wan_vae/original.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace parity {
namespace {

// Of the 16 channels (wan/modules/vae.py, WanVAE.__init__).
const nlohmann::json kPublishedMean{-0.7571, -0.7089, -0.9113, 0.1075,  -0.1745, 0.9653,  -0.1517, 1.5508,
                                    0.4134,  -0.0715, 0.5517,  -0.3632, -0.1922, -0.9497, 0.2503,  -0.2921};
const nlohmann::json kPublishedStd{2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
                                   3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160};

// The encoder's layers, counted through: residual blocks, and where a level ends what halves the picture, or time too.
void add_levels(const Checkpoint& stored, int64_t dim, nlohmann::json& config) {
  nlohmann::json widths = nlohmann::json::array(), halves_time = nlohmann::json::array();
  int64_t channels = dim, blocks = 0, blocks_of_level = 0;
  for (int64_t i = 0;; ++i) {
    const std::string layer = fmt::format("encoder.downsamples.{}.", i);
    if (stored.has(layer + "residual.2.weight")) {
      channels = stored.shape(layer + "residual.2.weight").at(0);
      ++blocks;
      continue;
    }
    widths.push_back(channels / dim);
    blocks_of_level = std::max(blocks_of_level, blocks);
    blocks = 0;
    if (!stored.has(layer + "resample.1.weight")) break;
    halves_time.push_back(stored.has(layer + "time_conv.weight"));
  }
  config["dim_mult"] = widths;
  config["temperal_downsample"] = halves_time;
  config["num_res_blocks"] = blocks_of_level;
}

}  // namespace

nlohmann::json wan_vae_original_config(const Checkpoint& stored, const nlohmann::json& settings) {
  const int64_t dim = stored.shape("encoder.conv1.weight").at(0), channels = stored.shape("conv2.weight").at(0);
  nlohmann::json config{{"base_dim", dim}, {"z_dim", channels}};
  add_levels(stored, dim, config);
  if (channels == static_cast<int64_t>(kPublishedMean.size()))
    config.update({{"latents_mean", kPublishedMean}, {"latents_std", kPublishedStd}});
  config.update(settings);
  if (!config.contains("latents_mean") || !config.contains("latents_std"))
    throw Error(
        fmt::format("{}: has {} channels, and the original code knows the latents' statistics of {}; give latents_mean "
                    "and latents_std (\"settings\": {{\"vae\": …}} in the JSON file for generate)",
                    stored.file().string(), channels, kPublishedMean.size()));
  return config;
}

}  // namespace parity
