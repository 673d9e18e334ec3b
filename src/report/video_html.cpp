// video.html: the report on clips as one file for a browser, on a phone or a desk, light or dark. Plots and pictures
// lie inside; the side-by-side video too when it is small. No script.
#include <fmt/format.h>

#include "report/data_url.hpp"
#include "report/markup.hpp"
#include "report/sink.hpp"
#include "report/video.hpp"

namespace parity {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kLargestInside = uintmax_t{8} << 20;  // bytes of a video that is carried along
constexpr size_t kOpenHtmlRows = 32;                      // longer tables are folded

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--ground:#fff;--card:#f6f8fa;--pass:#1a7f37;--fail:#c4212f;--note:#8a5a00}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#9aa4ae;--line:#363d45;--ground:#14171a;--card:#1e2227;--pass:#4cc36a;--fail:#ff7b72;--note:#e3b341}.plot{filter:invert(.92) hue-rotate(180deg)}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:1rem 1rem 3rem;font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;color:var(--ink);background:var(--ground);overflow-wrap:anywhere}
h1{font-size:1.15rem;color:var(--soft);font-weight:600;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}
.verdict{font-size:1.35rem;line-height:1.35;font-weight:650;margin:.3rem 0 1rem}.pass{color:var(--pass)}.fail{color:var(--fail)}.note{color:var(--note)}
.finding{border-left:4px solid var(--note);background:var(--card);padding:.6rem .9rem;margin:.6rem 0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.6rem;margin:1rem 0}
.tiles div{background:var(--card);border-radius:.5rem;padding:.6rem .8rem}.tiles b{display:block;font-size:1.3rem;font-weight:650}.tiles span,small,figcaption,footer{color:var(--soft);font-size:.85rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem;width:100%}
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}th{color:var(--soft);font-weight:600}
th:first-child,td:first-child{text-align:left;white-space:normal;min-width:8rem}.frames td:first-child,.frames th:first-child{min-width:0;position:sticky;left:0;background:var(--ground)}
figure{margin:1.2rem 0}img,video{display:block;width:100%;height:auto;border-radius:.3rem}img.sharp{width:auto;max-width:100%}video{background:#111}
summary{cursor:pointer;margin:1rem 0;font-weight:600}code{font-size:.85em}a{color:inherit}
)";

std::string figure(const std::string& inside, const std::string& caption) {
  return fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", inside, xml(caption));
}

std::string picture(const fs::path& folder, const std::string& file, const char* look, const std::string& caption) {
  if (file.empty()) return "";
  return figure(fmt::format("<img class=\"{}\" alt=\"{}\" src=\"{}\">", look, xml(caption),
                            data_url(folder / file, file.ends_with(".svg") ? "image/svg+xml" : "image/png")),
                caption);
}

/// The file beside the report first: Safari plays no data URLs. A report that travels alone has the second source.
std::string side_by_side(const fs::path& folder, const ClipPictures& made) {
  if (made.side_by_side.empty()) return "";
  std::error_code error;
  const auto size = fs::file_size(folder / made.side_by_side, error);
  std::string sources = fmt::format("<source type=\"video/mp4\" src=\"{}\">", xml(made.side_by_side));
  if (!error && size <= kLargestInside)
    sources += fmt::format("<source type=\"video/mp4\" src=\"{}\">", data_url(folder / made.side_by_side, "video/mp4"));
  return figure(fmt::format("<video controls loop muted playsinline preload=\"metadata\">{}</video>", sources),
                fmt::format("Side by side: reference, candidate, difference ×{:g}", made.amplification));
}

std::string html_row(const std::vector<std::string>& cells, const char* tag = "td") {
  std::string out = "<tr>";
  for (const std::string& cell : cells) out += fmt::format("<{0}>{1}</{0}>", tag, cell);
  return out + "</tr>\n";
}

std::string table(const std::vector<std::string>& head, const std::string& rows, const char* look = "") {
  return fmt::format("<div class=\"scroll\"><table class=\"{}\">{}{}</table></div>\n", look, html_row(head, "th"),
                     rows);
}

/// What no gate judged and nothing explains is neither good nor bad.
const char* look_of(const ClipResult& r) {
  const CheckVerdict v = overall(r);
  if (v == CheckVerdict::fail) return "fail";
  return v == CheckVerdict::inconclusive || !r.findings.empty() ? "note" : gated(r) ? "pass" : "";
}

std::string verdict(const ClipResult& r) {
  std::string out =
      fmt::format("<p class=\"verdict {}\">{} {}</p>\n", look_of(r), clip_sign(r), xml(verdict_sentence(r)));
  for (const ClipFinding& f : r.findings)
    out += fmt::format("<p class=\"finding\"><b>Diagnosis:</b> {}</p>\n", xml(f.text));
  for (const std::string& warning : r.warnings)
    out += fmt::format("<p class=\"finding\">⚠️ {}</p>\n", xml(warning));
  return out;
}

