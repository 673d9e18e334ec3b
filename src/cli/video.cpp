// parity-check video: how far apart are two clips, and why?
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "cli/command.hpp"
#include "cli/print.hpp"
#include "core/cpu.hpp"
#include "core/error.hpp"
#include "core/named.hpp"
#include "core/progress.hpp"
#include "report/sink.hpp"
#include "report/video.hpp"
#include "video/render.hpp"

namespace parity::cli {
namespace {

namespace fs = std::filesystem;

struct VideoOptions {
  Common common;
  std::string reference, candidate, out = "reports/latest", ssim = "gaussian", space = "rgb", range, layout,
                                    dataset = "frames", thresholds, into;
  std::string candidate_layout, candidate_range;
  std::optional<double> min_psnr, min_ssim;
  double amplify = 8, rate = 24;
  bool metrics_only = false, no_video = false, no_ms_ssim = false, no_diagnosis = false;
};

struct Pair {
  std::string name;
  fs::path reference, candidate;
};

std::map<std::string, fs::path> clips_in(const fs::path& folder) {
  std::map<std::string, fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool clip = entry.is_regular_file() ? is_clip_file(entry.path()) : entry.is_directory();
    if (!clip) continue;
    const std::string name = entry.is_directory() ? entry.path().filename().string() : entry.path().stem().string();
    if (!found.emplace(name, entry.path()).second)
      throw Error(fmt::format("{}: several clips are named '{}'; pairs are made by name without suffix",
                              folder.string(), name));
  }
  return found;
}

bool has_pictures(const fs::path& folder) {
  return std::any_of(fs::directory_iterator(folder), {},
                     [](const auto& entry) { return entry.is_regular_file() && is_picture_file(entry.path()); });
}

/// Two folders without pictures are folders of clips, paired by name.
std::vector<Pair> pairs_of(const VideoOptions& options) {
  const fs::path r = options.reference, c = options.candidate;
  for (const fs::path& path : {r, c})
    if (!fs::exists(path)) throw Error(fmt::format("{}: no such file or folder", path.string()));
  if (!fs::is_directory(r) || !fs::is_directory(c) || has_pictures(r) || has_pictures(c)) return {{"", r, c}};
  const auto references = clips_in(r), candidates = clips_in(c);
  std::vector<Pair> pairs;
  for (const auto& [name, path] : references) {
    const auto found = candidates.find(name);
    if (found == candidates.end())
      throw Error(fmt::format("{}: no counterpart of '{}'", c.string(), path.filename().string()));
    pairs.push_back({name, path, found->second});
  }
  for (const auto& [name, path] : candidates)
    if (!references.contains(name))
      throw Error(fmt::format("{}: no counterpart of '{}'", r.string(), path.filename().string()));
  if (pairs.empty()) throw Error(fmt::format("{}: holds neither pictures nor clips", r.string()));
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return natural_less(a.name, b.name); });
  return pairs;
}

void set_range(SourceOptions& source, const std::string& text) {
  if (text.empty()) return;
  if (text == "none") {
    source.no_range = true;
    return;
  }
  double low = 0, high = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%lf,%lf%c", &low, &high, &rest) != 2 || !std::isfinite(low) || !std::isfinite(high) ||
      !(low < high))
    throw Error(fmt::format("--range '{}' is neither LOW,HIGH with LOW < HIGH nor 'none'", text));
  source.range = {low, high};
}

ClipOptions clip_options(const VideoOptions& options) {
  ClipOptions clip;
  clip.reference.luma = options.space == "luma";
  clip.reference.layout = options.layout;
  clip.reference.dataset = options.dataset;
  set_range(clip.reference, options.range);
  clip.candidate = clip.reference;
  if (!options.candidate_layout.empty()) clip.candidate.layout = options.candidate_layout;
  if (!options.candidate_range.empty()) {
    clip.candidate.range.reset();
    clip.candidate.no_range = false;
    set_range(clip.candidate, options.candidate_range);
  }
  if (clip.reference.no_range != clip.candidate.no_range) throw Error("--range none must hold for both clips");
  clip.measure.ranged = !clip.reference.no_range;
  clip.measure.ssim = options.ssim == "gaussian"  ? SsimKind::gaussian
                      : options.ssim == "uniform" ? SsimKind::uniform
                                                  : SsimKind::ffmpeg;
  clip.measure.ms_ssim = !options.no_ms_ssim;
  if (!options.thresholds.empty())
    clip.thresholds = named({options.thresholds}, [&] { return read_thresholds(options.thresholds); });
  if (options.min_psnr) clip.thresholds.min_psnr = options.min_psnr;
  if (options.min_ssim) clip.thresholds.min_ssim = options.min_ssim;
  clip.threads = options.common.threads;
  clip.diagnose = !options.no_diagnosis;
  return clip;
}

