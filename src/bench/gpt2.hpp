// Decoding with GPT-2 on a cache: milliseconds a token by position, beside what reading the weights alone takes.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "bench/decoding.hpp"

namespace parity {

struct Gpt2BenchOptions {
  nlohmann::json config;                        // as in config.json
  std::string dtype = "fp32", variant = "own";  // fp32, bf16; aten, own, int8 (our own, fp32 activations)
  bool cached = true;                           // false: all tokens so far are computed anew for each
  DecodingRounds rounds{.prompt = 16, .tokens = 64, .repeats = 5};
};

struct Gpt2Bench {
  int64_t parameters = 0;
  int64_t weight_bytes = 0;  // that every token reads
  int64_t kept_bytes = 0;    // of all weights in memory: positions too, and the steps of INT8
  int64_t cache_bytes = 0;   // at full length
  int64_t grown_bytes = 0;   // largest resident memory over that before the model was made, with the libraries in use
  Decoding decoding;
  double bytes_per_second = 0;  // memory read by all threads, nothing else, the best of the same run

  /// Grown over weights and cache.
  double memory_share() const;
  /// Time of reading weights and cache alone over that of a token.
  double bound_share() const;
};

/// GPT-2 124M ("gpt2" of transformers).
nlohmann::json gpt2_124m_config();

/// Seeded random weights, greedy decoding. Throws Error for an impossible configuration or too many tokens for it.
Gpt2Bench bench_gpt2(const Gpt2BenchOptions& options);

}  // namespace parity
