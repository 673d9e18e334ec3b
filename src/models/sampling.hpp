// The next word of a language model: the most likely one, or drawn by temperature, top-k and top-p.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <random>

namespace parity {

struct Sampling {
  double temperature = 0;  // logits are divided by it; 0: the most likely word, the two below unused
  int64_t top_k = 0;       // words kept at most, all that equal the k-th included; 0: all
  double top_p = 1;        // (0, 1]: the most likely words kept until their sum reaches it (Holtzman et al. 2019)
};

/// Throws Error, naming the setting, for what no distribution has.
void check_sampling(const Sampling& sampling);

/// logits (batch, words), any float -> probabilities, fp32 or wider: transformers' TemperatureLogitsWarper,
/// TopKLogitsWarper and TopPLogitsWarper in that order, then softmax. The temperature is not 0.
at::Tensor sampling_probabilities(const at::Tensor& logits, const Sampling& sampling);

class TokenSampler {
 public:
  TokenSampler(const Sampling& sampling, uint64_t seed);
  /// logits (batch, words) -> (batch, 1) int64. The same words for the same seed and probabilities: a Mersenne
  /// twister's 53 bits over the sum so far, in fp64.
  at::Tensor next(const at::Tensor& logits);

 private:
  Sampling sampling_;
  std::mt19937_64 random_;
};

}  // namespace parity