/// The pictures of one pair, made while it is compared.
class Pictures {
 public:
  Pictures(const VideoOptions& options, std::string prefix)
      : options_(options), prefix_(std::move(prefix)), worst_(options.amplify) {}

  void begin(const ClipResult& result) {
    if (options_.no_video) return;
    const double rate = result.reference.rate.value_or(options_.rate);
    side_by_side_.emplace(fs::path(options_.out) / (prefix_ + "side-by-side.mp4"), std::clamp(rate, 1.0, 240.0),
                          options_.amplify);
  }
  void add(const ComparedPair& pair) {
    worst_.add(pair);
    if (side_by_side_) side_by_side_->add(pair);
    any_ = true;
  }
  ClipPictures finish(std::vector<std::string>& warnings) {
    ClipPictures made;
    made.amplification = options_.amplify;
    if (side_by_side_ && any_) {
      if (side_by_side_->close())
        made.side_by_side = prefix_ + "side-by-side.mp4";
      else
        warnings.push_back("no side-by-side video: FFmpeg's libraries hold no H.264 encoder (libx264, libopenh264)");
    }
    if (!worst_.empty()) {
      made.contact_sheet = prefix_ + "worst-frames.png";
      made.heat_map = prefix_ + "heat-map.png";
      worst_.write_contact_sheet(fs::path(options_.out) / made.contact_sheet);
      worst_.write_heat_map(fs::path(options_.out) / made.heat_map);
    }
    return made;
  }

 private:
  const VideoOptions& options_;
  std::string prefix_;
  WorstFrames worst_;
  std::optional<SideBySide> side_by_side_;
  bool any_ = false;
};

void compare_pair(const Pair& pair, size_t number, size_t pairs, const VideoOptions& options, VideoReport& report) {
  ClipOptions clip = clip_options(options);
  const std::string prefix = pairs > 1 ? fmt::format("{}-", number + 1) : "";
  Pictures pictures(options, prefix);
  std::optional<Progress> progress;
  clip.begin = [&](const ClipResult& result) {
    const int64_t frames = std::min(result.reference.frames.value_or(1000), result.candidate.frames.value_or(1000));
    progress.emplace(frames, options.common.quiet);
    if (!options.metrics_only) pictures.begin(result);
  };
  if (!options.metrics_only) clip.pair = [&](const ComparedPair& compared) { pictures.add(compared); };
  clip.progress = [&](int64_t done) { progress->step(fmt::format("{} frame {}", pair.name, done)); };
  const std::string reference = pair.reference.string(), candidate = pair.candidate.string();
  ClipResult result = named({reference, candidate}, [&] { return compare_clips(reference, candidate, clip); });
  result.name = pair.name;
  if (!options.metrics_only) {
    report.pictures.push_back(pictures.finish(result.warnings));
    report.plots.push_back(draw_clip_plots(result, options.out, prefix));
  }
  report.clips.push_back(std::move(result));
}

nlohmann::json existing_report(const std::string& file) {
  std::ifstream stream(file);
  nlohmann::json report = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object() || report.value("schema", "") != "parity-report/1" || !report.contains("counts") ||
      !report["counts"].is_object())
    throw Error(fmt::format("{}: is not a parity-report/1; give the report.json of a run to --into", file));
  return report;
}

int video(const VideoOptions& options, const std::string& command_line) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Pair> pairs = pairs_of(options);
  const nlohmann::json existing =
      options.into.empty() ? nlohmann::json() : named({options.into}, [&] { return existing_report(options.into); });
  if (!options.metrics_only) fs::create_directories(options.out);
  VideoReport report;
  report.command = command_line;
  report.date = now_text();
  report.reference = options.reference, report.candidate = options.candidate;
  for (size_t i = 0; i < pairs.size(); ++i) compare_pair(pairs[i], i, pairs.size(), options, report);
  const Cpu cpu = this_cpu();
  report.machine = {{"cpu", cpu.model}, {"cpu_flags", cpu.flags}};
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
