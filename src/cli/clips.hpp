// Pairs of clips measured as `parity-check video` does.
#pragma once
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "report/video.hpp"

namespace parity::cli {

struct ClipsOptions {
  std::string reference, candidate, out = "reports/latest", ssim = "gaussian", space = "rgb", range, layout,
                                    dataset = "frames", thresholds;
  std::string candidate_layout, candidate_range;
  std::optional<double> min_psnr, min_ssim;
  double amplify = 8, rate = 24;
  bool metrics_only = false, no_video = false, no_ms_ssim = false, no_diagnosis = false;
  bool single_frames = false;  // each of the worst frames also as pictures of its own, for a page that lays them over
                               // each other
  bool quiet = false;
  int threads = 0;  // 0: as many as the machine has
};

/// Throws Error for what can be told before anything is read: no such file, folders that do not pair up, a range that
/// is none.
void check_clips(const ClipsOptions& options);

/// Reads, measures and explains each pair; pictures and plots go to `options.out` unless `metrics_only`. Throws Error.
VideoReport measured_clips(const ClipsOptions& options, const std::string& command_line);

}  // namespace parity::cli
