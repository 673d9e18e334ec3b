// The video autoencoder at its real size with random weights: how long does it decode a clip, how much memory does it
// take?
#pragma once
#include <array>
#include <string>

#include "bench/timing.hpp"

namespace parity {

struct VaeBenchOptions {
  std::string dtype = "fp32";                 // bf16 or fp32
  std::string variant = "aten";               // ops: as diffusers has them, or "own": fast_wan_vae_ops
  std::array<int64_t, 3> latent{3, 68, 120};  // frames, height, width: 9 frames of 544x960
  int repeats = 0;                            // after the first decode
  ShareDone progress;                         // of the decodes
};

struct VaeBench {
  int64_t parameters = 0, frames = 0, height = 0, width = 0;  // of the model; of the clip
  Timing decode;
  int64_t peak_bytes = 0;
};

/// Decodes seeded random latents with Wan2.1's widths, in chunks as diffusers does.
VaeBench bench_vae(const VaeBenchOptions& options);

}  // namespace parity
