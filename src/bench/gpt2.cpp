#include "bench/gpt2.hpp"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "bench/bandwidth.hpp"
#include "core/error.hpp"
#include "core/precision.hpp"
#include "models/gpt2/int8.hpp"
#include "models/gpt2/model.hpp"
#include "models/gpt2/ported.hpp"

namespace parity {
namespace {

// The spread of transformers' own initialisation; norms at one.
WeightSource random_gpt2_weights(const Gpt2Config& config, at::ScalarType dtype) {
  const Parameters all = gpt2_parameters(config);
  const std::map<std::string, std::vector<int64_t>> shapes(all.begin(), all.end());
  const auto get = [shapes, dtype](const std::string& name) {
    const at::Tensor weight = at::randn(shapes.at(name), at::kFloat).mul_(0.02);
    return (name.find("ln_") != std::string::npos && name.ends_with("weight") ? weight + 1 : weight).to(dtype);
  };
  return {get, [shapes](const std::string& name) { return shapes.count(name) > 0; }};
}

double milliseconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Gpt2Ops ops_of(const Gpt2BenchOptions& options) {
  if (options.variant != "int8") return gpt2_ops(options.variant == "own" ? Kernels::own : Kernels::aten);
  if (options.dtype != "fp32") throw Error("--variant int8 has fp32 activations: --dtype fp32");
  return gpt2_int8_ops();
}

// One round: the prompt at once, then token by token, each the most likely one.
std::vector<double> decode(const Gpt2Model& model, KvCache& cache, const at::Tensor& prompt, int64_t tokens) {
  NoProbe off;
  cache.clear();
  auto next = model.forward(prompt, &cache, off).select(1, prompt.size(1) - 1).argmax(-1, /*keepdim=*/true);
  std::vector<double> spent;
  for (int64_t i = 0; i < tokens; ++i)
    spent.push_back(
        milliseconds_of([&] { next = model.forward(next, &cache, off).select(1, 0).argmax(-1, /*keepdim=*/true); }));
  return spent;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace

double Gpt2Bench::tokens_per_second() const {
  return decode.median() > 0 ? static_cast<double>(milliseconds.size()) / decode.median() : 0;
}

double Gpt2Bench::bound_share() const {
  const double bytes = static_cast<double>(weight_bytes) + static_cast<double>(cache_bytes);
  return bytes / bytes_per_second * tokens_per_second();
}

nlohmann::json gpt2_124m_config() {
  return {{"vocab_size", 50257}, {"n_positions", 1024}, {"n_embd", 768}, {"n_layer", 12}, {"n_head", 12}};
}

Gpt2Bench bench_gpt2(const Gpt2BenchOptions& options) {
  const at::NoGradGuard no_grad;
  at::manual_seed(0);
  const Gpt2Config config = gpt2_config(options.config);
  const auto dtype = parse_dtype(options.dtype);
  const Gpt2Model model(config, Precision::recorded, random_gpt2_weights(config, dtype), ops_of(options));
  const auto prompt = at::randint(config.vocabulary, {1, options.prompt}, at::kLong);
  KvCache cache = model.cache(1, options.prompt + options.tokens);
  Gpt2Bench bench;
  bench.cache_bytes = cache.bytes();
  for (const auto& [name, shape] : gpt2_parameters(config)) {
    const auto elements = c10::multiply_integers(shape);
    bench.parameters += elements;
    const bool product = shape.size() == 2 && !name.ends_with("wpe.weight");  // of the positions one row is read
    const int64_t width = options.variant == "int8" && product ? 1 : at::elementSize(dtype);
    if (product || shape.size() == 1) bench.weight_bytes += elements * width;
  }
  std::vector<std::vector<double>> rounds;
  bench.decode = time_runs([&] { rounds.push_back(decode(model, cache, prompt, options.tokens)); }, 0);
  rounds.clear();
  for (int i = 0; i < options.repeats; ++i) {
    rounds.push_back(decode(model, cache, prompt, options.tokens));
    double sum = 0;
    for (const double ms : rounds.back()) sum += ms / 1000;
    bench.decode.seconds.push_back(sum);
    bench.bytes_per_second = std::max(bench.bytes_per_second, read_bandwidth());
  }
  for (int64_t t = 0; t < options.tokens; ++t) {
    std::vector<double> at_position;
    for (const auto& round : rounds) at_position.push_back(round[static_cast<size_t>(t)]);
    bench.milliseconds.push_back(median_of(at_position));
  }
  return bench;
}

}  // namespace parity
