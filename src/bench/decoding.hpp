// Greedy decoding on a cache, timed token by token: what the language models' benches share.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <vector>

#include "bench/timing.hpp"

namespace parity {

struct Decoder {
  std::function<void()> restart;                               // empties the cache
  std::function<at::Tensor(const at::Tensor& ids)> logits_of;  // ids (1, n), behind those in the cache -> (1, n, words)
};

struct DecodingRounds {
  int64_t prompt = 16, tokens = 16;  // given at once; then decoded one by one
  int repeats = 3;                   // rounds after one that is not counted, as long as what is measured
};

struct Decoding {
  Timing rounds;                     // seconds of all decoded tokens
  std::vector<double> milliseconds;  // of the token at prompt + i, median over the repeats
  double tokens_per_second() const;
};

/// Each round: a random prompt of `vocabulary` words at once, then token by token, each the most likely one.
Decoding time_decoding(const Decoder& decoder, int64_t vocabulary, const DecodingRounds& rounds);

}  // namespace parity
