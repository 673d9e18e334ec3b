// Where nobody looks, our own GPT-2 takes a layer in one pass a token, and a prompt by LibTorch's products: the same
// logits as op by op, and red where a pass is wrong.
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include "command.hpp"
#include "core/error.hpp"
#include "jobs/model_job.hpp"
#include "models/gelu_new.hpp"
#include "models/gpt2/int8.hpp"
#include "models/gpt2/model.hpp"
#include "models/gpt2/ported.hpp"
#include "ops/one_pass.hpp"

using namespace parity;
using namespace parity::test;

namespace {

constexpr int64_t kPrompt = 20, kTokens = 5;  // enough rows for LibTorch's products, then token by token

WeightSource seeded_weights(const Gpt2Config& config, at::ScalarType dtype) {
  const auto shapes = gpt2_parameters(config);
  auto all = std::make_shared<std::map<std::string, at::Tensor>>();
  at::manual_seed(3);
  for (const auto& [name, shape] : shapes)
    (*all)[name] = (at::randn(shape, at::kDouble).mul_(.2) + (name.ends_with("ln_1.weight") ? 1 : 0)).to(dtype);
  return {[all](const std::string& name) { return all->at(name); },
          [all](const std::string& name) { return all->count(name) > 0; }};
}

// Looks, and changes nothing.
class OnLooker final : public Probe {
 public:
  OnLooker() : Probe(true) {}
  int points = 0;

 private:
  at::Tensor seen(const std::string&, at::Tensor value) override { return ++points, value; }
};

// Of `next` token by token, against `forward` of all tokens op by op: the largest relative L2 of a row of logits.
double largest_difference(const Gpt2Ops& ops, at::ScalarType dtype, Precision precision) {
  const Gpt2Config config = gpt2_config(
      {{"vocab_size", 97}, {"n_positions", 40}, {"n_embd", 60}, {"n_layer", 2}, {"n_head", 3}, {"n_inner", 132}});
  const Gpt2Model model(config, precision, seeded_weights(config, dtype), ops);
  const auto ids = at::randint(97, {2, kPrompt + kTokens}, at::kLong);
  OnLooker looker;
  const auto whole = model.forward(ids, nullptr, looker).to(at::kDouble);
  REQUIRE(looker.points > 30);
  KvCache cache = model.cache(2, kPrompt + kTokens);
  double largest = 0;
  for (int64_t at = 0, n = kPrompt; at < kPrompt + kTokens; at += n, n = 1) {
    const auto next = model.next(ids.narrow(1, at, n), cache).to(at::kDouble);
    largest = std::max(largest, ((next - whole.select(1, at + n - 1)).norm() / next.norm()).item<double>());
  }
  CHECK(cache.length() == kPrompt + kTokens);
  return largest;
}

}  // namespace

TEST_CASE("gpt2: one pass a token and LibTorch's products for a prompt make the logits that the ops make one by one") {
  CHECK(largest_difference(gpt2_ops(Kernels::own), at::kDouble, Precision::fp64) <= 1e-13);
  CHECK(largest_difference(gpt2_ops(Kernels::own), at::kFloat, Precision::recorded) <= 1e-5);
  CHECK(largest_difference(gpt2_ops(Kernels::own), at::kBFloat16, Precision::recorded) <= 3e-2);
  CHECK(largest_difference(gpt2_int8_ops(), at::kFloat, Precision::recorded) <= 1e-5);
}

TEST_CASE("gpt2: a wrong pass of a token turns the run red at the position that it decodes") {
  using Wrong = void (*)(const at::Tensor&, TokenLayer, TokenRows);
  const std::pair<const char*, Wrong> faults[] = {
      {"a key too few", [](const at::Tensor& x, TokenLayer w, TokenRows r) { --r.length, ops::token_layer(x, w, r); }},
      {"rows shifted by one",
       [](const at::Tensor& x, TokenLayer w, TokenRows r) { --r.slot, ops::token_layer(x, w, r); }},
      {"norms exchanged", [](const at::Tensor& x, TokenLayer w,
                             TokenRows r) { std::swap(w.norm_1, w.norm_2), ops::token_layer(x, w, r); }},
      {"bias left out", [](const at::Tensor& x, TokenLayer w, TokenRows r) {
         w.attn_out.bias = w.attn_out.bias * 0, ops::token_layer(x, w, r);
       }}};
  for (const char* name : {"transformers-gpt2.bf16.h5", "transformers-gpt2.fp32.h5"})
    for (const auto& [fault, wrong] : faults) {
      CAPTURE(name);
      CAPTURE(std::string(fault));
      const Dump dump(reference_dump(name));
      at::set_num_threads(dump.provenance().value("threads", 1));
      Gpt2Ops ops = gpt2_ops(Kernels::own);
      ops.token_layer = wrong;
      MainJobOptions options;
      options.dtypes = {"fp64", std::string(name).substr(18, 4)};
      options.kernels = Kernels::own;
      const auto make = [&](const Dump& d, Precision precision) { return port_gpt2(d, precision, ops); };
      Report report;
      report.ops = run_main_job(dump, load_program(dump), make, options).rows;
      CHECK(exit_status(report) == 1);
      const OpResult* first = first_divergence(report);
      REQUIRE(first != nullptr);
      CHECK_MESSAGE(first->candidate_path.starts_with("optimised/cached/position."), first->candidate_path);
    }
}

