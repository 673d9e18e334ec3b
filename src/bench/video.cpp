#include "bench/video.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <future>
#include <random>
#include <thread>

#include "video/clip.hpp"
#include "video/reader.hpp"

namespace parity {
namespace {

/// Texture with some noise; the candidate is off by a few steps, as after a lossy encoder.
std::vector<Frame> made_up(const VideoBenchOptions& options, unsigned seed) {
  std::mt19937 scene(1), noise(seed);
  std::vector<Frame> frames(4);
  for (Frame& frame : frames) {
    frame.shape(options.width, options.height, 3, Sample::u8);
    for (size_t i = 0; i < frame.count(); ++i)
      frame.as<uint8_t>()[i] =
          static_cast<uint8_t>(std::clamp<int>(static_cast<int>(i / 97 % 190 + scene() % 40 + noise() % 17), 0, 255));
  }
  return frames;
}

void compare_in_memory(const std::vector<Frame>& r, const std::vector<Frame>& c, const VideoBenchOptions& options) {
  const size_t workers =
      static_cast<size_t>(options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency()));
  std::deque<std::future<FrameMeasured>> running;
  std::vector<SsimScratch> scratch(workers);
  const MeasureOptions measure{.ms_ssim = options.ms_ssim};
  for (size_t i = 0; i < static_cast<size_t>(options.frames); ++i) {
    const size_t now = i % r.size(), before = (i + r.size() - 1) % r.size();
    running.push_back(std::async(std::launch::async, [&, i, now, before] {
      return measure_frame(r[now], c[now], &r[before], &c[before], measure, &scratch[i % workers]);
    }));
    if (running.size() < workers) continue;
    running.front().get();
    running.pop_front();
  }
  for (auto& result : running) result.get();
}

int64_t read_both(const VideoBenchOptions& options) {
  const auto r = open_frames(options.reference, {}), c = open_frames(options.candidate, {});
  ReadAhead references(*r), candidates(*c);
  int64_t frames = 0;
  while (references.next() && candidates.next()) ++frames;
  return frames;
}

}  // namespace

VideoBench bench_video(const VideoBenchOptions& options) {
  VideoBench out;
  if (options.reference.empty()) {
    const auto r = made_up(options, 2), c = made_up(options, 3);
    out.frames = options.frames;
    out.compared = time_runs([&] { compare_in_memory(r, c, options); }, options.repeats, options.progress);
  } else {
    ClipOptions clip;
    clip.threads = options.threads;
    clip.diagnose = false;
    clip.measure.ms_ssim = options.ms_ssim;
    out.read = time_runs([&] { out.frames = read_both(options); }, options.repeats, part_of(options.progress, 0, .5));
    out.compared = time_runs([&] { compare_clips(options.reference, options.candidate, clip); }, options.repeats,
                             part_of(options.progress, .5, 1));
  }
  out.peak_bytes = peak_memory();
  return out;
}

}  // namespace parity
