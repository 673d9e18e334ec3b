// parity-check bench vae: time and memory of decoding a clip.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "bench/vae.hpp"
#include "cli/command.hpp"
#include "cli/print.hpp"
#include "report/sink.hpp"

namespace parity::cli {
namespace {

struct VaeCommand {
  Common common;
  std::vector<int64_t> latent = {3, 68, 120};
  VaeBenchOptions bench;
};

int run_bench_vae(VaeCommand command) {
  set_threads(command.common, nullptr);
  std::copy_n(command.latent.begin(), 3, command.bench.latent.begin());
  const VaeBench b = [&] {
    ShareBar bar("decoding", command.common.quiet);
    command.bench.progress = std::ref(bar);
    return bench_vae(command.bench);
  }();
  if (!command.common.quiet)
    print("wan vae {}, {}: {} frames of {}x{}, {} threads\ndecode {:.2f} s (first {:.2f} s), peak memory {:.2f} GiB\n",
          command.bench.dtype, command.bench.variant, b.frames, b.height, b.width, at::get_num_threads(),
          b.decode.median(), b.decode.first, static_cast<double>(b.peak_bytes) / (1024.0 * 1024 * 1024));
  if (!command.common.json.empty())
    write_result(command.common.json, nlohmann::json{{"name", "vae"},
                                                     {"dtype", command.bench.dtype},
                                                     {"variant", command.bench.variant},
                                                     {"frames", b.frames},
                                                     {"height", b.height},
                                                     {"width", b.width},
                                                     {"parameters", b.parameters},
                                                     {"threads", at::get_num_threads()},
                                                     {"first_seconds", b.decode.first},
                                                     {"seconds", b.decode.seconds},
                                                     {"peak_bytes", b.peak_bytes}});
  return 0;
}

}  // namespace

void add_bench_vae(CLI::App& bench, Action& action) {
  auto command = std::make_shared<VaeCommand>();
  CLI::App* vae = bench.add_subcommand(
      "vae", "Decoding with the Wan video autoencoder, random weights (default: 9 frames of 544x960)");
  vae->add_option("--dtype", command->bench.dtype, "Of weights and stream")
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->capture_default_str();
  vae->add_option("--variant", command->bench.variant, "Ops as diffusers has them, or without what they copy")
      ->check(CLI::IsMember({"aten", "own"}))
      ->capture_default_str();
  vae->add_option("--latent", command->latent, "Latent frames, height, width")
      ->delimiter(',')
      ->expected(3)
      ->check(number_from(1))
      ->capture_default_str();
  vae->add_option("--repeats", command->bench.repeats, "Decodes after the first")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_common(*vae, command->common);
  vae->callback([command, &action] { action = [command] { return run_bench_vae(*command); }; });
}

}  // namespace parity::cli
