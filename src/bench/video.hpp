// How many frames a second are compared: the metrics alone on frames in memory, and from two files.
#pragma once
#include <string>

#include "bench/timing.hpp"

namespace parity {

struct VideoBenchOptions {
  int width = 960, height = 544, frames = 24, threads = 0, repeats = 3;
  bool ms_ssim = true;
  std::string reference, candidate;  // files instead of made-up frames
  ShareDone progress;
};

struct VideoBench {
  int64_t frames = 0;
  Timing read;      // both clips read and converted, nothing measured
  Timing compared;  // everything; of frames in memory `read` is empty
  int64_t peak_bytes = 0;
};

/// Throws Error for unusable files.
VideoBench bench_video(const VideoBenchOptions& options);

}  // namespace parity
