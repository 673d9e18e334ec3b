// Decoding on a cache, timed token by token: what the language models' benches share.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <vector>

#include "bench/timing.hpp"
#include "models/sampling.hpp"

namespace parity {

struct Decoder {
  std::function<void()> restart;                          // empties the cache
  std::function<at::Tensor(const at::Tensor& ids)> next;  // ids (1, n), behind those in the cache -> logits (1, words)
};

struct DecodingRounds {
  int64_t prompt = 16, tokens = 16;  // given at once; then decoded one by one
  int repeats = 3;                   // rounds after one that is not counted, as long as what is measured
  Sampling sampling{};               // greedy
  uint64_t seed = 0;                 // of the draws, the same in every round
};

struct Decoding {
  Timing rounds;                     // seconds of all decoded tokens
  double prompt_milliseconds = 0;    // of the prompt at once, median over the repeats
  std::vector<double> milliseconds;  // of the token at prompt + i, median over the repeats
  double tokens_per_second() const;
  /// e of ms = a position^e, least squares over the logarithms: 0 where a token costs the same everywhere, 1 where it
  /// grows with the tokens before. 0 for fewer than two tokens.
  double exponent(int64_t prompt) const;
};

/// Each round: a random prompt of `vocabulary` words at once, then token by token.
Decoding time_decoding(const Decoder& decoder, int64_t vocabulary, const DecodingRounds& rounds);

}  // namespace parity
