// The clips in report.html: what video.md says of them, and the worst frames as pictures that the page lays over each
// other.
#include <fmt/format.h>

#include "report/data_url.hpp"
#include "report/html.hpp"
#include "report/json_values.hpp"
#include "report/video.hpp"

namespace parity {
namespace {

using nlohmann::json;

const char* tone_of(const ClipResult& r) {
  const CheckVerdict v = overall(r);
  if (v == CheckVerdict::fail) return "fail";
  return v == CheckVerdict::inconclusive || !r.findings.empty() ? "note" : gated(r) ? "pass" : "";
}

json clip_facts(const ClipFacts& f, int64_t frames) {
  return fmt::format("{}: {}, {} frames of {}×{}{}", plain(f.path), plain(f.format), frames, f.width, f.height,
                     f.rate ? fmt::format(", {:.5g} frames/s", *f.rate) : "");
}

json html_frames(const ClipResult& r) {
  json rows = json::array(), psnr = json::array(), ssim = json::array(), index = json::array();
  for (const FrameMetrics& m : r.frames) {
    rows.push_back(frame_cells(m));
    index.push_back(m.index);
    psnr.push_back(brief(m.psnr)), ssim.push_back(brief(m.ssim, kNearOneDigits));
  }
  return {{"columns", frame_columns()}, {"rows", rows}, {"index", index}, {"psnr", psnr}, {"ssim", ssim}};
}

json html_clip(const ClipResult& r, const ClipPictures* made) {
  json summary = json::array(), said = json::array();
  if (r.summary.frames > 0)
    for (const ShownRow& row : shown_summary(r.summary)) summary.push_back({row.what, row.mean, row.worst});
  for (const ClipFinding& f : r.findings) said.push_back(plain(f.text));
  for (const std::string& warning : r.warnings) said.push_back(plain(warning));
  return {{"name", plain(r.name)},
          {"sentence", plain(verdict_sentence(r))},
          {"tone", tone_of(r)},
          {"said", std::move(said)},
          {"sides", {clip_facts(r.reference, r.reference_frames), clip_facts(r.candidate, r.candidate_frames)}},
          {"summary", std::move(summary)},
          {"definition", plain(definition_text(r.definition))},
          {"gain", made ? made->amplification : 1},
          {"frames", html_frames(r)},
          {"pictures", json::array()}};
}

}  // namespace

json html_video(const VideoReport* video) {
  if (video == nullptr) return nullptr;
  json out = json::array();
  for (size_t i = 0; i < video->clips.size(); ++i)
    out.push_back(html_clip(video->clips[i], i < video->pictures.size() ? &video->pictures[i] : nullptr));
  return out;
}

void add_pictures(json& clips, const VideoReport& video, size_t room) {
  for (size_t n = 0;; ++n) {  // the worst frame of every pair, then the second …
    bool any = false;
    for (size_t i = 0; i < video.pictures.size(); ++i) {
      if (n >= video.pictures[i].frames.size()) continue;
      const FramePictures& f = video.pictures[i].frames[n];
      json one = {{"index", f.index}, {"psnr", brief(f.psnr)}, {"ssim", brief(f.ssim, kNearOneDigits)}};
      size_t bytes = 100;
      for (const auto& [what, file] : {std::pair{"reference", f.reference}, std::pair{"candidate", f.candidate},
                                       std::pair{"difference", f.difference}}) {
        one[what] = data_url(video.folder / file, "image/png");
        bytes += one[what].get_ref<const std::string&>().size();
      }
      if (bytes > room) return;
      room -= bytes;
      clips[i]["pictures"].push_back(std::move(one));
      any = true;
    }
    if (!any) return;
  }
}

}  // namespace parity
