// The transformer at its real size with random weights: how long is a forward, how much memory does it take?
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "bench/timing.hpp"

namespace parity {

struct WanBenchOptions {
  nlohmann::json config;                      // as in config.json
  std::string dtype_path = "sky_ac";          // row of the dtype-path table
  std::string dtype = "bf16";                 // of the linear layers: bf16 or fp32
  std::array<int64_t, 3> latent{3, 68, 120};  // frames, height, width: 9 frames of 544x960
  int repeats = 0;                            // after the first forward
};

struct WanBench {
  int64_t tokens = 0, parameters = 0;
  double build_seconds = 0;
  Timing forward;
  int64_t peak_bytes = 0;
};

/// SkyReels-V2-I2V-1.3B-540P's sizes (SkyReels-V2 config.json; references.md, section 4).
nlohmann::json wan_1_3b_config();

/// Builds the model with seeded random weights and runs it. Throws Error for an impossible configuration.
WanBench bench_wan(const WanBenchOptions& options);

}  // namespace parity
