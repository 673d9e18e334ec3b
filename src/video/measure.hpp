// What is measured about a pair of frames and about a clip. No limit and no judgement here.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "video/frame.hpp"

namespace parity {

/// gaussian: 11x11, sigma 1.5, population covariance (Wang et al. 2004). uniform: 7x7, sample covariance
/// (scikit-image's default). ffmpeg: 8x8 blocks 4 apart (FFmpeg's filter `ssim`). Border cropped in all three.
enum class SsimKind { gaussian, uniform, ffmpeg };

struct MeasureOptions {
  SsimKind ssim = SsimKind::gaussian;
  bool ms_ssim = true;
  bool ranged = true;  // false: samples have no range, so no PSNR and no SSIM
};

/// d = candidate - reference, in units of the range [0, 1]. A number that does not exist is nullopt.
struct FrameMetrics {
  int64_t index = 0;
  bool identical = false;            // every sample equal: no PSNR
  double mse = 0;                    // mean d^2
  std::optional<double> psnr;        // -10 log10 mse, dB
  std::optional<double> ssim;        // mean of the channels; nullopt when the frame is smaller than the window
  std::optional<double> ms_ssim;     // 5 scales (Wang et al. 2003); nullopt below 176 pixels
  double max_abs = 0, mean_abs = 0;  // of |d|
  double p95_abs = 0, p99_abs = 0;   // exact percentiles of |d|, linear between ranks
  std::optional<double> mean_rel;    // mean |d| / max(reference, 1/255)
  std::optional<double> rel_l2;      // ||d|| / ||reference||
  std::vector<double> bias;          // mean d, a channel each
  double equal_share = 0;            // of samples that are equal
  std::optional<double> flicker;     // root mean square of the change of d from the frame before
  std::optional<double> motion_reference, motion_candidate;  // root mean square change from the frame before
};

/// |d| of one frame: counts of integers, or the numbers themselves.
struct Differences {
  std::vector<uint32_t> histogram;  // [k]: how many samples are k units apart
  std::vector<float> magnitudes;    // float samples instead
  double unit = 1;                  // of both, in [0, 1]
};

struct FrameMeasured {
  FrameMetrics metrics;
  Differences differences;
};

/// Memory that measuring frame after frame uses again: half of a frame's size. Of one thread at a time.
struct SsimScratch {
  std::array<std::array<std::vector<int16_t>, 2>, 2> halved;
};

/// Frames of one size. The frames before, of the same clips, may be null, and so may the scratch. Pure: any thread.
FrameMeasured measure_frame(const Frame& reference, const Frame& candidate, const Frame* reference_before,
                            const Frame* candidate_before, const MeasureOptions& options,
                            SsimScratch* scratch = nullptr);

/// Pixels that a frame needs in both directions.
constexpr int smallest_side(SsimKind kind) {
  return kind == SsimKind::gaussian ? 11 : kind == SsimKind::uniform ? 7 : 8;
}
inline constexpr int kMsSsimSide = 11 * 16;

/// SSIM of the kind; nullopt when the frame is too small.
std::optional<double> ssim_of(const Frame& reference, const Frame& candidate, SsimKind kind);
struct SsimScales {
  std::optional<double> ssim, ms_ssim;
};
/// Gaussian SSIM and, from the same first sweep, MS-SSIM.
SsimScales gaussian_ssim(const Frame& reference, const Frame& candidate, bool ms_ssim, SsimScratch* scratch = nullptr);

/// The frame as fp32 samples (v - zero) / span.
void to_unit(const Frame& frame, Frame& out);
/// May differences be taken in the frames' own integers?
bool same_units(const Frame& a, const Frame& b);

struct HistogramOfDifferences {
  double top = 0;  // the last bin's end
  std::vector<double> counts;
};

/// Percentiles of all |d| of a clip in memory that does not grow: exact for integers, and for floats up to
/// kExactFloats; beyond that to 1/8192 of the value.
class DifferencePool {
 public:
  void add(const Differences& d);
  /// nullopt before anything was added.
  std::optional<double> percentile(double share) const;
  bool exact() const { return !binned_; }
  /// Counts in at most `most_bins` equal bins from 0 to at least `largest`.
  HistogramOfDifferences histogram(size_t most_bins, double largest) const;

  static constexpr size_t kExactFloats = size_t{1} << 24;

 private:
  void bin(float magnitude) { ++bins_[bin_of(magnitude)]; }
  static size_t bin_of(float magnitude);
  static double bin_value(size_t bin);
  double ranked(uint64_t rank) const;

  std::vector<uint64_t> counts_;  // of integers
  double unit_ = 1;
  mutable std::vector<float> floats_;  // sorted when asked for percentiles: order is not part of its value
  mutable bool sorted_ = false;
  std::vector<uint64_t> bins_;
  bool binned_ = false;
  uint64_t total_ = 0;
};

}  // namespace parity
