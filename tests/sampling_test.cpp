// How the next word is chosen: probabilities beside transformers' own warpers (tests/data/record_word_sampling.py), and
// the draw beside the probabilities.
#include "models/sampling.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "core/error.hpp"
#include "test_places.hpp"

using namespace parity;
using namespace parity::test;

namespace {

nlohmann::json recorded_words() {
  return nlohmann::json::parse(read_text(PARITY_SOURCE_DIR "/tests/data/word_sampling.json"));
}

at::Tensor matrix_of(const nlohmann::json& rows, at::ScalarType dtype) {
  const auto values = rows.get<std::vector<std::vector<double>>>();
  const auto out =
      at::empty({static_cast<int64_t>(values.size()), static_cast<int64_t>(values.front().size())}, at::kDouble);
  for (size_t i = 0; i < values.size(); ++i)
    std::copy(values[i].begin(), values[i].end(), out.mutable_data_ptr<double>() + i * values[i].size());
  return out.to(dtype);
}

Sampling setting_of(const nlohmann::json& c) {
  return {c.value("temperature", 1.), c.value("top_k", int64_t{0}), c.value("top_p", 1.)};
}

}  // namespace

TEST_CASE("sampling: the probabilities of transformers' warpers, the same words left out") {
  const auto recorded = recorded_words();
  REQUIRE(recorded["cases"].size() > 5);
  for (const auto& c : recorded["cases"])
    for (const auto& [name, dtype, bound] :
         {std::tuple{"fp32", at::kFloat, 1e-6}, std::tuple{"fp64", at::kDouble, 1e-14}}) {
      CAPTURE(c["temperature"].dump() + " " + c.value("top_k", nlohmann::json()).dump() + " " + name);
      const auto want = matrix_of(c[name], at::kDouble);
      const auto got = sampling_probabilities(matrix_of(recorded["logits"], dtype), setting_of(c)).to(at::kDouble);
      CHECK(((got == 0) == (want == 0)).all().item<bool>());
      CHECK((got - want).abs().max().item<double>() <= bound);
    }
}

TEST_CASE("sampling: words come as often as they are likely, and the same ones for a seed") {
  const auto logits = at::tensor({2., 1., 0., -1., -2.}, at::kDouble).unsqueeze(0);
  const Sampling setting{.temperature = 1.5, .top_k = 4};
  const auto likely = sampling_probabilities(logits, setting);
  constexpr int kDraws = 20000;
  const auto draw = [&](uint64_t seed) {
    TokenSampler sampler(setting, seed);
    std::vector<int64_t> words;
    for (int i = 0; i < kDraws; ++i) words.push_back(sampler.next(logits).item<int64_t>());
    return words;
  };
  const auto words = draw(1);
  CHECK(words == draw(1));
  CHECK(words != draw(2));
  for (int64_t w = 0; w < 5; ++w) {
    const double p = likely[0][w].item<double>();
    const auto count = static_cast<double>(std::count(words.begin(), words.end(), w));
    CHECK(std::abs(count - kDraws * p) <= 5 * std::sqrt(kDraws * p * (1 - p)));  // five standard deviations
  }
}

TEST_CASE("sampling: greedy takes the most likely word of each row, impossible settings are refused by name") {
  const auto logits = at::tensor({0., 3., 1., 5., 4., 2.}).view({2, 3});
  CHECK(TokenSampler({}, 0).next(logits).equal(at::tensor({1, 0}, at::kLong).view({2, 1})));
  CHECK_THROWS_WITH_AS(TokenSampler({.temperature = -1}, 0), doctest::Contains("temperature"), Error);
  CHECK_THROWS_WITH_AS(TokenSampler({.temperature = 1, .top_k = -1}, 0), doctest::Contains("top-k"), Error);
  CHECK_THROWS_WITH_AS(TokenSampler({.temperature = 1, .top_p = 0}, 0), doctest::Contains("top-p"), Error);
  CHECK_THROWS_WITH_AS(TokenSampler({.temperature = 1, .top_p = NAN}, 0), doctest::Contains("top-p"), Error);
  CHECK_THROWS_AS(sampling_probabilities(logits, {}), Error);
  CHECK_THROWS_AS(TokenSampler({.temperature = 1}, 0).next(at::full({1, 4}, NAN)), Error);
}
