#include "bench/wan.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <fmt/format.h>

#include <algorithm>

#include "bench/attention.hpp"
#include "core/error.hpp"
#include "core/memory.hpp"
#include "core/precision.hpp"
#include "models/wan/checkpoint.hpp"
#include "models/wan/inputs.hpp"
#include "models/wan/ported.hpp"
#include "trace/program.hpp"

namespace parity {
namespace {

// Scaled like a trained layer's, so that activations stay finite and attention does not saturate.
WeightSource random_weights(const WanConfig& config, at::ScalarType dtype) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, shape] : wan_parameters(config)) shapes[name] = shape;
  const auto get = [shapes, dtype](const std::string& name) {
    const auto& shape = shapes.at(name);
    const double inputs =
        shape.size() > 1 ? static_cast<double>(c10::multiply_integers(shape)) / static_cast<double>(shape[0]) : 1e4;
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

// What is to be run, from the options: a checkpoint's model or one with random weights, a recording's inputs or none.
struct Setup {
  explicit Setup(const WanBenchOptions& options) : low(parse_dtype(options.dtype)), own(options.variant == "own") {
    if (!options.weights.empty()) checkpoint.emplace(options.weights);
    config = checkpoint ? checkpoint->config() : wan_config(options.config);
    std::string named = options.dtype_path;
    if (named.empty() && checkpoint) named = checkpoint->dtype_path();
    path = &wan_dtype_path(named.empty() ? "sky_ac" : named);
    if (path->name == "wan") config.image_tokens = 0;  // cuts the context by its text tokens
    if (!options.reference.empty()) take_reference(options.reference);
  }

  void take_reference(const std::filesystem::path& file) {
    reference.emplace(file);
    const auto found = reference->provenance().find("config");
    if (!is_wan_transformer(*reference) || found == reference->provenance().end() ||
        wan_parameters(wan_config(*found)) != wan_parameters(config))
      throw Error(fmt::format("{}: is not a recording of this configuration; its inputs would not fit", file.string()));
  }

  std::unique_ptr<WanModel> model() const {
    const at::ScalarType kept = path->name == "wan" ? at::kFloat : low;
    return std::make_unique<WanModel>(config, *path, low, Precision::recorded,
                                      checkpoint ? checkpoint->weights(*path, low) : random_weights(config, kept),
                                      own ? fast_wan_ops() : WanOps{});
  }

  at::ScalarType low;
  bool own;
  std::optional<WanCheckpoint> checkpoint;
  WanConfig config;
  const WanDtypePath* path = nullptr;
  std::optional<Dump> reference;
};

double equal_share(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return 0;
  const auto bits = [](const at::Tensor& x) {
    return x.contiguous().view(x.element_size() == 4 ? at::kInt : x.element_size() == 2 ? at::kShort : at::kLong);
  };
  return at::eq(bits(a), bits(b)).to(at::kDouble).mean().item<double>();
}

WanAgreement agreement(const Dump& reference, const at::Tensor& output) {
  NoProbe off;
  WanAgreement result;
  result.own_weights = equal_share(port_wan(reference, Precision::recorded)->forward(0, off), output);
  const Program program = load_program(reference);
  const auto root = program.index.find({"", 0});
  if (root != program.index.end() && !program.boundaries[root->second].value.key.empty())
    result.recorded = equal_share(reference.value(program.boundaries[root->second].value.key), output);
  return result;
}

}  // namespace

nlohmann::json wan_1_3b_config() {
  return {{"model_type", "i2v"}, {"dim", 1536},     {"ffn_dim", 8960},        {"num_heads", 12},
          {"num_layers", 30},    {"in_dim", 36},    {"out_dim", 16},          {"freq_dim", 256},
          {"text_dim", 4096},    {"text_len", 512}, {"image_dim", 1280},      {"image_tokens", 257},
          {"eps", 1e-6},         {"qk_norm", true}, {"cross_attn_norm", true}};
}

double wan_operations(const WanConfig& config, int64_t tokens) {
  const auto n = static_cast<double>(tokens), d = static_cast<double>(config.dim);
  const auto context =
      static_cast<double>(config.text_len + (config.image() ? std::max<int64_t>(config.image_tokens, 257) : 0));
  const double linear = n * d * (6 * d + 2 * static_cast<double>(config.ffn_dim)) + 2 * context * d * d;
  const double attention = 2 * n * (n + context) * d;
  return 2 * static_cast<double>(config.layers) * (linear + attention);
}

WanBench bench_wan(const WanBenchOptions& options) {
  const at::NoGradGuard no_grad;
  at::manual_seed(0);
  const Setup setup(options);
  std::optional<KeepFreedMemory> kept;
  if (setup.own) kept.emplace();
  WanBench bench;
  bench.dtype_path = setup.path->name;
  std::unique_ptr<WanModel> model;
  bench.build_seconds = time_runs([&] { model = setup.model(); }, 0).first;
  const WanInputs inputs =
      setup.reference ? wan_inputs(*setup.reference, 0, setup.config) : random_inputs(setup.config, options.latent);
  NoProbe off;
  at::Tensor output;
  bench.forward = time_runs([&] { output = model->forward(inputs, off); }, options.repeats, options.progress);
  bench.peak_bytes = peak_memory();
  if (setup.reference) bench.agreement = agreement(*setup.reference, output);
  for (const auto& [name, shape] : wan_parameters(setup.config)) bench.parameters += c10::multiply_integers(shape);
  const Grid& patch = setup.config.patch;
  bench.tokens =
      inputs.latents.size(2) * inputs.latents.size(3) * inputs.latents.size(4) / (patch[0] * patch[1] * patch[2]);
  bench.operations = wan_operations(setup.config, bench.tokens);
  bench.product_rate = product_rate(setup.low);
  return bench;
}

}  // namespace parity
