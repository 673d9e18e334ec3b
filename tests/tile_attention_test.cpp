// Our attention in tiles, at sizes that no tile, block, panel or vector divides; and its bench.
#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

#include "bench/attention.hpp"
#include "core/error.hpp"
#include "ops/own.hpp"

namespace parity {
namespace {

at::Tensor numbers(at::IntArrayRef shape, uint64_t seed, at::ScalarType dtype) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(shape, generator).to(dtype);
}

// Written out, in fp64.
at::Tensor expected(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreForm& form) {
  at::Tensor scores = at::matmul(q.to(at::kDouble), k.to(at::kDouble).transpose(-2, -1)) * form.scale;
  if (form.bias.defined()) scores = scores + form.bias.to(at::kDouble);
  return at::matmul(at::softmax(scores, -1), v.to(at::kDouble));
}

double error(const at::Tensor& got, const at::Tensor& want) {
  return ((got.to(at::kDouble) - want).norm() / want.norm()).item<double>();
}

// Twice the largest seen over these sizes (2.2e-15 and 1.0e-6 at 257 keys); bf16 rounds its result once.
double most(at::ScalarType dtype) { return dtype == at::kDouble ? 4.4e-15 : dtype == at::kFloat ? 2.1e-6 : 2e-3; }

}  // namespace

TEST_CASE("tile attention: every size, dtype and layout gives what fp64 written out does") {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16})
    for (const int64_t queries : {1, 7, 256, 300})
      for (const int64_t keys : {1, 127, 128, 257})
        for (const int64_t width : {5, 40, 128}) {
          CAPTURE(fmt::format("{} queries, {} keys, width {}, {}", queries, keys, width, c10::toString(dtype)));
          const at::Tensor q = numbers({2, queries, 3, width}, 1, dtype).transpose(1, 2),
                           k = numbers({2, keys, 3, width}, 2, dtype).transpose(1, 2),
                           v = numbers({2, 3, keys, width}, 3, dtype);
          ScoreForm form{.3};
          CHECK(error(ops::own_encoder_attention(q, k, v, form), expected(q, k, v, form)) < most(dtype));
          form.bias = numbers({1, 3, queries, keys}, 4, dtype) * 2;
          CHECK(error(ops::own_encoder_attention(q, k, v, form), expected(q, k, v, form)) < most(dtype));
        }
}

TEST_CASE("tile attention: scores far apart, keys that may not be seen, NaN") {
  const at::Tensor q = numbers({1, 1, 300, 32}, 1, at::kFloat) * 40, k = numbers({1, 1, 200, 32}, 2, at::kFloat) * 40,
                   v = numbers({1, 1, 200, 32}, 3, at::kFloat);
  ScoreForm form{1};
  CHECK(error(ops::own_encoder_attention(q, k, v, form), expected(q, k, v, form)) < 1e-4);
  form.bias = at::zeros({1, 1, 300, 200});
  form.bias.narrow(3, 150, 50).fill_(std::numeric_limits<float>::lowest());
  const at::Tensor seen = ops::own_encoder_attention(q, k.narrow(2, 0, 150), v.narrow(2, 0, 150), ScoreForm{1});
  CHECK(at::allclose(ops::own_encoder_attention(q, k, v, form), seen, 1e-5, 1e-6));
  at::Tensor poisoned = q.clone();
  poisoned[0][0][7][3] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor nan = at::isnan(ops::own_encoder_attention(poisoned, k, v, ScoreForm{1})).any(-1);
  CHECK(nan[0][0][7].item<bool>());
  CHECK(nan.sum().item<int64_t>() == 1);  // that query's row, and no other
}

TEST_CASE("tile attention: bf16 far apart, NaN and infinity, with and without pairs of products") {
  const at::Tensor q = numbers({1, 2, 70, 33}, 1, at::kBFloat16) * 4,
                   k = numbers({1, 2, 200, 33}, 2, at::kBFloat16) * 4, v = numbers({1, 2, 200, 33}, 3, at::kBFloat16);
  for (const bool biased : {false, true}) {  // pairs do without a bias
    ScoreForm form{1};
    if (biased) form.bias = at::zeros({1, 2, 70, 200}, at::kBFloat16);
    CHECK(error(ops::own_encoder_attention(q, k, v, form), expected(q, k, v, form)) < most(at::kBFloat16));
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      at::Tensor poisoned = q.clone();
      poisoned[0][1][37][32] = bad;
      const at::Tensor nan = at::isnan(ops::own_encoder_attention(poisoned, k, v, form)).any(-1);
      CHECK(nan[0][1][37].item<bool>());
      CHECK(nan.sum().item<int64_t>() == 1);
    }
  }
}

TEST_CASE("bench attention: variants agree, tiles do not grow with the scores, fewer heads where time is short") {
  AttentionBenchOptions options;
  options.frames = {5};
  options.height = 256;
  options.width = 256;
  options.heads = 2;
  options.head_width = 32;
  options.dtypes = {"fp32"};
  options.repeats = 1;
  const AttentionBench bench = bench_attention(options);
  REQUIRE(bench.rows.size() == 3);
  for (const AttentionBenchRow& row : bench.rows) {
    CAPTURE(row.variant);
    CHECK(row.tokens == 512);
    CHECK(row.heads_run == 2);
    CHECK(row.error < 1e-5);
    CHECK(row.seconds > 0);
    CHECK(row.product_share > 0);
  }
  CHECK(attention_bytes("full", 12, 30600, 128, at::kFloat) > 80e9);
  CHECK(attention_bytes("tiled", 12, 30600, 128, at::kFloat) < .25e9);
  options.most = 1e-9;
  CHECK(bench_attention(options).rows.front().heads_run == 1);
  options.height = 8;
  CHECK_THROWS_AS(bench_attention(options), Error);
}

}  // namespace parity
