// Reports on compared clips. Like the other sinks these show and compute nothing but sums over pairs.
#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "video/clip.hpp"

namespace parity {

/// Names of files in the report's folder; "" for what was not made.
struct ClipPictures {
  std::string side_by_side, contact_sheet, heat_map;
  std::vector<FramePictures> frames;  // the worst first
  double amplification = 1;
};

/// The plots of one clip; "" and a problem where gnuplot is missing or fails.
struct ClipPlots {
  std::string over_time, histogram, problem;
};

struct VideoReport {
  std::string command, date, reference, candidate;  // the two paths as given
  double seconds = 0;
  nlohmann::json machine;
  std::filesystem::path folder;        // where the pictures lie
  std::vector<ClipResult> clips;       // at least one
  std::vector<ClipPictures> pictures;  // one for each clip, or none at all
  std::vector<ClipPlots> plots;        // the same
};

CheckVerdict overall(const VideoReport& report);
/// 0 pass, 1 fail, 3 inconclusive.
int exit_status(const VideoReport& report);
/// Means over pairs weighted by frames, extremes; percentiles of several pairs do not exist.
ClipSummary pooled(const std::vector<ClipResult>& clips);

std::string ssim_name(SsimKind kind);

/// What was asked of the clips: each counts like a row of a report.
std::vector<Verdict> check_verdicts(const VideoReport& report);
/// Puts the clips into the report of a run that they belong to.
void attach_video(Report& report, std::shared_ptr<const VideoReport> video);

nlohmann::json video_json(const ClipResult& result);  // the section "video" of one pair
nlohmann::json to_json(const VideoReport& report);    // parity-report/1
/// `existing`, a parity-report/1 read from `file`, with this report's section "video", counts and verdict; written
/// back.
void merge_into(const VideoReport& report, const std::filesystem::path& file, nlohmann::json existing);

/// The part of report.md on the clips; a heading of level `level` for each of several pairs.
std::string video_markdown(const VideoReport& report, int level);
/// One line: which verdict, and why; of several pairs how many fail.
std::string video_headline(const VideoReport& report);
/// video.md in `folder`, beside its pictures.
void write_video_markdown(const VideoReport& report, const std::filesystem::path& folder);
/// video.html in `folder`: one file, plots and pictures inside.
void write_video_html(const VideoReport& report, const std::filesystem::path& folder);
std::string video_console(const VideoReport& report, bool colour);

/// Error over time, histogram of differences.
ClipPlots draw_clip_plots(const ClipResult& result, const std::filesystem::path& folder, const std::string& prefix);

/// How numbers are shown, "–" when they do not exist: "23.07 dB", "4.86 %" of a share.
std::string fixed(std::optional<double> value, int digits, const char* unit = "");
std::string percent(std::optional<double> value);
std::string psnr_text(const ClipSummary& summary);  // "identical" when all frames are
/// One line of the table of all frames.
const std::vector<std::string>& frame_columns();
std::vector<std::string> frame_cells(const FrameMetrics& frame);
struct ShownRow {
  std::string what, mean, worst;
};
std::vector<ShownRow> shown_summary(const ClipSummary& summary);
/// "SSIM gaussian 11x11, sigma 1.5, ... on RGB; yuv420p to RGB by ...".
std::string definition_text(const VideoDefinition& definition);
/// Was a gate applied?
bool gated(const ClipResult& result);
std::string verdict_sentence(const ClipResult& result);
/// A mark for it; a clip that no gate judged is neither right nor wrong.
std::string clip_sign(const ClipResult& result);

}  // namespace parity
