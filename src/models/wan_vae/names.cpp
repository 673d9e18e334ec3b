#include "models/wan_vae/names.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace parity {
namespace {

using VaeName = std::pair<std::string_view, std::string_view>;  // diffusers', the originals'

// Inside a layer; what is not here has the same name.
constexpr std::array kInResidual{VaeName{"norm1.", "residual.0."}, VaeName{"conv1.", "residual.2."},
                                 VaeName{"norm2.", "residual.3."}, VaeName{"conv2.", "residual.6."},
                                 VaeName{"conv_shortcut.", "shortcut."}};
constexpr std::array kInHalf{VaeName{"conv_in.", "conv1."}, VaeName{"norm_out.", "head.0."},
                             VaeName{"conv_out.", "head.2."}};
constexpr std::array kOutside{VaeName{"quant_conv.", "conv1."}, VaeName{"post_quant_conv.", "conv2."}};

template <typename Table>
std::string begun_anew(const Table& table, std::string_view name) {
  for (const auto& [from, to] : table)
    if (name.starts_with(from)) return std::string(to).append(name.substr(from.size()));
  return std::string(name);
}

// "middle.0" to "middle.2", and all other layers counted through.
std::string original_layer(const VaeHalf& half, size_t index) {
  const char* list = half.path == "encoder" ? "downsamples" : "upsamples";
  const bool middle = half.layers[index].path.find(".mid_block.") != std::string::npos;
  size_t before = 0;  // layers of the same list
  for (size_t i = 0; i < index; ++i) before += (half.layers[i].path.find(".mid_block.") != std::string::npos) == middle;
  return fmt::format("{}.{}.{}.", half.path, middle ? "middle" : list, before);
}

std::string original_in_half(const VaeHalf& half, const std::string& name) {
  for (size_t i = 0; i < half.layers.size(); ++i) {
    const auto prefix = half.layers[i].path + ".";
    if (!name.starts_with(prefix)) continue;
    const auto inside = name.substr(prefix.size());
    return original_layer(half, i) +
           (half.layers[i].stage == VaeStage::residual ? begun_anew(kInResidual, inside) : inside);
  }
  const auto prefix = half.path + ".";
  return prefix + begun_anew(kInHalf, name.substr(prefix.size()));
}

}  // namespace

std::string wan_vae_original_name(const WanVaeConfig& config, const std::string& diffusers) {
  if (diffusers.starts_with("encoder.")) return original_in_half(wan_vae_encoder(config), diffusers);
  if (diffusers.starts_with("decoder.")) return original_in_half(wan_vae_decoder(config), diffusers);
  return begun_anew(kOutside, diffusers);
}

}  // namespace parity
