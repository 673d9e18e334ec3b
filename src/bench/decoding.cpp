#include "bench/decoding.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace parity {
namespace {

double milliseconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

struct Round {
  double prompt = 0;           // milliseconds
  std::vector<double> tokens;  // each
};

Round decode_round(const Decoder& decoder, const at::Tensor& prompt, const DecodingRounds& rounds) {
  TokenSampler sampler(rounds.sampling, rounds.seed);
  decoder.restart();
  at::Tensor word;  // (1, 1)
  Round spent;
  spent.prompt = milliseconds_of([&] { word = sampler.next(decoder.next(prompt)); });
  for (int64_t i = 0; i < rounds.tokens; ++i)
    spent.tokens.push_back(milliseconds_of([&] { word = sampler.next(decoder.next(word)); }));
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

double Decoding::exponent(int64_t prompt) const {
  double x = 0, y = 0, xx = 0, xy = 0;
  const double n = static_cast<double>(milliseconds.size());
  for (size_t i = 0; i < milliseconds.size(); ++i) {
    const double position = std::log(static_cast<double>(prompt) + static_cast<double>(i) + 1),
                 ms = std::log(milliseconds[i]);
    x += position / n, y += ms / n, xx += position * position / n, xy += position * ms / n;
  }
  return n < 2 ? 0 : (xy - x * y) / (xx - x * x);
}

Decoding time_decoding(const Decoder& decoder, int64_t vocabulary, const DecodingRounds& rounds) {
  const auto prompt = at::randint(vocabulary, {1, rounds.prompt}, at::kLong);
  std::vector<Round> spent;
  std::vector<double> prompts;
  Decoding out;
  out.rounds = time_runs([&] { decode_round(decoder, prompt, rounds); }, 0);
  for (int i = 0; i < rounds.repeats; ++i) {
    spent.push_back(decode_round(decoder, prompt, rounds));
    const auto& tokens = spent.back().tokens;
    out.rounds.seconds.push_back(std::accumulate(tokens.begin(), tokens.end(), 0.) / 1000);
    prompts.push_back(spent.back().prompt);
  }
  out.prompt_milliseconds = median_of(prompts);
  for (size_t t = 0; t < static_cast<size_t>(rounds.tokens); ++t) {
    std::vector<double> at_position;
    for (const auto& round : spent) at_position.push_back(round.tokens[t]);
    out.milliseconds.push_back(median_of(at_position));
  }
  return out;
}

}  // namespace parity
