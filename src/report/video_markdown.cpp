// video.md: verdict, what differs and why, numbers, pictures, a line per frame.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/markup.hpp"
#include "report/sink.hpp"
#include "report/video.hpp"

namespace parity {
namespace {

constexpr size_t kOpenRows = 32;  // longer tables are folded

std::string markdown_row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string sign(CheckVerdict v) { return v == CheckVerdict::pass ? "✅" : v == CheckVerdict::fail ? "❌" : "⚠️"; }

std::string clip_row(const char* what, const ClipFacts& f, int64_t frames) {
  return markdown_row({what, markdown_code(f.path), markdown(f.format), std::to_string(frames),
                       fmt::format("{}×{}", f.width, f.height), f.rate ? fmt::format("{:.5g}", *f.rate) : "–"});
}

std::string clips(const ClipResult& r) {
  std::string out = markdown_row({"", "clip", "format", "frames", "size", "frames/s"}) +
                    markdown_row({"---", "---", "---", "--:", "--:", "--:"});
  return out + clip_row("reference", r.reference, r.reference_frames) +
         clip_row("candidate", r.candidate, r.candidate_frames) + "\n";
}

std::string explained(const ClipResult& r) {
  std::string out;
  for (const ClipFinding& f : r.findings) out += fmt::format("> **Diagnosis:** {}\n\n", markdown(f.text));
  for (const Check& c : r.checks)
    if (c.verdict != CheckVerdict::pass || c.name.starts_with("min_"))
      out += fmt::format("- {} {}: {}\n", sign(c.verdict), markdown(c.name), markdown(c.text));
  for (const std::string& warning : r.warnings) out += fmt::format("- ⚠️ {}\n", markdown(warning));
  return out.empty() || out.ends_with("\n\n") ? out : out + "\n";
}

std::string summary(const ClipResult& r) {
  if (r.summary.frames == 0) return "Nothing was measured: the frames cannot be laid over each other.\n\n";
  std::string out = markdown_row({fmt::format("{} frames", r.summary.frames), "mean", "worst frame"}) +
                    markdown_row({"---", "--:", "--:"});
  for (const ShownRow& s : shown_summary(r.summary)) out += markdown_row({s.what, s.mean, s.worst});
  out +=
      markdown_row({"rating", r.summary.rating.empty() ? "–" : fmt::format("**{}**", markdown(r.summary.rating)), ""});
  return out + fmt::format("\n{}.\n\n", markdown(definition_text(r.definition)));
}

std::string pictures(const ClipResult& r, const ClipPlots& plots, const ClipPictures* made) {
  std::string out;
  if (!plots.over_time.empty()) out += fmt::format("![PSNR, SSIM and difference over time]({})\n\n", plots.over_time);
  if (!plots.histogram.empty()) out += fmt::format("![Histogram of the differences]({})\n\n", plots.histogram);
  if (!plots.problem.empty()) out += fmt::format("⚠️ Plots are missing: {}.\n\n", markdown(plots.problem));
  if (made && !made->contact_sheet.empty())
    out += fmt::format("**Worst frames**: reference, candidate, difference ×{:g}\n\n![Worst frames]({})\n\n",
                       made->amplification, made->contact_sheet);
  if (made && !made->heat_map.empty())
    out += fmt::format("**Where frame {} differs**\n\n![Heat map of the difference]({})\n\n", r.summary.psnr_min_frame,
                       made->heat_map);
  if (made && !made->side_by_side.empty())
    out += fmt::format("**Side by side** (reference, candidate, difference ×{:g}): [{}]({})\n\n", made->amplification,
                       made->side_by_side, made->side_by_side);
  return out;
}

std::string frame_table(const ClipResult& r) {
  if (r.frames.empty()) return "";
  std::string table =
      markdown_row(frame_columns()) + markdown_row(std::vector<std::string>(frame_columns().size(), "--:"));
  for (const FrameMetrics& m : r.frames) table += markdown_row(frame_cells(m));
  if (r.frames.size() <= kOpenRows) return "**Every frame**\n\n" + table + "\n";
  return fmt::format("<details>\n<summary>All {} frames</summary>\n\n{}\n</details>\n\n", r.frames.size(), table);
}

std::string one_clip(const ClipResult& r, const ClipPictures* made, const ClipPlots& plots) {
  return fmt::format("{} **{}**\n\n", clip_sign(r), markdown(verdict_sentence(r))) + explained(r) + clips(r) +
         summary(r) + pictures(r, plots, made) + frame_table(r);
}

std::string markdown_pairs(const VideoReport& report) {
  std::string out = markdown_row({"pair", "frames", "PSNR mean", "PSNR min", "SSIM mean", "SSIM min", "verdict"}) +
                    markdown_row({"---", "--:", "--:", "--:", "--:", "--:", "---"});
  for (const ClipResult& c : report.clips) {
    const ClipSummary& s = c.summary;
    out += markdown_row({markdown(c.name), std::to_string(s.frames), psnr_text(s), fixed(s.psnr_min, 2, " dB"),
                         fixed(s.ssim_mean, 5), fixed(s.ssim_min, 5),
                         fmt::format("{} {}", clip_sign(c), markdown(verdict_sentence(c)))});
  }
  return out + "\n";
}

std::string provenance(const VideoReport& report) {
  std::string out = "## Where these numbers come from\n\n";
  if (!report.command.empty()) out += fmt::format("- command: {}\n", markdown_code(report.command));
  if (report.machine.is_object() && report.machine.contains("cpu"))
    out += fmt::format("- machine: {}\n", markdown(report.machine["cpu"].get<std::string>()));
  return out + fmt::format("- {}{:.3g} s\n", report.date.empty() ? "" : fmt::format("{}, ", markdown(report.date)),
                           report.seconds);
}

}  // namespace

std::string video_markdown(const VideoReport& report, int level) {
  const auto made = [&](size_t i) { return i < report.pictures.size() ? &report.pictures[i] : nullptr; };
  const auto plots = [&](size_t i) { return i < report.plots.size() ? report.plots[i] : ClipPlots{}; };
  if (report.clips.size() == 1) return one_clip(report.clips.front(), made(0), plots(0));
  std::string text = markdown_pairs(report);
  const std::string heading(static_cast<size_t>(level), '#');
  for (size_t i = 0; i < report.clips.size(); ++i)
    text += fmt::format("{} {}\n\n", heading, markdown(report.clips[i].name)) +
            one_clip(report.clips[i], made(i), plots(i));
  return text;
}

void write_video_markdown(const VideoReport& report, const std::filesystem::path& folder) {
  write_file(folder / "video.md", "# Video report\n\n" + video_markdown(report, 2) + provenance(report));
}

}  // namespace parity
