// parity-check bench gpt2: decoding on a cache, token by token.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <fstream>

#include "bench/gpt2.hpp"
#include "cli/command.hpp"
#include "cli/decoding.hpp"
#include "cli/print.hpp"
#include "core/error.hpp"
#include "report/sink.hpp"

namespace parity::cli {
namespace {

struct Gpt2Command {
  Common common;
  std::string config;
  Gpt2BenchOptions bench;
};

nlohmann::json to_json(const Gpt2Bench& b, const Gpt2BenchOptions& options) {
  nlohmann::json json{{"name", "gpt2"},
                      {"variant", options.variant},
                      {"dtype", options.dtype},
                      {"cached", options.cached},
                      {"parameters", b.parameters},
                      {"weight_bytes", b.weight_bytes},
                      {"cache_bytes", b.cache_bytes},
                      {"kept_bytes", b.kept_bytes},
                      {"grown_bytes", b.grown_bytes},
                      {"memory_share", b.memory_share()},
                      {"read_bytes_per_second", b.bytes_per_second},
                      {"bound_share", b.bound_share()},
                      {"peak_bytes", peak_memory()}};
  json.update(decoding_json(b.decoding, options.rounds));
  return json;
}

int run_bench_gpt2(Gpt2Command command) {
  set_threads(command.common, nullptr);
  auto& options = command.bench;
  options.config = gpt2_124m_config();
  if (!command.config.empty()) {
    std::ifstream stream(command.config);
    options.config = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
    if (!options.config.is_object())
      throw Error(fmt::format("{}: not a JSON object; give a model's config.json", command.config));
  }
  const Gpt2Bench b = bench_gpt2(options);
  if (!command.common.quiet)
    print(
        "gpt2 {} {}: {:.1f} M parameters, {} tokens after {}, {} threads\n"
        "{:.1f} tokens/s (median of {}), {:.2f} ms the first token, {:.2f} ms the last, {:.1f} ms the prompt; "
        "{:.2f} of the bandwidth bound ({:.1f} GB/s read here); memory grew by {:.2f} GB, {:.2f} of weights and "
        "cache\n",
        options.variant, options.dtype, static_cast<double>(b.parameters) / 1e6, options.rounds.tokens,
        options.rounds.prompt, at::get_num_threads(), b.decoding.tokens_per_second(), options.rounds.repeats,
        b.decoding.milliseconds.front(), b.decoding.milliseconds.back(), b.decoding.prompt_milliseconds,
        b.bound_share(), b.bytes_per_second / 1e9, static_cast<double>(b.grown_bytes) / 1e9, b.memory_share());
  if (!command.common.json.empty()) write_result(command.common.json, to_json(b, options));
  return 0;
}

}  // namespace

void add_bench_gpt2(CLI::App& bench, Action& action) {
  auto command = std::make_shared<Gpt2Command>();
  CLI::App* gpt2 = bench.add_subcommand(
      "gpt2", "Decoding with GPT-2 on a cache, random weights: ms a token by position (default: 124M, fp32)");
  gpt2->add_option("--config", command->config, "config.json of the model")->check(existing_file())->type_name("FILE");
  gpt2->add_option("--variant", command->bench.variant, "LibTorch's kernels, our own, or our own over INT8 weights")
      ->check(CLI::IsMember({"aten", "own", "int8"}))
      ->capture_default_str();
  gpt2->add_option("--dtype", command->bench.dtype, "Of weights and activations")
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->capture_default_str();
  gpt2->add_flag("!--no-cache", command->bench.cached, "All tokens so far anew for each");
  add_decoding(*gpt2, command->bench.rounds);
  add_common(*gpt2, command->common);
  gpt2->callback([command, &action] { action = [command] { return run_bench_gpt2(*command); }; });
}

}  // namespace parity::cli
