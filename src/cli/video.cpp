// parity-check video: how far apart are two clips, and why?
#include <fmt/format.h>

#include <fstream>

#include "cli/clips.hpp"
#include "cli/command.hpp"
#include "cli/print.hpp"
#include "core/error.hpp"
#include "core/named.hpp"
#include "report/sink.hpp"

namespace parity::cli {
namespace {

namespace fs = std::filesystem;

struct VideoOptions : ClipsOptions {
  Common common;
  std::string into;
};

nlohmann::json existing_report(const std::string& file) {
  std::ifstream stream(file);
  nlohmann::json report = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object() || report.value("schema", "") != "parity-report/1" || !report.contains("counts") ||
      !report["counts"].is_object())
    throw Error(fmt::format("{}: is not a parity-report/1; give the report.json of a run to --into", file));
  return report;
}

int video(VideoOptions options, const std::string& command_line) {
  options.quiet = options.common.quiet, options.threads = options.common.threads;
  check_clips(options);
  const nlohmann::json existing =
      options.into.empty() ? nlohmann::json() : named({options.into}, [&] { return existing_report(options.into); });
  const VideoReport report = measured_clips(options, command_line);
  const std::string text = to_json(report).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (!options.metrics_only) {
    write_file(fs::path(options.out) / "video.json", text);
    write_video_markdown(report, options.out);
    write_video_html(report, options.out);
  }
  if (!options.common.json.empty()) write_file(options.common.json, text);
  if (!options.into.empty()) named({options.into}, [&] { merge_into(report, options.into, existing); });
  if (!options.common.quiet) {
    print("{}", Assembled{video_console(report, want_colour())});
    if (!options.metrics_only) print("\nReport: {} and video.html\n", (fs::path(options.out) / "video.md").string());
  }
  return exit_status(report);
}

void add_input_options(CLI::App& command, VideoOptions& o) {
  command
      .add_option("reference", o.reference,
                  "Video file, y4m, picture, folder of pictures, .npy, .npz, .h5, or a folder of such clips")
      ->required()
      ->type_name("REF");
  command.add_option("candidate", o.candidate, "The same")->required()->type_name("CAND");
  command
      .add_option("--range", o.range,
                  "Which array values mean 0 and 1, such as -1,1; 'none': no PSNR, no SSIM (latents). Default: floats "
                  "in [0, 1]")
      ->type_name("LOW,HIGH");
  command.add_option("--candidate-range", o.candidate_range, "The candidate's, where it differs")
      ->type_name("LOW,HIGH");
  command
      .add_option("--layout", o.layout,
                  "Axes of arrays, such as CTHW for latents; B: an axis of length 1. Default: THWC")
      ->type_name("AXES");
  command.add_option("--candidate-layout", o.candidate_layout, "The candidate's, where it differs")->type_name("AXES");
  command.add_option("--dataset", o.dataset, "Name in an HDF5 file, a recording or a .npz")
      ->capture_default_str()
      ->type_name("NAME");
}

void add_measure_options(CLI::App& command, VideoOptions& o) {
  command
      .add_option(
          "--ssim", o.ssim,
          "gaussian: 11x11, sigma 1.5 (Wang et al. 2004); uniform: 7x7 (scikit-image's default); ffmpeg: 8x8 blocks")
      ->check(CLI::IsMember({"gaussian", "uniform", "ffmpeg"}))
      ->capture_default_str();
  command.add_option("--space", o.space, "rgb, or luma: the coded Y plane of videos")
      ->check(CLI::IsMember({"rgb", "luma"}))
      ->capture_default_str();
  command.add_option("--min-psnr", o.min_psnr, "Fail when any frame has less, in dB")->type_name("DB");
  command.add_option("--min-ssim", o.min_ssim, "Fail when any frame has less")->type_name("SSIM");
  command.add_option("--thresholds", o.thresholds, "Ratings and gates (reports/video-thresholds.json is the default)")
      ->check(existing_file())
      ->type_name("FILE");
  command.add_flag("--no-ms-ssim", o.no_ms_ssim, "Leave MS-SSIM out");
  command.add_flag("--no-diagnosis", o.no_diagnosis, "Do not look for the cause of a difference");
}

void add_output_options(CLI::App& command, VideoOptions& o) {
  command.add_option("--out", o.out, "Folder of video.md, video.html, video.json, plots, pictures, side-by-side.mp4")
      ->capture_default_str()
      ->type_name("DIR");
  command.add_flag("--metrics-only", o.metrics_only, "Write nothing into --out");
  command.add_flag("--no-video", o.no_video, "No side-by-side video");
  command.add_option("--amplify", o.amplify, "Factor of the differences shown")
      ->check(CLI::Range(1.0, 255.0))
      ->capture_default_str();
  command.add_option("--rate", o.rate, "Frames a second of the side-by-side video where the reference states none")
      ->check(CLI::Range(1.0, 240.0))
      ->capture_default_str();
  command.add_option("--into", o.into, "Also put the section \"video\" into this report.json of a run")
      ->check(existing_file())
      ->type_name("FILE");
  add_common(command, o.common);
}

}  // namespace

void add_video(CLI::App& app, Action& action, const std::string& command_line) {
  auto options = std::make_shared<VideoOptions>();
  CLI::App* command = app.add_subcommand(
      "video", "Frames of two clips: MSE, PSNR, SSIM, differences, what explains them, side-by-side video");
  add_input_options(*command, *options);
  add_measure_options(*command, *options);
  add_output_options(*command, *options);
  command->callback(
      [options, &action, command_line] { action = [options, command_line] { return video(*options, command_line); }; });
}

}  // namespace parity::cli
