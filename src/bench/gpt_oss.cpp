#include "bench/gpt_oss.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <map>

#include "bench/bandwidth.hpp"
#include "models/gpt_oss/model.hpp"
#include "models/gpt_oss/ported.hpp"

namespace parity {
namespace {

// The spread of transformers' own initialisation, norms at one; experts' bytes at random, their exponents about 2^-6.
WeightSource random_gpt_oss_weights(const Parameters& all) {
  const std::map<std::string, std::vector<int64_t>> shapes(all.begin(), all.end());
  const auto get = [shapes](const std::string& name) {
    const auto& shape = shapes.at(name);
    if (name.ends_with("_blocks")) return at::randint(256, shape, at::kByte);
    if (name.ends_with("_scales")) return at::randint(119, 123, shape, at::kByte);
    if (name.find("norm") != std::string::npos) return at::ones(shape, at::kBFloat16);
    return at::randn(shape, at::kBFloat16).mul_(0.02);
  };
  return {get, [shapes](const std::string& name) { return shapes.count(name) > 0; }};
}

struct Sizes {
  int64_t parameters = 0, packed = 0, of_token = 0;
};

Sizes sizes_of(const GptOssConfig& config, const Parameters& parameters) {
  Sizes out;
  for (const auto& [name, shape] : parameters) {
    const auto elements = c10::multiply_integers(shape);
    const bool blocks = name.ends_with("_blocks"), scales = name.ends_with("_scales");
    const int64_t bytes = elements * (blocks || scales ? 1 : 2);
    if (!scales) out.parameters += elements * (blocks ? 2 : 1);
    out.packed += bytes;
    if (name.find(".experts.") != std::string::npos)
      out.of_token += bytes / config.experts * config.experts_per_token;
    else if (name != "model.embed_tokens.weight")
      out.of_token += bytes;
  }
  return out;
}

}  // namespace

double GptOssBench::memory_share() const {
  return static_cast<double>(grown_bytes) / static_cast<double>(packed_bytes + cache_bytes);
}

double GptOssBench::bound_share() const {
  const double bytes = static_cast<double>(token_bytes) + static_cast<double>(cache_bytes);
  return bytes / bytes_per_second * decoding.tokens_per_second();
}

nlohmann::json gpt_oss_20b_config(int64_t layers, int64_t vocabulary) {
  return {{"hidden_size", 2880},
          {"intermediate_size", 2880},
          {"num_hidden_layers", layers},
          {"num_attention_heads", 64},
          {"num_key_value_heads", 8},
          {"head_dim", 64},
          {"num_local_experts", 32},
          {"num_experts_per_tok", 4},
          {"sliding_window", 128},
          {"vocab_size", vocabulary},
          {"rms_norm_eps", 1e-5},
          {"rope_parameters",
           {{"rope_type", "yarn"},
            {"rope_theta", 150000.0},
            {"factor", 32.0},
            {"truncate", false},
            {"original_max_position_embeddings", 4096}}}};
}

GptOssBench bench_gpt_oss(const GptOssBenchOptions& options) {
  const at::NoGradGuard no_grad;
  at::manual_seed(0);
  const GptOssConfig config = gpt_oss_config(options.config);
  const Parameters parameters = gpt_oss_parameters(config, ExpertStorage::mxfp4);
  const Sizes sizes = sizes_of(config, parameters);
  GptOssBench bench;
  bench.parameters = sizes.parameters, bench.packed_bytes = sizes.packed, bench.token_bytes = sizes.of_token;
  const int64_t before = peak_memory();
  const GptOssModel model(config, Precision::recorded, random_gpt_oss_weights(parameters), gpt_oss_ops(Kernels::own));
  auto cache = model.cache(1, options.rounds.prompt + options.rounds.tokens,
                           options.cache == "fp8" ? CacheStorage::fp8 : CacheStorage::plain);
  bench.cache_bytes = cache.bytes();
  NoProbe off;
  const Decoder decoder{
      [&] { cache.clear(); },
      [&](const at::Tensor& ids) { return model.forward(ids, &cache, off).select(1, ids.size(1) - 1); }};
  bench.decoding = time_decoding(decoder, config.vocabulary, options.rounds);
  bench.grown_bytes = peak_memory() - before;
  bench.bytes_per_second = read_bandwidth();  // last: its own memory is not the model's
  return bench;
}

}  // namespace parity
