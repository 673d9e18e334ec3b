// Self-attention at a video model's sizes: scores in memory, in tiles by our own kernel, and by LibTorch's fused
// kernel.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/timing.hpp"

namespace parity {

struct AttentionBenchOptions {
  std::vector<int64_t> frames{9, 17, 57, 97};  // of video; 4 make one latent frame, the first is one of its own
  int64_t height = 544, width = 960;           // pixels; 16 x 16 make a token
  int64_t heads = 12, head_width = 128;        // the 1.3B model's
  std::vector<std::string> dtypes{"bf16", "fp32"};
  int repeats = 3;   // after the first run, which is not counted
  double most = 10;  // seconds a run may take by the rate of matrix products: of what takes longer fewer heads are run
  ShareDone progress;
};

struct AttentionBenchRow {
  int64_t frames = 0, tokens = 0;
  std::string variant;  // "full", "tiled", "fused"
  std::string dtype;
  int64_t heads_run = 0;   // 0: not even one head fits the memory
  Timing timing;           // of the heads that were run
  double seconds = 0;      // of all heads: as the median of those run, in proportion
  int64_t peak_bytes = 0;  // by which the process grew at most, for the heads that were run
  int64_t computed_bytes = 0, computed_bytes_of_all = 0;  // by the formula: for those, and for all
  double product_share = 0;  // of the machine's rate of matrix products in that dtype, measured in the same run
  double error = 0;          // relative L2 of 64 rows against fp64
};

struct AttentionBench {
  std::vector<AttentionBenchRow> rows;
  std::vector<double> product_rates;  // by dtype: multiplications and additions a second
};

/// Memory that a variant takes beside query, key and value. full: scores and their softmax, (heads, tokens, tokens)
/// each; tiled: a tile a thread; fused: LibTorch's blocks and a logarithm a row. Each with its result.
int64_t attention_bytes(const std::string& variant, int64_t heads, int64_t tokens, int64_t head_width,
                        at::ScalarType dtype);

/// Multiplications and additions a second of LibTorch's product of two matrices of 2048 x 2048, the fastest of three.
double product_rate(at::ScalarType dtype);

/// The variants take turns, so that a busy machine slows all of them down. Throws Error for sizes without a token.
AttentionBench bench_attention(const AttentionBenchOptions& options);

}  // namespace parity
