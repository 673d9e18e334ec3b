#include "bench/wan.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "core/precision.hpp"
#include "models/wan/model.hpp"

namespace parity {
namespace {

// Scaled like a trained layer's, so that activations stay finite and attention does not saturate.
WeightSource random_weights(const WanConfig& config, at::ScalarType dtype) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, shape] : wan_parameters(config)) shapes[name] = shape;
  const auto get = [shapes, dtype](const std::string& name) {
    const auto& shape = shapes.at(name);
    const double inputs = shape.size() > 1 ? static_cast<double>(c10::multiply_integers(shape) / shape[0]) : 1e4;
    const at::Tensor weight = at::randn(shape, at::kFloat).mul_(1 / std::sqrt(inputs));
    return (name.find("norm") != std::string::npos && shape.size() == 1 ? weight + 1 : weight).to(dtype);
  };
  return {get, [shapes](const std::string& name) { return shapes.count(name) > 0; }};
}

WanInputs random_inputs(const WanConfig& config, const std::array<int64_t, 3>& latent) {
  const auto [frames, height, width] = latent;
  WanInputs inputs;
  inputs.latents = at::randn({1, config.in_channels, frames, height, width}, at::kFloat);
  inputs.time = at::full({1}, 998, at::kLong);
  inputs.context = at::randn({1, config.text_len, config.text_dim}, at::kFloat).to(at::kBFloat16);
  if (config.image())
    inputs.image =
        at::randn({1, std::max<int64_t>(config.image_tokens, 257), config.image_dim}, at::kFloat).to(at::kBFloat16);
  return inputs;
}

}  // namespace

nlohmann::json wan_1_3b_config() {
  return {{"model_type", "i2v"}, {"dim", 1536},     {"ffn_dim", 8960},        {"num_heads", 12},
          {"num_layers", 30},    {"in_dim", 36},    {"out_dim", 16},          {"freq_dim", 256},
          {"text_dim", 4096},    {"text_len", 512}, {"image_dim", 1280},      {"image_tokens", 257},
          {"eps", 1e-6},         {"qk_norm", true}, {"cross_attn_norm", true}};
}

WanBench bench_wan(const WanBenchOptions& options) {
  const at::NoGradGuard no_grad;
  at::manual_seed(0);
  const WanConfig config = wan_config(options.config);
  const WanDtypePath& path = wan_dtype_path(options.dtype_path);
  const at::ScalarType low = parse_dtype(options.dtype);
  WanBench bench;
  const WeightSource source = random_weights(config, options.dtype_path == "wan" ? at::kFloat : low);
  std::unique_ptr<WanModel> model;
  bench.build_seconds =
      time_runs([&] { model = std::make_unique<WanModel>(config, path, low, Precision::recorded, source); }, 0).first;
  const WanInputs inputs = random_inputs(config, options.latent);
  NoProbe off;
  bench.forward = time_runs([&] { model->forward(inputs, off); }, options.repeats);
  for (const auto& [name, shape] : wan_parameters(config)) bench.parameters += c10::multiply_integers(shape);
  bench.tokens =
      options.latent[0] * options.latent[1] * options.latent[2] / (config.patch[0] * config.patch[1] * config.patch[2]);
  bench.peak_bytes = peak_memory();
  return bench;
}

}  // namespace parity
