// The peers' rules on numbers worked out by hand: inside, outside, and through the holes that the peers really have.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/precision.hpp"
#include "selftest/peer_rules.hpp"

using namespace parity;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinite = std::numeric_limits<double>::infinity();

at::Tensor tensor_of(std::vector<double> values, at::ScalarType dtype) {
  return at::tensor(values, at::kDouble).to(dtype);
}

bool passes(std::string_view name, const at::Tensor& reference, const at::Tensor& candidate,
            const at::Tensor& oracle = {}) {
  for (const PeerRule& rule : peer_rules())
    if (rule.name == name)
      return rule.passes({reference, candidate, oracle.defined() ? oracle : reference.to(at::kDouble)});
  FAIL("no such rule: " << name);
  return false;
}

bool passes(std::string_view name, std::vector<double> reference, std::vector<double> candidate,
            std::vector<double> oracle, at::ScalarType dtype = at::kFloat) {
  return passes(name, tensor_of(std::move(reference), dtype), tensor_of(std::move(candidate), dtype),
                tensor_of(std::move(oracle), at::kDouble));
}

bool close(std::string_view name, double reference, double candidate, at::ScalarType dtype = at::kFloat) {
  return passes(name, tensor_of({reference, 1}, dtype), tensor_of({candidate, 1}, dtype));
}

}  // namespace

TEST_CASE("peers: equal tensors pass every rule") {
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble})
    for (const PeerRule& rule : peer_rules()) {
      CAPTURE(rule.name);
      CAPTURE(dtype_name(dtype));
      const at::Tensor t = tensor_of({.5, -2, 3}, dtype);
      CHECK(rule.passes({t, t.clone(), t.to(at::kDouble) + 1e-3}));
      CHECK_FALSE(rule.source.empty());
    }
}

TEST_CASE("peers: another tensor altogether fails every rule") {
  for (const PeerRule& rule : peer_rules()) {
    CAPTURE(rule.name);
    const at::Tensor t = tensor_of({.5, -2, 3}, at::kFloat), oracle = t.to(at::kDouble) + 1e-6;
    CHECK_FALSE(rule.passes({t, tensor_of({2, .5, -1}, at::kFloat), oracle}));
  }
}

TEST_CASE("peers: tolerances of assert_close and allclose, by dtype") {
  // at 100: 1e-5 + 1.3e-6 * 100 = 1.4e-4; fp32 is spaced 7.6e-6 there
  CHECK(close("torch assert_close", 100, 100.00012));
  CHECK_FALSE(close("torch assert_close", 100, 100.00016));
  // bf16 at 128: 1.6e-2 * 128 = 2.05; bf16 is spaced 1 there
  CHECK(close("torch assert_close", 128, 130, at::kBFloat16));
  CHECK_FALSE(close("torch assert_close", 128, 131, at::kBFloat16));
  // fp16 at 1: 1e-3 + 1e-5 against one spacing, 9.8e-4, and two
  CHECK(close("torch assert_close", 1, 1 + 0x1p-10, at::kHalf));
  CHECK_FALSE(close("torch assert_close", 1, 1 + 0x1p-9, at::kHalf));
  CHECK(close("torch assert_close", 1, 1 + 1.5e-7, at::kDouble));
  CHECK_FALSE(close("torch assert_close", 1, 1 + 2.5e-7, at::kDouble));
  CHECK_FALSE(passes("torch assert_close", tensor_of({1}, at::kBFloat16), tensor_of({1}, at::kFloat)));  // check_dtype
  // at 1000: 1e-8 + 1e-5 * 1000 = 1e-2; the reference counts, not the candidate
  CHECK(close("numpy allclose", 1000, 1000.009));
  CHECK_FALSE(close("numpy allclose", 1000, 1000.011));
  CHECK_FALSE(close("numpy allclose", 0, 1e-7));
}

TEST_CASE("peers: cosine sees directions only") {
  // (1, 0) against (1, y): 1 / sqrt(1 + y^2) is .99 at y = .1425, .995 at .1004, .9999 at .01414
  const auto turned = [](std::string_view name, double y) { return passes(name, {1, 0}, {1, y}, {1, 0}); };
  CHECK(turned("cosine >= 0.99", .1424));
  CHECK_FALSE(turned("cosine >= 0.99", .1426));
  CHECK(turned("cosine >= 0.995", .1003));
  CHECK_FALSE(turned("cosine >= 0.995", .1005));
  CHECK(turned("cosine >= 0.9999", .0141));
  CHECK_FALSE(turned("cosine >= 0.9999", .0142));
  CHECK(passes("cosine >= 0.9999", {1, 2}, {50, 100}, {1, 2}));  // hole: blind to gain
  CHECK_FALSE(passes("cosine >= 0.99", {0, 0}, {0, 0}, {0, 0}));
}

