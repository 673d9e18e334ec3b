// The section "video" of parity-report/1, and a report that consists of it.
#include "report/json_parts.hpp"
#include "report/json_values.hpp"
#include "report/sink.hpp"
#include "report/video.hpp"

namespace parity {
namespace {

using nlohmann::json;

json ssim_json(SsimKind kind) {
  json out = {{"name", ssim_name(kind)}, {"K1", .01}, {"K2", .03}, {"border", "valid"}};
  switch (kind) {
    case SsimKind::gaussian:
      out.update({{"window", "gaussian"}, {"size", 11}, {"sigma", 1.5}, {"covariance", "population"}, {"stride", 1}});
      break;
    case SsimKind::uniform:
      out.update({{"window", "uniform"}, {"size", 7}, {"sigma", nullptr}, {"covariance", "sample"}, {"stride", 1}});
      break;
    case SsimKind::ffmpeg:
      out.update({{"window", "uniform"}, {"size", 8}, {"sigma", nullptr}, {"covariance", "sample"}, {"stride", 4}});
  }
  return out;
}

json definition_json(const VideoDefinition& d) {
  return {{"space", d.luma ? "luma" : "rgb"},
          {"conversion", plain(d.conversion)},
          {"ssim", ssim_json(d.ssim)},
          {"channels", "PSNR over all samples; SSIM is the mean of the channels"},
          {"psnr_mean", "mean of frames"},
          {"identical_frames", "have no PSNR (null) and are left out of its mean"},
          {"data_range", d.ranged ? json(1.0) : json(nullptr)},
          {"range", d.range ? json(*d.range) : json{0, 1}},
          {"mean_rel_diff", "mean |d| / max(reference, 1/255)"},
          {"percentiles",
           d.exact_percentiles ? "exact, linear between ranks" : "of frames exact, of the clip to 1/8192 of the value"},
          {"flicker", "root mean square of the change of (candidate - reference) from one frame to the next"}};
}

json summary_json(const ClipSummary& s) {
  return {{"mse_mean", value(s.mse_mean)},
          {"mse_max", value(s.mse_max)},
          {"psnr_mean", value(s.psnr_mean)},
          {"psnr_min", value(s.psnr_min)},
          {"psnr_min_frame", s.psnr_min_frame < 0 ? json(nullptr) : json(s.psnr_min_frame)},
          {"psnr_of_mean_mse", value(s.psnr_pooled)},
          {"ssim_mean", value(s.ssim_mean)},
          {"ssim_min", value(s.ssim_min)},
          {"ssim_min_frame", s.ssim_min_frame < 0 ? json(nullptr) : json(s.ssim_min_frame)},
          {"ms_ssim_mean", value(s.ms_ssim_mean)},
          {"ms_ssim_min", value(s.ms_ssim_min)},
          {"max_abs_diff", value(s.max_abs_diff)},
          {"mean_abs_diff", value(s.mean_abs_diff)},
          {"p95_abs_diff", value(s.p95_abs_diff)},
          {"p99_abs_diff", value(s.p99_abs_diff)},
          {"mean_rel_diff", value(s.mean_rel_diff)},
          {"rel_l2", value(s.rel_l2)},
          {"bias", s.bias},
          {"equal_share", value(s.equal_share)},
          {"flicker", value(s.flicker)},
          {"motion_ratio", value(s.motion_ratio)},
          {"frames", s.frames},
          {"identical", s.frames > 0 && s.identical_frames == s.frames},
          {"identical_frames", s.identical_frames},
          {"rating", s.rating.empty() ? json(nullptr) : json(s.rating)}};
}

json frame_json(const FrameMetrics& m) {
  return {{"index", m.index},
          {"identical", m.identical},
          {"mse", value(m.mse)},
          {"psnr", value(m.psnr)},
          {"ssim", value(m.ssim)},
          {"ms_ssim", value(m.ms_ssim)},
          {"max_abs_diff", value(m.max_abs)},
          {"mean_abs_diff", value(m.mean_abs)},
          {"p95_abs_diff", value(m.p95_abs)},
          {"p99_abs_diff", value(m.p99_abs)},
          {"mean_rel_diff", value(m.mean_rel)},
          {"rel_l2", value(m.rel_l2)},
          {"bias", m.bias},
          {"equal_share", m.equal_share},
          {"flicker", value(m.flicker)},
          {"motion_reference", value(m.motion_reference)},
          {"motion_candidate", value(m.motion_candidate)}};
}

json clip_json(const ClipFacts& f, int64_t frames) {
  return {
      {"path", plain(f.path)}, {"kind", f.kind},     {"format", plain(f.format)}, {"conversion", plain(f.conversion)},
      {"width", f.width},      {"height", f.height}, {"channels", f.channels},    {"frames", frames},
      {"rate", value(f.rate)}};
}

Verdict verdict_of(CheckVerdict v) {
  return v == CheckVerdict::pass ? Verdict::pass : v == CheckVerdict::fail ? Verdict::fail : Verdict::inconclusive;
}

/// Structure is a shape, a gate a failure.
Verdict check_verdict(const Check& check) {
  return check.verdict == CheckVerdict::fail && !check.name.starts_with("min_") ? Verdict::shape
                                                                                : verdict_of(check.verdict);
}

}  // namespace

std::string ssim_name(SsimKind kind) {
  return kind == SsimKind::gaussian ? "gaussian" : kind == SsimKind::uniform ? "uniform" : "ffmpeg";
}

json video_json(const ClipResult& r) {
  json frames = json::array(), checks = json::array(), findings = json::array();
  for (const FrameMetrics& m : r.frames) frames.push_back(frame_json(m));
  for (const Check& c : r.checks)
    checks.push_back({{"name", c.name}, {"verdict", verdict_name(check_verdict(c))}, {"text", plain(c.text)}});
  for (const ClipFinding& f : r.findings)
    findings.push_back({{"kind", f.kind},
                        {"text", plain(f.text)},
                        {"psnr_before", value(f.psnr_before)},
                        {"psnr_after", value(f.psnr_after)}});
  return {{"name", plain(r.name)},
          {"definition", definition_json(r.definition)},
          {"reference", clip_json(r.reference, r.reference_frames)},
          {"candidate", clip_json(r.candidate, r.candidate_frames)},
          {"verdict", verdict_name(verdict_of(overall(r)))},
          {"summary", summary_json(r.summary)},
          {"checks", std::move(checks)},
          {"diagnosis", std::move(findings)},
          {"warnings", texts(r.warnings)},
          {"frames", std::move(frames)}};
}

json video_section(const VideoReport* report) {
  if (report == nullptr) return nullptr;
  json video = video_json(report->clips.front());
  if (report->clips.size() == 1) return video;
  // Several pairs: the first one's definition holds for all; frames carry their pair's name.
  video["name"] = "";
  video["verdict"] = verdict_name(verdict_of(overall(*report)));
  video["summary"] = summary_json(pooled(report->clips));
  video["pairs"] = json::array();
  video["frames"] = json::array();
  for (const ClipResult& clip : report->clips) {
    json pair = video_json(clip);
    for (json& frame : pair["frames"]) {
      frame["pair"] = pair["name"];
      video["frames"].push_back(std::move(frame));
    }
    pair.erase("frames");
    video["pairs"].push_back(std::move(pair));
  }
  return video;
}

std::vector<Verdict> check_verdicts(const VideoReport& report) {
  std::vector<Verdict> out;
  for (const ClipResult& clip : report.clips)
    for (const Check& check : clip.checks) out.push_back(check_verdict(check));
  return out;
}

void attach_video(Report& report, std::shared_ptr<const VideoReport> video) {
  report.video_checks = check_verdicts(*video);
  report.video = std::move(video);
}

json to_json(const VideoReport& report) {
  Report empty;
  empty.command = report.command;
  empty.date = report.date;
  empty.seconds = report.seconds;
  empty.machine = report.machine;
  empty.reference.path = report.reference;
  empty.candidate.path = report.candidate;
  for (const ClipResult& clip : report.clips)
    for (const std::string& warning : clip.warnings) empty.warnings.push_back(warning);
  json out = to_json(empty);
  empty.video_checks = check_verdicts(report);
  out["counts"] = count_verdicts(empty);
  out["verdict"] = verdict_name(verdict_of(overall(report)));
  out["video"] = video_section(&report);
  return out;
}

void merge_into(const VideoReport& report, const std::filesystem::path& file, json existing) {
  const json own = to_json(report);
  existing["video"] = own["video"];
  for (const auto& [verdict, count] : own["counts"].items())
    existing["counts"][verdict] = existing["counts"].value(verdict, int64_t{0}) + count.get<int64_t>();
  if (own["verdict"] == "fail" || existing["verdict"] == "pass") existing["verdict"] = own["verdict"];
  write_file(file, existing.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

}  // namespace parity
