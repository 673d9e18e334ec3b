#include "bench/decoding.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace parity {
namespace {

double milliseconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::vector<double> decode_round(const Decoder& decoder, const at::Tensor& prompt, int64_t tokens) {
  const auto most_likely = [&](const at::Tensor& ids) {
    return decoder.logits_of(ids).select(1, ids.size(1) - 1).argmax(-1, /*keepdim=*/true);  // (1, 1)
  };
  decoder.restart();
  at::Tensor next = most_likely(prompt);
  std::vector<double> spent;
  for (int64_t i = 0; i < tokens; ++i) spent.push_back(milliseconds_of([&] { next = most_likely(next); }));
  return spent;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace

double Decoding::tokens_per_second() const {
  return rounds.median() > 0 ? static_cast<double>(milliseconds.size()) / rounds.median() : 0;
}

Decoding time_decoding(const Decoder& decoder, int64_t vocabulary, const DecodingRounds& rounds) {
  const auto prompt = at::randint(vocabulary, {1, rounds.prompt}, at::kLong);
  std::vector<std::vector<double>> spent;
  Decoding out;
  out.rounds = time_runs([&] { decode_round(decoder, prompt, rounds.tokens); }, 0);
  for (int i = 0; i < rounds.repeats; ++i) {
    spent.push_back(decode_round(decoder, prompt, rounds.tokens));
    out.rounds.seconds.push_back(std::accumulate(spent.back().begin(), spent.back().end(), 0.) / 1000);
  }
  for (size_t t = 0; t < static_cast<size_t>(rounds.tokens); ++t) {
    std::vector<double> at_position;
    for (const auto& round : spent) at_position.push_back(round[t]);
    out.milliseconds.push_back(median_of(at_position));
  }
  return out;
}

}  // namespace parity