TEST_CASE("peers: Polygraphy, msprobe, sglang") {
  CHECK(close("Polygraphy simple", 1e-6, 1e-5));      // hole: nine times as large, but below 1e-5 absolutely
  CHECK(close("Polygraphy simple", 1e4, 1e4 + .05));  // off by .05, but below 1e-5 relatively
  CHECK_FALSE(close("Polygraphy simple", 1, 1.00002));
  CHECK_FALSE(close("Polygraphy simple", 0, 2e-5));
  // 2000 elements, some off by 1 %: 1 of them leaves a share of .9995, 2 leave .999, which does not exceed it
  at::Tensor reference = at::ones({2000}), candidate = reference.clone();
  candidate[0] = 1.01;
  CHECK(passes("msprobe 1 permille", reference, candidate));
  candidate[1] = 1.01;
  CHECK_FALSE(passes("msprobe 1 permille", reference, candidate));
  candidate.fill_(1.0009);  // hole: everything off in one direction
  CHECK(passes("msprobe 1 permille", reference, candidate));
  CHECK(passes("msprobe 1 permille", {0, 1}, {0, 1}, {0, 1}));  // 0 against 0 is no 0/0
  // x against x (1 + e): 1 - 2 (1 + e) / (1 + (1 + e)^2) is about e^2 / 2: 1e-3 at e = .0457
  CHECK(passes("sglang rel_diff", {1, 2}, {1.045, 2.09}, {1, 2}));  // hole: a gain of 4.5 %
  CHECK_FALSE(passes("sglang rel_diff", {1, 2}, {1.047, 2.094}, {1, 2}));
}

TEST_CASE("peers: ggml's NMSE, its overflow included") {
  // (1, 1) against (1 + e, 1): e^2 / 2 is 5e-4 at e = .0316 and 1e-7 at e = 4.47e-4
  CHECK(close("ggml NMSE 5e-4", 1, 1.0316));
  CHECK_FALSE(close("ggml NMSE 5e-4", 1, 1.0317));
  CHECK(close("ggml NMSE 1e-7", 1, 1.000446));
  CHECK_FALSE(close("ggml NMSE 1e-7", 1, 1.000448));
  CHECK(close("ggml NMSE 1e-7", 1e20, -1e20));  // hole: Inf / Inf is not above the limit
  CHECK_FALSE(close("ggml NMSE 1e-7", 1e18, -1e18));
  CHECK_FALSE(close("ggml NMSE 1e-7", kInfinite, 1));
  CHECK(close("ggml NMSE 1e-7", 1, kNan) == false);
}

TEST_CASE("peers: NaN passes where the rule is `if (diff > tol) fail`, and only there") {
  for (const PeerRule& rule : peer_rules()) {
    CAPTURE(rule.name);
    const at::Tensor reference = tensor_of({1, 2, 3}, at::kFloat), oracle = reference.to(at::kDouble) + 1e-6;
    CHECK(rule.passes({reference, tensor_of({1, kNan, 3}, at::kFloat), oracle}) == (rule.name == "llm.c validate"));
  }
  CHECK(close("llm.c validate", 1, 1.0001));  // 1e-4 + 1.2e-7
  CHECK_FALSE(close("llm.c validate", 1, 1.00011));
  CHECK(close("llm.c validate", 1, 1.078125, at::kBFloat16));  // hole: 7.8 % off
  CHECK_FALSE(close("llm.c validate", 1, 1.0859375, at::kBFloat16));
}

TEST_CASE("peers: rules against the fp64 oracle") {
  // oracle 0, reference off by .25 and .5: the largest is .5; the norm is .559; the mean square .15625
  const std::vector<double> reference{.25, -.5}, oracle{0, 0};
  CHECK(passes("FlashAttention 2x", reference, {1, 1}, oracle));
  CHECK_FALSE(passes("FlashAttention 2x", reference, {1.01, 0}, oracle));
  CHECK(passes("FlashAttention 2x", reference, {.5, -.25}, oracle));  // hole: other errors of the same size
  CHECK(passes("AWS Neuron R <= 1.2", reference, {0, .67}, oracle));  // 1.2 * .559 = .6708
  CHECK_FALSE(passes("AWS Neuron R <= 1.2", reference, {0, .672}, oracle));
  CHECK(passes("AWS Neuron R <= 1.2", reference, {-.25, .5}, oracle));  // hole: the sign of every error turned
  CHECK(passes("AWS Neuron R <= 1.2", {1, 1}, {1, 1}, {1, 1}));         // 0 <= 0
  CHECK_FALSE(passes("AWS Neuron R <= 1.2", {1, 1}, {1, 1 + 1e-6}, {1, 1}));
}

TEST_CASE("peers: PyTorch's same() takes its multiplier from dtype and size") {
  // allclose at 1e-4 fails; reference's RMSE .01: limits .02 + 1e-5 in fp32 from 1000 elements on, else .03 + 1e-5
  const auto within = [](int64_t size, double error, at::ScalarType dtype) {
    const at::Tensor oracle = at::full({size}, 1., at::kDouble);
    return passes("PyTorch same()", (oracle + .01).to(dtype), (oracle + error).to(dtype), oracle);
  };
  CHECK(within(1000, .02, at::kFloat));
  CHECK_FALSE(within(1000, .0201, at::kFloat));
  CHECK(within(999, .03, at::kFloat));
  CHECK_FALSE(within(999, .0301, at::kFloat));
  // bf16 at 1: .01 is rounded to 1/128 = .0078; 3/128 is within 3 times that, 4/128 is not
  CHECK(within(1000, 3. / 128, at::kBFloat16));
  CHECK_FALSE(within(1000, 4. / 128, at::kBFloat16));
  CHECK_FALSE(passes("PyTorch same()", tensor_of({1}, at::kBFloat16), tensor_of({1}, at::kFloat)));  // exact_dtype
  CHECK(passes("PyTorch same()", {kNan, 1}, {1.01, 1}, {1, 1}));  // better than a reference that has NaN
}
