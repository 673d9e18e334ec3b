// Clips on a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "report/markup.hpp"
#include "report/video.hpp"

namespace parity {
namespace {

std::string painted(const std::string& text, const char* code, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

const char* colour_of(CheckVerdict v) {
  return v == CheckVerdict::pass ? "32" : v == CheckVerdict::fail ? "1;31" : "33";
}

std::string clip_line(const char* what, const ClipFacts& f, int64_t frames) {
  return fmt::format("{}  {}: {}, {} frames of {}x{}{}\n", what, plain(f.path), plain(f.format), frames, f.width,
                     f.height, f.rate ? fmt::format(", {:.4g} frames/s", *f.rate) : "");
}

std::string details(const ClipResult& r, bool colour) {
  std::string out = clip_line("reference", r.reference, r.reference_frames) +
                    clip_line("candidate", r.candidate, r.candidate_frames) + "\n";
  for (const ClipFinding& f : r.findings) out += painted("diagnosis: ", "33", colour) + plain(f.text) + "\n";
  if (!r.findings.empty()) out += "\n";
  if (r.summary.frames > 0) {
    out +=
        painted(fmt::format("{}  {}  {}", pad_right("", 36), pad_right("mean", 24), "worst frame"), "1", colour) + "\n";
    for (const ShownRow& row : shown_summary(r.summary))
      out += fmt::format("{}  {}  {}\n", pad_right(row.what, 36), pad_right(row.mean, 24), row.worst);
    out += "\n";
  }
  out += painted(plain(definition_text(r.definition)), "2", colour) + "\n";
  for (const std::string& warning : r.warnings) out += painted("warning: ", "33", colour) + plain(warning) + "\n";
  return out;
}

std::string pairs_table(const VideoReport& report, bool colour) {
  size_t width = 4;
  for (const ClipResult& c : report.clips) width = std::max(width, plain(c.name).size());
  std::string out =
      painted(fmt::format("{}  frames  PSNR mean   min     SSIM mean  min      verdict", pad_right("pair", width)), "1",
              colour) +
      "\n";
  for (const ClipResult& c : report.clips) {
    const auto fixed = [](std::optional<double> v, int digits) { return v ? fmt::format("{:.{}f}", *v, digits) : "–"; };
    const ClipSummary& s = c.summary;
    out += fmt::format(
        "{}  {}  {}  {}  {}  {}  {}\n", pad_right(plain(c.name), width), pad_left(std::to_string(s.frames), 6),
        pad_left(fixed(s.psnr_mean, 2), 9), pad_left(fixed(s.psnr_min, 2), 7), pad_left(fixed(s.ssim_mean, 5), 9),
        pad_left(fixed(s.ssim_min, 5), 7), painted(plain(verdict_sentence(c)), colour_of(overall(c)), colour));
    for (const ClipFinding& f : c.findings) out += fmt::format("{}  {}\n", pad_right("", width), plain(f.text));
  }
  return out;
}

}  // namespace

std::string video_console(const VideoReport& report, bool colour) {
  if (report.clips.size() == 1) {
    const ClipResult& r = report.clips.front();
    return painted(plain(verdict_sentence(r)), colour_of(overall(r)), colour) + "\n\n" + details(r, colour);
  }
  std::string out = pairs_table(report, colour) + "\n";
  out += painted(plain(definition_text(report.clips.front().definition)), "2", colour) + "\n";
  for (const ClipResult& c : report.clips)
    for (const std::string& warning : c.warnings) out += painted("warning: ", "33", colour) + plain(warning) + "\n";
  return out;
}

}  // namespace parity
