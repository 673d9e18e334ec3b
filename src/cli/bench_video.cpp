// parity-check bench video: frames compared a second. scripts/bench_video.py puts ffmpeg and scikit-image beside it.
#include <fmt/format.h>

#include "bench/video.hpp"
#include "cli/command.hpp"
#include "cli/print.hpp"
#include "core/error.hpp"
#include "report/sink.hpp"

namespace parity::cli {
namespace {

struct VideoBenchCommand {
  Common common;
  VideoBenchOptions bench;
  std::vector<int> size = {960, 544};
};

nlohmann::json timing_json(const Timing& t, int64_t frames) {
  if (t.first == 0) return nullptr;
  return {{"first_seconds", t.first},
          {"seconds", t.seconds},
          {"minimum_seconds", t.minimum()},
          {"frames_per_second", static_cast<double>(frames) / t.minimum()}};
}

int run(VideoBenchCommand options) {
  options.bench.threads = options.common.threads;
  options.bench.width = options.size[0], options.bench.height = options.size[1];
  if (options.bench.reference.empty() != options.bench.candidate.empty())
    throw Error("bench video: give two files, or none");
  const VideoBench b = [&] {
    ShareBar bar("comparing", options.common.quiet);
    options.bench.progress = std::ref(bar);
    return bench_video(options.bench);
  }();
  const double frames = static_cast<double>(b.frames), mib = 1024.0 * 1024;
  if (!options.common.quiet && b.read.first > 0)
    print("{} frames: reading both {:.1f} frames/s, with all metrics {:.1f} ({:+.1f} % time), peak memory {:.0f} MiB\n",
          b.frames, frames / b.read.minimum(), frames / b.compared.minimum(),
          100 * (b.compared.minimum() / b.read.minimum() - 1), static_cast<double>(b.peak_bytes) / mib);
  else if (!options.common.quiet)
    print("{} frames of {}x{} RGB in memory, all metrics: {:.1f} frames/s, peak memory {:.0f} MiB\n", b.frames,
          options.bench.width, options.bench.height, frames / b.compared.minimum(),
          static_cast<double>(b.peak_bytes) / mib);
  if (!options.common.json.empty())
    write_result(options.common.json, nlohmann::json{{"name", "video"},
                                                     {"frames", b.frames},
                                                     {"threads", options.bench.threads},
                                                     {"ms_ssim", options.bench.ms_ssim},
                                                     {"read", timing_json(b.read, b.frames)},
                                                     {"compared", timing_json(b.compared, b.frames)},
                                                     {"peak_bytes", b.peak_bytes}});
  return 0;
}

}  // namespace

void add_bench_video(CLI::App& bench, Action& action) {
  auto options = std::make_shared<VideoBenchCommand>();
  CLI::App* video = bench.add_subcommand("video", "Frames compared a second: made-up frames in memory, or two files");
  video->add_option("reference", options->bench.reference, "A clip")->check(existing_path())->type_name("REF");
  video->add_option("candidate", options->bench.candidate, "Another")->check(existing_path())->type_name("CAND");
  video->add_option("--size", options->size, "Width, height of made-up frames")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::Range(16, 16384))
      ->capture_default_str();
  video->add_option("--frames", options->bench.frames, "Made-up frames")->check(number_from(1))->capture_default_str();
  video->add_option("--repeats", options->bench.repeats, "Runs after the first")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  video->add_flag("!--no-ms-ssim", options->bench.ms_ssim, "Leave MS-SSIM out");
  add_common(*video, options->common);
  video->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace parity::cli
