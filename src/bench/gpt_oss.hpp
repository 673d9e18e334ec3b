// Decoding with gpt-oss on a cache, experts in MXFP4: milliseconds a token by position, memory beside the packed size.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "bench/decoding.hpp"

namespace parity {

struct GptOssBenchOptions {
  nlohmann::json config;        // as in config.json
  std::string cache = "plain";  // plain (bf16), fp8
  DecodingRounds rounds;
};

struct GptOssBench {
  int64_t parameters = 0;
  int64_t packed_bytes = 0;  // of all weights as published: experts in MXFP4, the others in bf16
  int64_t token_bytes = 0;   // of these, what a token reads: its own experts and no other word's embedding
  int64_t cache_bytes = 0;   // at full length
  int64_t grown_bytes = 0;   // largest resident memory over that before the model was made
  Decoding decoding;
  double bytes_per_second = 0;  // memory read by all threads, nothing else, in the same run

  /// Grown over packed and cache.
  double memory_share() const;
  /// Time of reading a token's weights and the cache alone over that of a token.
  double bound_share() const;
};

/// Layers of gpt-oss-20b in their true width; `vocabulary` words stand for its 201088.
nlohmann::json gpt_oss_20b_config(int64_t layers, int64_t vocabulary);

/// Seeded random weights, our own kernels, greedy decoding. Throws Error for an impossible configuration.
GptOssBench bench_gpt_oss(const GptOssBenchOptions& options);

}  // namespace parity