std::string tiles(const ClipSummary& s) {
  const auto tile = [](const char* name, const std::string& value) {
    return fmt::format("<div><span>{}</span><b>{}</b></div>", name, xml(value));
  };
  return "<div class=\"tiles\">" + tile("rating", s.rating.empty() ? "–" : s.rating) +
         tile("PSNR, mean", psnr_text(s)) + tile("SSIM, mean", fixed(s.ssim_mean, 5)) +
         tile("MS-SSIM, mean", fixed(s.ms_ssim_mean, 5)) + tile("|difference|, p99", percent(s.p99_abs_diff)) +
         tile("largest", percent(s.max_abs_diff)) + "</div>\n";
}

std::string numbers(const ClipResult& r) {
  std::string out, rows;
  const auto clip = [&](const char* what, const ClipFacts& f, int64_t frames) {
    out +=
        fmt::format("<p>{} <code>{}</code><br><small>{}, {} frames of {}×{}{}</small></p>\n", what, xml(f.path),
                    xml(f.format), frames, f.width, f.height, f.rate ? fmt::format(", {:.5g} frames/s", *f.rate) : "");
  };
  clip("Reference", r.reference, r.reference_frames), clip("Candidate", r.candidate, r.candidate_frames);
  if (r.summary.frames == 0) return out + "<p>Nothing was measured: the frames cannot be laid over each other.</p>\n";
  for (const ShownRow& s : shown_summary(r.summary)) rows += html_row({xml(s.what), xml(s.mean), xml(s.worst)});
  return out + table({fmt::format("{} frames", r.summary.frames), "mean", "worst frame"}, rows) +
         fmt::format("<p><small>{}.</small></p>\n", xml(definition_text(r.definition)));
}

std::string every_frame(const ClipResult& r) {
  std::string rows;
  for (const FrameMetrics& m : r.frames) rows += html_row(frame_cells(m));
  if (rows.empty()) return "";
  return fmt::format("<details{}><summary>Every frame</summary>\n{}</details>\n",
                     r.frames.size() <= kOpenHtmlRows ? " open" : "", table(frame_columns(), rows, "frames"));
}

std::string one_clip(const ClipResult& r, const ClipPlots& plots, const ClipPictures& made, const fs::path& folder) {
  std::string out = verdict(r);
  if (r.summary.frames > 0) out += tiles(r.summary);
  out += side_by_side(folder, made) + picture(folder, plots.over_time, "plot", "PSNR, SSIM and difference over time");
  if (!plots.problem.empty()) out += fmt::format("<p>⚠️ Plots are missing: {}.</p>\n", xml(plots.problem));
  out += picture(folder, made.contact_sheet, "",
                 fmt::format("Worst frames: reference, candidate, difference ×{:g}", made.amplification));
  out += picture(folder, made.heat_map, "sharp", fmt::format("Where frame {} differs", r.summary.psnr_min_frame));
  return out + numbers(r) + picture(folder, plots.histogram, "plot", "Histogram of the differences") + every_frame(r);
}

std::string html_pairs(const VideoReport& report) {
  std::string rows;
  for (size_t i = 0; i < report.clips.size(); ++i) {
    const ClipResult& c = report.clips[i];
    rows +=
        html_row({fmt::format("<a href=\"#pair{}\">{}</a>", i + 1, xml(c.name)), std::to_string(c.summary.frames),
                  psnr_text(c.summary), fixed(c.summary.psnr_min, 2, " dB"), fixed(c.summary.ssim_mean, 5),
                  fixed(c.summary.ssim_min, 5),
                  fmt::format("<span class=\"{}\">{} {}</span>", look_of(c), clip_sign(c), xml(verdict_sentence(c)))});
  }
  return table({"pair", "frames", "PSNR mean", "PSNR min", "SSIM mean", "SSIM min", "verdict"}, rows);
}

}  // namespace

void write_video_html(const VideoReport& report, const fs::path& folder) {
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>Video "
      "report</title><style>{}</style></head><body>\n<h1>Video report</h1>\n",
      kStyle);
  if (report.clips.size() > 1) text += html_pairs(report);
  for (size_t i = 0; i < report.clips.size(); ++i) {
    if (report.clips.size() > 1) text += fmt::format("<h2 id=\"pair{}\">{}</h2>\n", i + 1, xml(report.clips[i].name));
    text += one_clip(report.clips[i], i < report.plots.size() ? report.plots[i] : ClipPlots{},
                     i < report.pictures.size() ? report.pictures[i] : ClipPictures{}, folder);
  }
  text += "<footer><p>";
  if (!report.command.empty()) text += fmt::format("<code>{}</code><br>", xml(report.command));
  if (report.machine.is_object() && report.machine.contains("cpu"))
    text += xml(report.machine["cpu"].get<std::string>()) + ", ";
  text += fmt::format("{}{:.3g} s</p></footer>\n</body></html>\n", report.date.empty() ? "" : xml(report.date) + ", ",
                      report.seconds);
  write_file(folder / "video.html", text);
}

}  // namespace parity