TEST_CASE("gelu_new in one pass rounds where its eight ops do") {
  at::manual_seed(5);
  NoProbe off;
  for (const auto dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
    CAPTURE(std::string(c10::toString(dtype)));
    const auto special = at::tensor({0.0, -0.0, 30.0, -30.0, double(NAN), double(INFINITY)}, at::kDouble);
    const auto x = at::cat({at::randn({3 * 16384 + 7}, at::kDouble) * 3, special}).to(dtype);
    const auto expected = gelu_new(x, off), kept = x.clone(), got = ops::own_gelu_new(x);
    CHECK(at::equal(x.nan_to_num(), kept.nan_to_num()));  // somebody holds x: not written over
    CHECK(at::equal(got.isnan(), expected.isnan()));
    const auto wide = [](const at::Tensor& t) { return t.nan_to_num(0, 0, 0).to(at::kDouble); };
    const double off_by = ((wide(got) - wide(expected)).norm() / wide(expected).norm()).item<double>();
    CHECK(off_by <= (dtype == at::kDouble ? 1e-15 : dtype == at::kFloat ? 2e-7 : 2e-5));
    if (dtype == at::kBFloat16) {  // one rounding in place of eight: a third of all elements
      CHECK((got == expected).to(at::kDouble).mean().item<double>() > .999);
      CHECK((at::gelu(x, "tanh") == expected).to(at::kDouble).mean().item<double>() < .9);
    }
  }
}

TEST_CASE("gpt2: INT8 keeps each product's weights in bytes alone, the embedding's rows among them") {
  const Gpt2Config config =
      gpt2_config({{"vocab_size", 97}, {"n_positions", 40}, {"n_embd", 60}, {"n_layer", 1}, {"n_head", 3}});
  const auto weights = seeded_weights(config, at::kFloat);
  const Gpt2Ops ops = gpt2_int8_ops();
  const Gpt2Model model(config, Precision::recorded, weights, ops);
  CHECK((model.dtype() == at::kFloat));
  CHECK((model.embedding().scalar_type() == at::kChar));
  for (const auto* w :
       {&model.blocks()[0].attn_in, &model.blocks()[0].attn_out, &model.blocks()[0].mlp_in, &model.blocks()[0].mlp_out})
    CHECK((w->weight.scalar_type() == at::kChar));
  const auto ids = at::arange(97).unsqueeze(0);
  const auto off = (ops.embedding(model.embedding(), ids)[0] - weights.get("transformer.wte.weight")).abs();
  CHECK((off <= ops.scale(model.embedding()).unsqueeze(1) * 0.5001).all().item<bool>());
}

TEST_CASE("token layer: what does not fit is refused") {
  const auto x = at::ones({1, 60});
  const auto square = TokenLinear{at::ones({60, 60}), {}, at::ones({60})};
  const TokenNorm norm{at::ones({60}), at::zeros({60})};
  TokenLayer layer{norm, {at::ones({180, 60}), {}, at::ones({180})}, square, norm, square, square, 3};
  TokenRows rows{at::zeros({1, 3, 4, 20}), at::zeros({1, 3, 4, 20}), 1, 0};
  CHECK_NOTHROW(ops::token_layer(x, layer, rows));
  auto full = rows;
  full.slot = 4;
  CHECK_THROWS_AS(ops::token_layer(x, layer, full), Error);
  auto half = layer;
  half.mlp_in.weight = half.mlp_in.weight.to(at::kBFloat16);
  CHECK_THROWS_WITH_AS(ops::token_layer(x, half, rows), doctest::Contains("token layer"), Error);
}
