// Decoding with GPT-2 on a cache: milliseconds a token by position, beside what reading the weights alone takes.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/timing.hpp"

namespace parity {

struct Gpt2BenchOptions {
  nlohmann::json config;                        // as in config.json
  std::string dtype = "fp32", variant = "own";  // fp32, bf16; aten, own, int8 (our own, fp32 activations)
  int64_t prompt = 16, tokens = 64;             // given at once; then decoded one by one
  int repeats = 5;  // of all tokens, after one that is not counted: as long as what is measured
};

struct Gpt2Bench {
  int64_t parameters = 0;
  int64_t weight_bytes = 0;          // that every token reads
  int64_t cache_bytes = 0;           // at full length
  Timing decode;                     // seconds of all decoded tokens
  std::vector<double> milliseconds;  // of the token at prompt + i, median over the repeats
  double bytes_per_second = 0;       // memory read by all threads, nothing else, the best of the same run

  double tokens_per_second() const;
  /// Time of reading weights and cache alone over that of a token.
  double bound_share() const;
};

/// GPT-2 124M ("gpt2" of transformers).
nlohmann::json gpt2_124m_config();

/// Seeded random weights, greedy decoding. Throws Error for an impossible configuration or too many tokens for it.
Gpt2Bench bench_gpt2(const Gpt2BenchOptions& options);

}  // namespace parity
