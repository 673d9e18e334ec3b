// parity-check bench gpt-oss: decoding on a cache with experts in MXFP4, token by token.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "bench/gpt_oss.hpp"
#include "cli/command.hpp"
#include "cli/decoding.hpp"
#include "cli/print.hpp"
#include "report/sink.hpp"

namespace parity::cli {
namespace {

struct GptOssCommand {
  Common common;
  int64_t layers = 1, vocabulary = 4096;
  GptOssBenchOptions bench;
};

nlohmann::json to_json(const GptOssBench& b, const GptOssBenchOptions& options) {
  nlohmann::json json{{"name", "gpt-oss"},
                      {"cache", options.cache},
                      {"parameters", b.parameters},
                      {"packed_bytes", b.packed_bytes},
                      {"cache_bytes", b.cache_bytes},
                      {"grown_bytes", b.grown_bytes},
                      {"memory_share", b.memory_share()},
                      {"token_bytes", b.token_bytes},
                      {"read_bytes_per_second", b.bytes_per_second},
                      {"bound_share", b.bound_share()},
                      {"peak_bytes", peak_memory()}};
  json.update(decoding_json(b.decoding, options.rounds));
  return json;
}

int run_bench_gpt_oss(GptOssCommand command) {
  set_threads(command.common, nullptr);
  auto& options = command.bench;
  options.config = gpt_oss_20b_config(command.layers, command.vocabulary);
  const GptOssBench b = bench_gpt_oss(options);
  if (!command.common.quiet)
    print(
        "gpt-oss, {} of the 20b's layers, {} words, {} cache: {:.1f} M parameters, {} tokens after {}, {} threads\n"
        "{:.1f} tokens/s (median of {}), {:.2f} ms the first token, {:.2f} ms the last; memory grew by {:.2f} GB, "
        "{:.2f} of weights as packed and cache; {:.2f} of the bandwidth bound ({:.1f} GB/s read here)\n",
        command.layers, command.vocabulary, options.cache, static_cast<double>(b.parameters) / 1e6,
        options.rounds.tokens, options.rounds.prompt, at::get_num_threads(), b.decoding.tokens_per_second(),
        options.rounds.repeats, b.decoding.milliseconds.front(), b.decoding.milliseconds.back(),
        static_cast<double>(b.grown_bytes) / 1e9, b.memory_share(), b.bound_share(), b.bytes_per_second / 1e9);
  if (!command.common.json.empty()) write_result(command.common.json, to_json(b, options));
  return 0;
}

}  // namespace

void add_bench_gpt_oss(CLI::App& bench, Action& action) {
  auto command = std::make_shared<GptOssCommand>();
  CLI::App* gpt_oss = bench.add_subcommand(
      "gpt-oss", "Decoding with layers of gpt-oss-20b on a cache, random weights, experts in MXFP4: ms a token");
  const auto count = [gpt_oss](const char* name, auto& value, const char* help) {
    gpt_oss->add_option(name, value, help)->check(number_from(1))->capture_default_str();
  };
  count("--layers", command->layers, "Layers, of 24; each is 0.44 GB");
  count("--vocabulary", command->vocabulary, "Words, of 201088");
  gpt_oss->add_option("--cache", command->bench.cache, "Keys and values in bf16, or in fp8 with a scale a row")
      ->check(CLI::IsMember({"plain", "fp8"}))
      ->capture_default_str();
  add_decoding(*gpt_oss, command->bench.rounds);
  add_common(*gpt_oss, command->common);
  gpt_oss->callback([command, &action] { action = [command] { return run_bench_gpt_oss(*command); }; });
}

}  // namespace parity::cli
