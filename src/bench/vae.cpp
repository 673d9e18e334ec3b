#include "bench/vae.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <map>

#include "core/precision.hpp"
#include "models/wan_vae/model.hpp"
#include "models/wan_vae/ported.hpp"

namespace parity {
namespace {

// Scaled so that activations stay finite: a convolution's by its inputs, a norm's around 1.
WeightSource random_vae_weights(const WanVaeConfig& config, at::ScalarType dtype) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, shape] : wan_vae_parameters(config)) shapes[name] = shape;
  const auto get = [shapes, dtype](const std::string& name) {
    const auto& shape = shapes.at(name);
    const bool norm = name.ends_with(".gamma");
    const double inputs =
        shape.size() > 1 ? static_cast<double>(c10::multiply_integers(shape)) / static_cast<double>(shape[0]) : 1e4;
    const at::Tensor weight = at::randn(shape, at::kFloat).mul_(norm ? .1 : 1 / std::sqrt(inputs));
    return (norm ? weight + 1 : weight).to(dtype);
  };
  return {get, [shapes](const std::string& name) { return shapes.count(name) > 0; }};
}

}  // namespace

VaeBench bench_vae(const VaeBenchOptions& options) {
  const at::NoGradGuard no_grad;
  at::manual_seed(0);
  const at::ScalarType dtype = parse_dtype(options.dtype);
  const WanVaeConfig config;
  const WanVaeModel model(config, Precision::recorded, random_vae_weights(config, dtype),
                          options.variant == "own" ? fast_wan_vae_ops() : WanVaeOps{});
  const auto [frames, height, width] = options.latent;
  const at::Tensor latents = at::randn({1, config.latent_channels, frames, height, width}).to(dtype);
  VaeBench bench;
  NoProbe off;
  at::Tensor clip;
  const auto decode = [&] { clip = model.decode(latents, VaeWay::chunks, off); };
  bench.decode = time_runs(decode, options.repeats, options.progress);
  bench.peak_bytes = peak_memory();
  for (const auto& [name, shape] : wan_vae_parameters(config)) bench.parameters += c10::multiply_integers(shape);
  bench.frames = clip.size(2), bench.height = clip.size(3), bench.width = clip.size(4);
  return bench;
}

}  // namespace parity
