#include "bench/gpt2.hpp"

#include <ATen/core/grad_mode.h>

#include <algorithm>
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

Gpt2Ops ops_of(const Gpt2BenchOptions& options) {
  if (options.variant != "int8") return gpt2_ops(options.variant == "own" ? Kernels::own : Kernels::aten);
  if (options.dtype != "fp32") throw Error("--variant int8 has fp32 activations: --dtype fp32");
  return gpt2_int8_ops();
}

}  // namespace

double Gpt2Bench::bound_share() const {
  const double bytes = static_cast<double>(weight_bytes) + static_cast<double>(cache_bytes);
  return bytes / bytes_per_second * decoding.tokens_per_second();
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
  KvCache cache = model.cache(1, options.rounds.prompt + options.rounds.tokens);
  Gpt2Bench bench;
  bench.cache_bytes = cache.bytes();
  for (const auto& [name, shape] : gpt2_parameters(config)) {
    const auto elements = c10::multiply_integers(shape);
    bench.parameters += elements;
    const bool product = shape.size() == 2 && !name.ends_with("wpe.weight");  // of the positions one row is read
    const int64_t width = options.variant == "int8" && product ? 1 : at::elementSize(dtype);
    if (product || shape.size() == 1) bench.weight_bytes += elements * width;
  }
  NoProbe off;
  const Decoder decoder{[&] { cache.clear(); }, [&](const at::Tensor& ids) { return model.forward(ids, &cache, off); }};
  const double before = read_bandwidth();
  bench.decoding = time_decoding(decoder, config.vocabulary, options.rounds);
  bench.bytes_per_second = std::max(before, read_bandwidth());
  return bench;
}

}  // namespace parity
