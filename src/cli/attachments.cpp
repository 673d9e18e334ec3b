#include "cli/attachments.hpp"

#include <fmt/format.h>

#include "cli/clips.hpp"
#include "core/error.hpp"
#include "gate/compare.hpp"
#include "gate/sinks.hpp"

namespace parity::cli {
namespace {

ClipsOptions clips_of(const Attachments& attachments, const Common& common, const std::string& folder) {
  ClipsOptions clips;
  clips.reference = attachments.video.front(), clips.candidate = attachments.video.back();
  clips.min_psnr = attachments.min_psnr, clips.min_ssim = attachments.min_ssim;
  clips.out = folder;
  clips.metrics_only = folder.empty();
  clips.single_frames = true;
  clips.quiet = common.quiet, clips.threads = common.threads;
  return clips;
}

SinceBaseline since_baseline_of(const Report& report, const std::string& file) {
  Baseline baseline = read_baseline(file);
  const ClassBaseline* entry = find_class(baseline, machine_class(report));
  const std::string today = now_text().substr(0, 10);
  return since_baseline(entry ? compare_with(*entry, report, today) : no_class(baseline, report), file);
}

}  // namespace

void add_attachments(CLI::App& command, Attachments& attachments) {
  CLI::Option* video = command
                           .add_option("--video", attachments.video,
                                       "Two clips that the same run made, as parity-check video takes them: frames, "
                                       "ratings and worst frames in the same report")
                           ->expected(2)
                           ->type_name("REF CAND");
  command.add_option("--min-psnr", attachments.min_psnr, "Of the clips: fail when any frame has less, in dB")
      ->needs(video)
      ->type_name("DB");
  command.add_option("--min-ssim", attachments.min_ssim, "Of the clips: fail when any frame has less")
      ->needs(video)
      ->type_name("SSIM");
  command
      .add_option("--baseline", attachments.baseline,
                  "Say in the report what changed since this baseline (parity-baseline/1); the exit status stays that "
                  "of the comparison, parity-check gate has its own")
      ->check(existing_file())
      ->type_name("FILE");
}

void check_attachments(const Attachments& attachments) {
  if (!attachments.video.empty()) check_clips(clips_of(attachments, {}, ""));
  if (!attachments.baseline.empty()) read_baseline(attachments.baseline);
}

void attach(Report& report, const Attachments& attachments, const Common& common, const std::string& folder) {
  if (!attachments.video.empty())
    attach_video(report, std::make_shared<const VideoReport>(
                             measured_clips(clips_of(attachments, common, folder), report.command)));
  if (!attachments.baseline.empty()) report.since_baseline = since_baseline_of(report, attachments.baseline);
}

}  // namespace parity::cli
