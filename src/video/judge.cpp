// Limits and verdicts. Touches no pixel.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "video/clip.hpp"

namespace parity {
namespace {

using nlohmann::json;

constexpr double kSameRate = 1e-4;  // relative; 29.97 and 30 are 1e-3 apart

std::vector<VideoThresholds::Step> steps(const json& table, const std::string& file) {
  std::vector<VideoThresholds::Step> out;
  for (const json& step : table) {
    if (!step.is_object() || !step.contains("above") || !step["above"].is_number() || !step.contains("rating") ||
        !step["rating"].is_string())
      throw Error(fmt::format("{}: a rating is {{\"above\": number, \"rating\": text}}", file));
    out.push_back({step["above"], step["rating"]});
    if (out.size() > 1 && out[out.size() - 2].above <= out.back().above)
      throw Error(fmt::format("{}: ratings must descend, {} does not", file, out.back().above));
  }
  if (out.empty()) throw Error(fmt::format("{}: a table of ratings is empty", file));
  return out;
}

void add(ClipResult& result, const char* name, bool pass, std::string text) {
  result.checks.push_back({name, pass ? CheckVerdict::pass : CheckVerdict::fail, std::move(text)});
}

void check_structure(ClipResult& result, std::optional<double> times_apart) {
  const ClipFacts &r = result.reference, &c = result.candidate;
  const bool sized = r.width == c.width && r.height == c.height;
  const bool exchanged = !sized && r.width == c.height && r.height == c.width;
  add(result, "frame_size", sized,
      fmt::format("reference {}x{}, candidate {}x{}{}", r.width, r.height, c.width, c.height,
                  exchanged ? ": width and height are exchanged" : ""));
  add(result, "channels", r.channels == c.channels, fmt::format("reference {}, candidate {}", r.channels, c.channels));
  add(result, "frame_count", result.reference_frames == result.candidate_frames,
      fmt::format("reference {}, candidate {}", result.reference_frames, result.candidate_frames));
  if (r.rate && c.rate)
    add(result, "frame_rate", std::abs(*r.rate - *c.rate) <= kSameRate * *r.rate,
        fmt::format("reference {:.6g}, candidate {:.6g} frames/s", *r.rate, *c.rate));
  if (times_apart && r.rate)
    add(result, "frame_times", *times_apart <= .5 / *r.rate,
        fmt::format("time stamps differ by {:.4g} s at most", *times_apart));
}

void gate(ClipResult& result, const char* name, std::optional<double> limit, std::optional<double> worst, bool vacuous,
          int64_t frame) {
  if (!limit) return;
  if (vacuous)
    add(result, name, true, fmt::format("every frame is identical (limit {:g})", *limit));
  else if (!worst)
    result.checks.push_back(
        {name, CheckVerdict::inconclusive, fmt::format("could not be measured (limit {:g})", *limit)});
  else
    add(result, name, *worst >= *limit, fmt::format("worst frame {}: {:.6g} (limit {:g})", frame, *worst, *limit));
}

size_t level(const std::string& rating, const std::vector<VideoThresholds::Step>& table) {
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].rating == rating) return i;
  return table.size();
}

/// The worse of the two; identical clips are "identical".
std::string rate(const ClipSummary& s, const VideoThresholds& t) {
  if (s.frames > 0 && s.identical_frames == s.frames) return "identical";
  if (!s.psnr_mean) return "";
  const std::string psnr = rating_of(*s.psnr_mean, t.psnr);
  if (!s.ssim_mean) return psnr;
  const std::string ssim = rating_of(*s.ssim_mean, t.ssim);
  return level(psnr, t.psnr) >= level(ssim, t.ssim) ? psnr : ssim;
}

}  // namespace

std::string rating_of(double value, const std::vector<VideoThresholds::Step>& table) {
  for (const auto& step : table)
    if (value > step.above) return step.rating;
  return table.back().rating;
}

VideoThresholds read_thresholds(const std::string& file) {
  std::ifstream stream(file);
  const json root = json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object() || !root.contains("video") || !root["video"].is_object())
    throw Error(fmt::format(
        "{}: is not a thresholds file (a JSON object with an object \"video\"); see reports/video-thresholds.json",
        file));
  VideoThresholds t;
  for (const auto& [key, value] : root["video"].items()) {
    if (key == "psnr" && value.is_array())
      t.psnr = steps(value, file);
    else if (key == "ssim" && value.is_array())
      t.ssim = steps(value, file);
    else if ((key == "min_psnr" || key == "min_ssim") && (value.is_number() || value.is_null()))
      (key == "min_psnr" ? t.min_psnr : t.min_ssim) =
          value.is_null() ? std::nullopt : std::optional<double>(value.get<double>());
    else if (key != "note")
      throw Error(fmt::format("{}: unknown or unusable entry video.{}", file, key));
  }
  return t;
}

void judge(ClipResult& result, const VideoThresholds& thresholds, std::optional<double> times_apart) {
  check_structure(result, times_apart);
  ClipSummary& s = result.summary;
  const bool identical = s.frames > 0 && s.identical_frames == s.frames;
  gate(result, "min_psnr", thresholds.min_psnr, s.psnr_min, identical, s.psnr_min_frame);
  gate(result, "min_ssim", thresholds.min_ssim, s.ssim_min, false, s.ssim_min_frame);
  s.rating = rate(s, thresholds);
}

CheckVerdict overall(const ClipResult& result) {
  CheckVerdict worst = CheckVerdict::pass;
  for (const Check& check : result.checks) {
    if (check.verdict == CheckVerdict::fail) return CheckVerdict::fail;
    if (check.verdict == CheckVerdict::inconclusive) worst = check.verdict;
  }
  return worst;
}

}  // namespace parity
