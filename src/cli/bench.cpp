// parity-check bench: how long and how much memory. Figures are for comparing within one run, not across machines.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <fstream>

#include "bench/wan.hpp"
#include "cli/command.hpp"
#include "cli/print.hpp"
#include "core/error.hpp"
#include "report/sink.hpp"

namespace parity::cli {
namespace {

struct BenchOptions {
  Common common;
  std::string config;
  std::vector<int64_t> latent = {3, 68, 120};
  WanBenchOptions wan;
};

nlohmann::json read_config(const std::string& file) {
  std::ifstream stream(file);
  nlohmann::json config = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) throw Error(fmt::format("{}: not a JSON object; give a model's config.json", file));
  return config;
}

nlohmann::json agreement_json(const std::optional<WanAgreement>& agreement) {
  if (!agreement) return nullptr;
  return {{"own_weights", agreement->own_weights}, {"recorded", agreement->recorded}};
}

int bench_wan_command(BenchOptions options) {
  set_threads(options.common, nullptr);
  if (!options.wan.reference.empty() && options.wan.weights.empty())
    throw Error("--reference needs --weights: random weights compute nothing that could agree with a recording");
  options.wan.config = options.config.empty() ? wan_1_3b_config() : read_config(options.config);
  std::copy_n(options.latent.begin(), 3, options.wan.latent.begin());
  const WanBench b = [&] {
    ShareBar bar("running", options.common.quiet);
    options.wan.progress = std::ref(bar);
    return bench_wan(options.wan);
  }();
  const double gib = 1024.0 * 1024 * 1024;
  if (!options.common.quiet)
    print(
        "wan {} {}: {:.1f} M parameters, {} tokens, {} threads\nforward {:.2f} s (first {:.2f} s), built in {:.1f} s, "
        "peak memory {:.2f} GiB\n{:.0f} G operations a second, {:.2f} of the rate of products of 2048 x 2048\n",
        b.dtype_path, options.wan.dtype, static_cast<double>(b.parameters) / 1e6, b.tokens, at::get_num_threads(),
        b.forward.minimum(), b.forward.first, b.build_seconds, static_cast<double>(b.peak_bytes) / gib,
        b.operations / b.forward.minimum() / 1e9, b.operations / b.forward.minimum() / b.product_rate);
  if (b.agreement && !options.common.quiet)
    print("bitwise equal output elements: {:.4g} % with the recording's weights, {:.4g} % with its output\n",
          100 * b.agreement->own_weights, 100 * b.agreement->recorded);
  if (!options.common.json.empty())
    write_result(options.common.json, nlohmann::json{{"name", "wan"},
                                                     {"dtype_path", b.dtype_path},
                                                     {"dtype", options.wan.dtype},
                                                     {"variant", options.wan.variant},
                                                     {"tokens", b.tokens},
                                                     {"parameters", b.parameters},
                                                     {"threads", at::get_num_threads()},
                                                     {"build_seconds", b.build_seconds},
                                                     {"first_seconds", b.forward.first},
                                                     {"seconds", b.forward.seconds},
                                                     {"minimum_seconds", b.forward.minimum()},
                                                     {"peak_bytes", b.peak_bytes},
                                                     {"operations", b.operations},
                                                     {"product_rate", b.product_rate},
                                                     {"agreement", agreement_json(b.agreement)}});
  return 0;
}

// What is computed, in which dtypes, by which kernels, how often.
void add_computation(CLI::App& wan, BenchOptions& options) {
  wan.add_option("--dtype-path", options.wan.dtype_path,
                 "sky_ac, sky_noac, wan, dsky or dwan (default: as config.json says, else sky_ac)");
  wan.add_option("--dtype", options.wan.dtype, "Of the linear layers")
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->capture_default_str();
  wan.add_option("--variant", options.wan.variant, "Kernels: LibTorch's, or our own and passes over rows in one")
      ->check(CLI::IsMember({"aten", "own"}))
      ->capture_default_str();
  wan.add_option("--latent", options.latent, "Latent frames, height, width")
      ->delimiter(',')
      ->expected(3)
      ->check(number_from(1))
      ->capture_default_str();
  wan.add_option("--repeats", options.wan.repeats, "Forwards after the first")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* bench = app.add_subcommand("bench", "Time and memory, measured here");
  bench->require_subcommand(1);
  for (const auto add :
       {add_bench_attention, add_bench_compare, add_bench_gpt2, add_bench_gpt_oss, add_bench_vae, add_bench_video})
    add(*bench, action);
  CLI::App* wan = bench->add_subcommand(
      "wan",
      "One forward of the SkyReels-V2 / Wan transformer, random weights unless told (default: I2V 1.3B, 9 frames of "
      "544x960)");
  CLI::Option* config = wan->add_option("--config", options->config, "config.json of the model, either naming")
                            ->check(existing_file())
                            ->type_name("FILE");
  wan->add_option("--weights", options->wan.weights,
                  "Folder with config.json and .safetensors (one file, or shards with their index), either naming")
      ->check(existing_path())
      ->excludes(config)
      ->type_name("DIR");
  wan->add_option("--reference", options->wan.reference,
                  "Recording of the same model: its inputs are used, its output compared")
      ->check(existing_file())
      ->type_name("FILE");
  add_computation(*wan, *options);
  add_common(*wan, options->common);
  wan->callback([options, &action] { action = [options] { return bench_wan_command(*options); }; });
}

}  // namespace parity::cli
