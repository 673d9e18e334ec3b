// Differences of two 8-bit frames in one pass, exact integers. Vectorised with Highway. src/video turns them into MSE,
// percentiles and so on.
#pragma once
#include <array>
#include <cstdint>

namespace parity::kernels {

struct DifferenceSums {
  std::array<uint32_t, 256> histogram{};  // of |candidate - reference|
  std::array<int64_t, 3> bias{};          // sum of candidate - reference, a channel each
  double relative = 0;                    // sum of |candidate - reference| / max(reference, 1)
  int64_t squares = 0;                    // sum of reference^2
  // With the frames before: r' = r - r before, c' alike.
  int64_t flicker = 0, motion_reference = 0, motion_candidate = 0;  // sums of (c' - r')^2, r'^2, c'^2
};

/// Frames of `pixels` x `channels` (1 or 3) interleaved samples; those before may be null. At most 2^31 samples.
DifferenceSums difference_sums(const uint8_t* reference, const uint8_t* candidate, const uint8_t* reference_before,
                               const uint8_t* candidate_before, int64_t pixels, int channels);

}  // namespace parity::kernels
