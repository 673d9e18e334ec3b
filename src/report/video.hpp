// Reports on compared clips. Like the other sinks these show and compute nothing but sums over pairs.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "video/clip.hpp"

namespace parity {

/// Names of files in the report's folder; "" for what was not made.
struct ClipPictures {
  std::string side_by_side, contact_sheet, heat_map;
  double amplification = 1;
};

struct VideoReport {
  std::string command, date, reference, candidate;  // the two paths as given
  double seconds = 0;
  nlohmann::json machine;
  std::vector<ClipResult> clips;       // at least one
  std::vector<ClipPictures> pictures;  // one for each clip, or none at all
};

CheckVerdict overall(const VideoReport& report);
/// 0 pass, 1 fail, 3 inconclusive.
int exit_status(const VideoReport& report);
/// Means over pairs weighted by frames, extremes; percentiles of several pairs do not exist.
ClipSummary pooled(const std::vector<ClipResult>& clips);

std::string ssim_name(SsimKind kind);

nlohmann::json video_json(const ClipResult& result);  // the section "video" of one pair
nlohmann::json to_json(const VideoReport& report);    // parity-report/1
/// `existing`, a parity-report/1 read from `file`, with this report's section "video", counts and verdict; written
/// back.
void merge_into(const VideoReport& report, const std::filesystem::path& file, nlohmann::json existing);

/// video.md with its plots beside it in `folder`.
void write_video_markdown(const VideoReport& report, const std::filesystem::path& folder);
std::string video_console(const VideoReport& report, bool colour);

/// The plots of one clip: error over time, histogram of differences. Returns the file names; "" and a problem where
/// gnuplot is missing or fails.
struct ClipPlots {
  std::string over_time, histogram, problem;
};
ClipPlots draw_clip_plots(const ClipResult& result, const std::filesystem::path& folder, const std::string& prefix);

/// How numbers are shown in both the console and the Markdown report.
struct ShownRow {
  std::string what, mean, worst;
};
std::vector<ShownRow> shown_summary(const ClipSummary& summary);
/// "SSIM gaussian 11x11, sigma 1.5, ... on RGB; yuv420p to RGB by ...".
std::string definition_text(const VideoDefinition& definition);
/// Was a gate applied?
bool gated(const ClipResult& result);
std::string verdict_sentence(const ClipResult& result);

}  // namespace parity
