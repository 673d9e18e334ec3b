#include "models/sampling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace parity {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// The least likely words whose probabilities sum to no more than 1 - top_p go; the most likely one stays.
at::Tensor without_tail(const at::Tensor& scores, double top_p) {
  const auto [sorted, word] = at::sort(scores, /*dim=*/-1, /*descending=*/false);
  auto goes = at::softmax(sorted, -1).cumsum(-1) <= 1 - top_p;
  goes.narrow(-1, goes.size(-1) - 1, 1).fill_(false);
  return scores.masked_fill(goes.scatter(-1, word, goes), kNever);
}

}  // namespace

void check_sampling(const Sampling& s) {
  if (!std::isfinite(s.temperature) || s.temperature < 0)
    throw Error(fmt::format("[sampling] temperature {} is not 0 or above", s.temperature));
  if (s.top_k < 0) throw Error(fmt::format("[sampling] top-k {} is not 0 or above", s.top_k));
  if (!(s.top_p > 0 && s.top_p <= 1)) throw Error(fmt::format("[sampling] top-p {} is not within (0, 1]", s.top_p));
}

at::Tensor sampling_probabilities(const at::Tensor& logits, const Sampling& s) {
  check_sampling(s);
  if (s.temperature == 0) throw Error("[sampling] temperature 0 has no distribution, only a most likely word");
  if (logits.dim() != 2 || logits.size(1) == 0)
    throw Error(fmt::format("[sampling] the logits have {} dimensions; (batch, words) is expected", logits.dim()));
  auto scores = logits.to(logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat) / s.temperature;
  if (s.top_k > 0) {
    const auto kth = std::get<0>(scores.topk(std::min(s.top_k, scores.size(1)), -1)).narrow(1, -1, 1);
    scores = scores.masked_fill(scores < kth, kNever);
  }
  if (s.top_p < 1) scores = without_tail(scores, s.top_p);
  return at::softmax(scores, -1);
}

TokenSampler::TokenSampler(const Sampling& sampling, uint64_t seed) : sampling_(sampling), random_(seed) {
  check_sampling(sampling);
}

at::Tensor TokenSampler::next(const at::Tensor& logits) {
  if (sampling_.temperature == 0) return logits.argmax(-1, /*keepdim=*/true);
  const auto sums = sampling_probabilities(logits, sampling_).to(at::kDouble).cumsum(-1);
  const auto words = at::empty({logits.size(0), 1}, at::kLong);
  for (int64_t i = 0; i < logits.size(0); ++i) {
    const auto row = sums[i].contiguous();
    const double* sum = row.const_data_ptr<double>();
    const int64_t last = row.numel() - 1;
    if (!std::isfinite(sum[last])) throw Error("[sampling] the logits hold NaN");
    const double drawn = static_cast<double>(random_() >> 11) * 0x1p-53 * sum[last];
    words[i][0] = std::upper_bound(sum, sum + last, drawn) - sum;  // the first whose sum is above: never one of 0
  }
  return words;
}

}  // namespace parity
