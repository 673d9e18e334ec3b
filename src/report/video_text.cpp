// What the console and the Markdown report on clips have in common.
#include <fmt/format.h>

#include <algorithm>

#include "report/markup.hpp"
#include "report/video.hpp"

namespace parity {
namespace {

std::string at_frame(const std::string& text, int64_t frame) {
  return frame < 0 ? text : fmt::format("{} (frame {})", text, frame);
}

}  // namespace

std::string fixed(std::optional<double> value, int digits, const char* unit) {
  return value ? fmt::format("{:.{}f}{}", *value, digits, unit) : "–";
}

std::string percent(std::optional<double> value) { return value ? fmt::format("{:.2f} %", *value * 100) : "–"; }

std::string psnr_text(const ClipSummary& s) {
  if (s.frames > 0 && s.identical_frames == s.frames) return "identical";
  return fixed(s.psnr_mean, 2, " dB");
}

const std::vector<std::string>& frame_columns() {
  static const std::vector<std::string> columns{"frame", "MSE",  "PSNR, dB", "SSIM", "MS-SSIM",
                                                "max",   "mean", "p95",      "p99",  "equal"};
  return columns;
}

std::vector<std::string> frame_cells(const FrameMetrics& m) {
  return {std::to_string(m.index), number(m.mse),       m.identical ? "identical" : fixed(m.psnr, 2),
          fixed(m.ssim, 5),        fixed(m.ms_ssim, 5), percent(m.max_abs),
          percent(m.mean_abs),     percent(m.p95_abs),  percent(m.p99_abs),
          share(m.equal_share)};
}

std::vector<ShownRow> shown_summary(const ClipSummary& s) {
  std::vector<ShownRow> rows{{"MSE", number(s.mse_mean), number(s.mse_max)},
                             {"PSNR", psnr_text(s), at_frame(fixed(s.psnr_min, 2, " dB"), s.psnr_min_frame)},
                             {"SSIM", fixed(s.ssim_mean, 5), at_frame(fixed(s.ssim_min, 5), s.ssim_min_frame)},
                             {"MS-SSIM", fixed(s.ms_ssim_mean, 5), fixed(s.ms_ssim_min, 5)},
                             {"absolute difference", percent(s.mean_abs_diff), percent(s.max_abs_diff)},
                             {"absolute difference, p95", percent(s.p95_abs_diff), ""},
                             {"absolute difference, p99", percent(s.p99_abs_diff), ""},
                             {"relative difference", percent(s.mean_rel_diff), ""},
                             {"equal samples", share(s.equal_share), ""},
                             {"flicker (change of the difference)", percent(s.flicker), ""},
                             {"motion, candidate / reference", fixed(s.motion_ratio, 4), ""}};
  std::string bias;
  for (const double b : s.bias) bias += fmt::format("{}{:+.3f} %", bias.empty() ? "" : ", ", b * 100);
  if (s.bias.size() <= 4) rows.push_back({s.bias.size() == 3 ? "bias R, G, B" : "bias", bias, ""});
  if (s.identical_frames > 0)
    rows.push_back({"identical frames", fmt::format("{} of {}", s.identical_frames, s.frames), ""});
  return rows;
}

std::string definition_text(const VideoDefinition& d) {
  const char* ssim = d.ssim == SsimKind::gaussian ? "SSIM: Gaussian 11x11, σ 1.5, population covariance, border cropped"
                     : d.ssim == SsimKind::uniform
                         ? "SSIM: uniform 7x7, sample covariance, border cropped (scikit-image's default)"
                         : "SSIM: 8x8 blocks 4 apart (FFmpeg's filter)";
  return fmt::format("{}, on {}; PSNR: mean of the frames that differ, data range {}; {}", ssim,
                     d.luma ? "luma" : "RGB in [0, 1]", d.ranged ? "1" : "none", d.conversion);
}

bool gated(const ClipResult& result) {
  return std::any_of(result.checks.begin(), result.checks.end(),
                     [](const Check& c) { return c.name.starts_with("min_"); });
}

std::string verdict_sentence(const ClipResult& result) {
  std::string failed;
  for (const Check& check : result.checks)
    if (check.verdict != CheckVerdict::pass)
      failed += fmt::format("{}{}: {}", failed.empty() ? "" : "; ", check.name, check.text);
  const CheckVerdict v = overall(result);
  if (v == CheckVerdict::fail) return "FAIL: " + failed;
  if (v == CheckVerdict::inconclusive) return "INCONCLUSIVE: " + failed;
  const std::string& rating = result.summary.rating;
  return fmt::format("{}: {} frames compared{}", gated(result) ? "PASS" : "MEASURED, no gate set",
                     result.summary.frames, rating.empty() ? "" : ", rated " + rating);
}

std::string clip_sign(const ClipResult& r) {
  const CheckVerdict v = overall(r);
  if (v == CheckVerdict::fail) return "❌";
  if (v == CheckVerdict::inconclusive) return "⚠️";
  return gated(r) ? "✅" : r.findings.empty() ? "ℹ️" : "⚠️";
}

CheckVerdict overall(const VideoReport& report) {
  CheckVerdict worst = CheckVerdict::pass;
  for (const ClipResult& clip : report.clips) {
    const CheckVerdict v = overall(clip);
    if (v == CheckVerdict::fail) return v;
    if (v == CheckVerdict::inconclusive) worst = v;
  }
  return worst;
}

std::string video_headline(const VideoReport& report) {
  if (report.clips.size() == 1) return verdict_sentence(report.clips.front());
  size_t fail = 0, open = 0;
  for (const ClipResult& clip : report.clips) {
    fail += overall(clip) == CheckVerdict::fail;
    open += overall(clip) == CheckVerdict::inconclusive;
  }
  const size_t all = report.clips.size();
  if (fail > 0) return fmt::format("FAIL: {} of {} pairs of clips", fail, all);
  if (open > 0) return fmt::format("INCONCLUSIVE: {} of {} pairs of clips", open, all);
  return fmt::format("{}: {} pairs of clips", gated(report.clips.front()) ? "PASS" : "MEASURED, no gate set", all);
}

int exit_status(const VideoReport& report) {
  const CheckVerdict v = overall(report);
  return v == CheckVerdict::pass ? 0 : v == CheckVerdict::fail ? 1 : 3;
}

ClipSummary pooled(const std::vector<ClipResult>& clips) {
  ClipSummary all;
  const auto mean = [&](std::optional<double> ClipSummary::*of) {
    double sum = 0, weight = 0;
    for (const ClipResult& c : clips)
      if (c.summary.*of) {
        // PSNR's mean is over the frames that differ.
        const double w = static_cast<double>(
            of == &ClipSummary::psnr_mean ? c.summary.frames - c.summary.identical_frames : c.summary.frames);
        sum += *(c.summary.*of) * w, weight += w;
      }
    if (weight > 0) all.*of = sum / weight;
  };
  for (auto of : {&ClipSummary::mse_mean, &ClipSummary::psnr_mean, &ClipSummary::ssim_mean, &ClipSummary::ms_ssim_mean,
                  &ClipSummary::mean_abs_diff, &ClipSummary::mean_rel_diff, &ClipSummary::equal_share})
    mean(of);
  for (const ClipResult& c : clips) {
    const ClipSummary& s = c.summary;
    const auto extreme = [](std::optional<double>& to, std::optional<double> from, bool largest) {
      if (from) to = !to ? *from : largest ? std::max(*to, *from) : std::min(*to, *from);
    };
    extreme(all.mse_max, s.mse_max, true), extreme(all.max_abs_diff, s.max_abs_diff, true);
    extreme(all.psnr_min, s.psnr_min, false), extreme(all.ssim_min, s.ssim_min, false),
        extreme(all.ms_ssim_min, s.ms_ssim_min, false);
    all.frames += s.frames, all.identical_frames += s.identical_frames;
  }
  return all;
}

}  // namespace parity
