// Measuring pairs of clips, for `video` and for the runs that take two clips along.
#include "cli/clips.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "core/cpu.hpp"
#include "core/error.hpp"
#include "core/named.hpp"
#include "core/progress.hpp"
#include "video/render.hpp"

namespace parity::cli {
namespace {

namespace fs = std::filesystem;

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
std::vector<Pair> pairs_of(const ClipsOptions& options) {
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

ClipOptions clip_options(const ClipsOptions& options) {
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
  clip.threads = options.threads;
  clip.diagnose = !options.no_diagnosis;
  return clip;
}

/// The pictures of one pair, made while it is compared.
class Pictures {
 public:
  Pictures(const ClipsOptions& options, std::string prefix)
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
      if (options_.single_frames) made.frames = worst_.write_frames(options_.out, prefix_);
    }
    return made;
  }

 private:
  const ClipsOptions& options_;
  std::string prefix_;
  WorstFrames worst_;
  std::optional<SideBySide> side_by_side_;
  bool any_ = false;
};

void compare_pair(const Pair& pair, size_t number, size_t pairs, const ClipsOptions& options, VideoReport& report) {
  ClipOptions clip = clip_options(options);
  const std::string prefix = pairs > 1 ? fmt::format("{}-", number + 1) : "";
  Pictures pictures(options, prefix);
  std::optional<Progress> progress;
  clip.begin = [&](const ClipResult& result) {
    const int64_t frames = std::min(result.reference.frames.value_or(1000), result.candidate.frames.value_or(1000));
    progress.emplace(frames, options.quiet);
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

}  // namespace

VideoReport measured_clips(const ClipsOptions& options, const std::string& command_line) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Pair> pairs = pairs_of(options);
  if (!options.metrics_only) fs::create_directories(options.out);
  VideoReport report;
  report.command = command_line;
  report.date = now_text();
  report.folder = options.out;
  report.reference = options.reference, report.candidate = options.candidate;
  for (size_t i = 0; i < pairs.size(); ++i) compare_pair(pairs[i], i, pairs.size(), options, report);
  const Cpu cpu = this_cpu();
  report.machine = {{"cpu", cpu.model}, {"cpu_flags", cpu.flags}};
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

void check_clips(const ClipsOptions& options) {
  pairs_of(options);
  clip_options(options);
}

}  // namespace parity::cli
