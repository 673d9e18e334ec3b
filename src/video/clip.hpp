// Two clips compared: the nouns that judging fills and the report shows.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "video/frame.hpp"
#include "video/measure.hpp"
#include "video/sources.hpp"

namespace parity {

/// Which definitions were used; printed with every number.
struct VideoDefinition {
  bool luma = false;
  SsimKind ssim = SsimKind::gaussian;
  bool ranged = true;
  std::string conversion;
  std::optional<std::array<double, 2>> range;  // as stated
  bool exact_percentiles = true;
};

/// Over all compared frames; units as in FrameMetrics.
struct ClipSummary {
  std::optional<double> mse_mean, mse_max;
  std::optional<double> psnr_mean, psnr_min;  // over the frames that differ
  std::optional<double> psnr_pooled;          // of mse_mean
  std::optional<double> ssim_mean, ssim_min, ms_ssim_mean, ms_ssim_min;
  std::optional<double> max_abs_diff, mean_abs_diff, p95_abs_diff, p99_abs_diff, mean_rel_diff, rel_l2;
  std::vector<double> bias;
  std::optional<double> equal_share;
  std::optional<double> flicker;       // root mean square over all frames but the first
  std::optional<double> motion_ratio;  // the candidate's motion over the reference's
  int64_t frames = 0, identical_frames = 0;
  int64_t psnr_min_frame = -1, ssim_min_frame = -1;
  std::string rating;  // "" when nothing can be rated
};

enum class CheckVerdict { pass, fail, inconclusive };
/// A structural fact or a gate.
struct Check {
  std::string name;  // frame_count, frame_size, channels, frame_rate, frame_times, min_psnr, min_ssim
  CheckVerdict verdict = CheckVerdict::pass;
  std::string text;
};

/// What explains a difference.
struct ClipFinding {
  std::string kind;  // offset, jump, order, channels, range, gamma, flip, shift, brightness, frames
  std::string text;  // one sentence
  std::optional<double> psnr_before, psnr_after;  // of the mean MSE, at full size, without and with it undone
};

struct ClipResult {
  std::string name;  // of the pair, when there are several
  ClipFacts reference, candidate;
  int64_t reference_frames = 0, candidate_frames = 0;
  VideoDefinition definition;
  ClipSummary summary;
  std::vector<FrameMetrics> frames;
  std::vector<Check> checks;
  std::vector<ClipFinding> findings;
  std::vector<std::string> warnings;
  HistogramOfDifferences histogram;
  double seconds = 0;
};

/// Ratings and gates; reports/video-thresholds.json holds the same as an editable file.
struct VideoThresholds {
  struct Step {
    double above = 0;
    std::string rating;
  };
  std::vector<Step> psnr{{40, "excellent"}, {35, "very good"}, {30, "good"}, {25, "fair"}, {0, "poor"}};
  std::vector<Step> ssim{{.99, "excellent"}, {.98, "very good"}, {.95, "good"}, {.9, "fair"}, {-1, "poor"}};
  std::optional<double> min_psnr, min_ssim;  // of every single frame
};

/// Throws Error for a file that is not of this form.
VideoThresholds read_thresholds(const std::string& file);
/// Of one value in a descending table: "very good".
std::string rating_of(double value, const std::vector<VideoThresholds::Step>& steps);
/// Fills rating and checks from what was measured. `times_apart`: the largest difference of time stamps, in seconds.
void judge(ClipResult& result, const VideoThresholds& thresholds, std::optional<double> times_apart);
CheckVerdict overall(const ClipResult& result);

/// A pair of frames with its numbers, in order; pictures are made from these.
struct ComparedPair {
  const Frame& reference;
  const Frame& candidate;
  const FrameMetrics& metrics;
};

/// One of the worst frames as pictures of one size, each a PNG of its own: files in the report's folder.
struct FramePictures {
  int64_t index = 0;
  std::optional<double> psnr, ssim;
  std::string reference, candidate, difference;
};

struct ClipOptions {
  SourceOptions reference, candidate;
  MeasureOptions measure;
  VideoThresholds thresholds;
  int threads = 0;  // 0: as many as the machine has
  bool diagnose = true;
  std::function<void(const ClipResult&)> begin;   // once facts are known, before the first frame
  std::function<void(const ComparedPair&)> pair;  // frames in order
  std::function<void(int64_t done)> progress;
};

/// Reads, measures, judges and explains; memory does not grow with the clips' length but for the list of numbers.
/// Throws Error for unusable input.
ClipResult compare_clips(const std::string& reference, const std::string& candidate, const ClipOptions& options);

}  // namespace parity
