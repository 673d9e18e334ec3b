#include "bench/gpt2.hpp"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <memory>

#include "bench/bandwidth.hpp"
#include "core/error.hpp"
#include "core/precision.hpp"
#include "models/gpt2/int8.hpp"
#include "models/gpt2/model.hpp"
#include "models/gpt2/ported.hpp"

namespace parity {
namespace {

// A matrix that each token is multiplied by; of the positions one row is read.
bool multiplies_each_token(const std::string& name, at::IntArrayRef shape) {
  return shape.size() == 2 && !name.ends_with("wpe.weight");
}

// The spread of transformers' own initialisation; norms at one.
// `drawn`: half as wide as what INT8 is made of, so that the widest weight takes no more than the model that it ends
// in.
WeightSource random_gpt2_weights(const Gpt2Config& config, at::ScalarType dtype, at::ScalarType drawn) {
  const Parameters all = gpt2_parameters(config);
  const std::map<std::string, std::vector<int64_t>> shapes(all.begin(), all.end());
  const auto get = [shapes, dtype, drawn](const std::string& name) {
    const auto& shape = shapes.at(name);
    const bool norm = name.find("ln_") != std::string::npos && name.ends_with("weight");
    const bool product = multiplies_each_token(name, shape);
    const at::Tensor weight = at::randn(shape, product ? drawn : dtype).mul_(0.02);
    return norm ? weight.add_(1) : weight;
  };
  return {get, [shapes](const std::string& name) { return shapes.count(name) > 0; }};
}

Gpt2Ops ops_of(const Gpt2BenchOptions& options) {
  if (options.variant != "int8") return gpt2_ops(options.variant == "own" ? Kernels::own : Kernels::aten);
  if (options.dtype != "fp32") throw Error("--variant int8 has fp32 activations: --dtype fp32");
  return gpt2_int8_ops();
}

Decoder cached_decoder(const Gpt2Model& model, KvCache& cache) {
  return {[&cache] { cache.clear(); }, [&](const at::Tensor& ids) { return model.next(ids, cache); }};
}

Decoder uncached_decoder(const Gpt2Model& model) {
  const auto all = std::make_shared<at::Tensor>();  // (1, tokens so far)
  return {[all] {
            *all = at::empty({1, 0}, at::kLong);
          },
          [&model, all](const at::Tensor& ids) {
            NoProbe off;
            *all = at::cat({*all, ids}, 1);
            return model.forward(*all, nullptr, off).select(1, all->size(1) - 1);
          }};
}

Gpt2Model random_gpt2(const Gpt2Config& config, const Gpt2BenchOptions& options) {
  const auto dtype = parse_dtype(options.dtype), drawn = options.variant == "int8" ? at::kBFloat16 : dtype;
  return {config, Precision::recorded, random_gpt2_weights(config, dtype, drawn), ops_of(options)};
}

// What comes with the first product, whatever the model's size, is not the model's memory: the libraries' code (8 MB of
// LibTorch's), threads and their buffers. A prompt and two words of one layer with a few words bring it in.
void load_libraries(Gpt2Config config, const Gpt2BenchOptions& options) {
  config.layers = 1, config.vocabulary = std::min<int64_t>(config.vocabulary, 64);
  const Gpt2Model model = random_gpt2(config, options);
  const int64_t words = std::min<int64_t>(options.rounds.tokens, 2);
  KvCache cache = model.cache(1, options.rounds.prompt + words);
  time_decoding(cached_decoder(model, cache), config.vocabulary,
                {.prompt = options.rounds.prompt, .tokens = words, .repeats = 0});
}

Gpt2Bench sizes_of(const Gpt2Config& config, bool int8, at::ScalarType dtype) {
  Gpt2Bench bench;
  for (const auto& [name, shape] : gpt2_parameters(config)) {
    const auto elements = c10::multiply_integers(shape);
    bench.parameters += elements;
    const bool product = multiplies_each_token(name, shape);
    const int64_t outputs = name.ends_with("wte.weight") ? shape[0] : shape.back();
    const int64_t kept =
        int8 && product ? elements + outputs * at::elementSize(at::kFloat) : elements * at::elementSize(dtype);
    bench.kept_bytes += kept;
    if (product || shape.size() == 1) bench.weight_bytes += kept;
  }
  return bench;
}

}  // namespace

double Gpt2Bench::memory_share() const {
  return static_cast<double>(grown_bytes) / static_cast<double>(kept_bytes + cache_bytes);
}

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
  const double before = read_bandwidth();
  load_libraries(config, options);
  const GrownMemory grown;
  const Gpt2Model model = random_gpt2(config, options);
  KvCache cache = model.cache(1, options.cached ? options.rounds.prompt + options.rounds.tokens : 0);
  Gpt2Bench bench = sizes_of(config, options.variant == "int8", dtype);
  bench.cache_bytes = cache.bytes();
  const Decoder decoder = options.cached ? cached_decoder(model, cache) : uncached_decoder(model);
  bench.decoding = time_decoding(decoder, config.vocabulary, options.rounds);
  bench.grown_bytes = grown.peak();
  bench.bytes_per_second = std::max(before, read_bandwidth());
  return bench;
}

}  // namespace parity
