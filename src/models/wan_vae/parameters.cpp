// Every parameter's name and shape, layer by layer.
#include "models/wan_vae/config.hpp"

namespace parity {
namespace {

using VaeShape = std::vector<int64_t>;

void add_convolution(Parameters& all, const std::string& name, VaeShape weight) {
  const auto out = weight.front();
  all.emplace_back(name + ".weight", std::move(weight));
  all.emplace_back(name + ".bias", VaeShape{out});
}

void add_residual(Parameters& all, const VaeLayer& layer) {
  all.emplace_back(layer.path + ".norm1.gamma", VaeShape{layer.in, 1, 1, 1});
  add_convolution(all, layer.path + ".conv1", {layer.out, layer.in, 3, 3, 3});
  all.emplace_back(layer.path + ".norm2.gamma", VaeShape{layer.out, 1, 1, 1});
  add_convolution(all, layer.path + ".conv2", {layer.out, layer.out, 3, 3, 3});
  if (layer.in != layer.out) add_convolution(all, layer.path + ".conv_shortcut", {layer.out, layer.in, 1, 1, 1});
}

void add_attention(Parameters& all, const VaeLayer& layer) {
  all.emplace_back(layer.path + ".norm.gamma", VaeShape{layer.in, 1, 1});
  add_convolution(all, layer.path + ".to_qkv", {3 * layer.in, layer.in, 1, 1});
  add_convolution(all, layer.path + ".proj", {layer.in, layer.in, 1, 1});
}

void add_layer(Parameters& all, const VaeLayer& layer) {
  if (layer.stage == VaeStage::residual) return add_residual(all, layer);
  if (layer.stage == VaeStage::attention) return add_attention(all, layer);
  add_convolution(all, layer.path + ".resample.1", {layer.out, layer.in, 3, 3});
  if (layer.stage == VaeStage::upsample_time)
    add_convolution(all, layer.path + ".time_conv", {2 * layer.in, layer.in, 3, 1, 1});
  if (layer.stage == VaeStage::downsample_time)
    add_convolution(all, layer.path + ".time_conv", {layer.in, layer.in, 3, 1, 1});
}

void add_half(Parameters& all, const VaeHalf& half) {
  add_convolution(all, half.path + ".conv_in", {half.first, half.in, 3, 3, 3});
  for (const VaeLayer& layer : half.layers) add_layer(all, layer);
  all.emplace_back(half.path + ".norm_out.gamma", VaeShape{half.last, 1, 1, 1});
  add_convolution(all, half.path + ".conv_out", {half.out, half.last, 3, 3, 3});
}

}  // namespace

Parameters wan_vae_parameters(const WanVaeConfig& config) {
  Parameters all;
  const int64_t z = config.latent_channels;
  add_half(all, wan_vae_encoder(config));
  add_convolution(all, "quant_conv", {2 * z, 2 * z, 1, 1, 1});
  add_convolution(all, "post_quant_conv", {z, z, 1, 1, 1});
  add_half(all, wan_vae_decoder(config));
  return all;
}

}  // namespace parity
