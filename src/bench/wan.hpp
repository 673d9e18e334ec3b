// The transformer at its real size with random weights or a checkpoint's: how long is a forward, how much memory does
// it take?
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/timing.hpp"
#include "models/wan/config.hpp"

namespace parity {

struct WanBenchOptions {
  nlohmann::json config;                      // as in config.json; not used with `weights`
  std::filesystem::path weights;              // of a checkpoint (WanCheckpoint); empty: random
  std::filesystem::path reference;            // a recording whose inputs are used; empty: random ones
  std::string dtype_path;                     // row of the dtype-path table; "": as config.json says, else sky_ac
  std::string dtype = "bf16";                 // of the linear layers: bf16 or fp32
  std::string variant = "aten";               // kernels: LibTorch's, or "own": fast_wan_ops
  std::array<int64_t, 3> latent{3, 68, 120};  // frames, height, width: 9 frames of 544x960
  int repeats = 0;                            // after the first forward
  ShareDone progress;                         // of the forwards
};

/// The outputs beside those of a recording of the same model: shares of elements that are bitwise equal.
struct WanAgreement {
  double own_weights = 0;  // the model with the recording's weights
  double recorded = 0;     // what was recorded: below 1 also where this CPU runs other kernels
};

struct WanBench {
  std::string dtype_path;
  int64_t tokens = 0, parameters = 0;
  double build_seconds = 0;
  Timing forward;
  int64_t peak_bytes = 0;
  double operations = 0;                  // of a forward's products
  double product_rate = 0;                // the machine's, in that dtype, measured in the same run
  std::optional<WanAgreement> agreement;  // with `reference`
};

/// SkyReels-V2-I2V-1.3B-540P's sizes (SkyReels-V2 config.json; references.md, section 4).
nlohmann::json wan_1_3b_config();

/// Multiplications and additions of a forward's linear layers and attention in the blocks, which are nearly all: for
/// one sample of `tokens`.
double wan_operations(const WanConfig& config, int64_t tokens);

/// Builds the model with seeded random weights, or a checkpoint's, and runs it. Throws Error for an impossible
/// configuration, an unusable checkpoint or recording, or a recording of another configuration.
WanBench bench_wan(const WanBenchOptions& options);

}  // namespace parity
