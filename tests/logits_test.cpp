// Logits as distributions over words: numbers against plain loops in long double, ties by the margin, which values of a
// model are logits, and what every report file says of them.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "command.hpp"
#include "core/error.hpp"
#include "jobs/model_logits.hpp"
#include "measure/logits.hpp"
#include "published_schema.hpp"
#include "report/logits.hpp"
#include "report/sink.hpp"
#include "report_sample.hpp"

using namespace parity;
using nlohmann::json;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Rows of logits.
at::Tensor logits(const std::vector<std::vector<double>>& rows, at::ScalarType dtype = at::kDouble) {
  std::vector<at::Tensor> all;
  for (const auto& row : rows) all.push_back(at::tensor(row, at::kDouble));
  return at::stack(all).to(dtype);
}

// KL(softmax(r) || softmax(c)) of one token, by its definition.
double divergence(const at::Tensor& r, const at::Tensor& c) {
  const auto probabilities = [](const at::Tensor& x) {
    std::vector<long double> p;
    long double sum = 0;
    for (int64_t i = 0; i < x.numel(); ++i) p.push_back(std::exp(static_cast<long double>(x[i].item<double>())));
    for (const long double e : p) sum += e;
    for (long double& e : p) e /= sum;
    return p;
  };
  const auto p = probabilities(r), q = probabilities(c);
  long double kl = 0;
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) kl += p[i] * std::log(p[i] / q[i]);
  return static_cast<double>(kl);
}

LogitPair sample_pair() {
  return {"dump", "lm_head", "logits", "bf16",
          measure_logits(logits({{4, 3, 0}, {1, 2, 0}}), logits({{4, 3, 0}, {1, .5, 0}}))};
}

}  // namespace

TEST_CASE("logits: the divergence is the definition's, whatever the number of tokens and words") {
  at::manual_seed(1);
  for (const auto& [tokens, words] : {std::pair<int64_t, int64_t>{1, 2}, {7, 5}, {150, 40}, {3, 3'000'000}}) {
    CAPTURE(tokens);
    const at::Tensor r = 3 * at::randn({tokens, words}), c = r + .1 * at::randn({tokens, words});
    const LogitStats s = measure_logits(r.unflatten(0, {1, tokens}), c.unflatten(0, {1, tokens}));
    CHECK(s.tokens == tokens);
    CHECK(s.words == words);
    if (words > 1000) continue;  // those are for the chunks
    std::vector<double> each;
    for (int64_t t = 0; t < tokens; ++t) each.push_back(divergence(r[t], c[t]));
    const auto largest = std::max_element(each.begin(), each.end());
    CHECK(*s.kl_max == doctest::Approx(*largest).epsilon(1e-9));
    CHECK(s.worst_token == std::vector<int64_t>{0, largest - each.begin()});
    double sum = 0;
    for (const double kl : each) sum += kl;
    CHECK(*s.kl_mean == doctest::Approx(sum / static_cast<double>(tokens)).epsilon(1e-9));
    std::sort(each.begin(), each.end());
    CHECK(*s.kl_p99 == doctest::Approx(each[static_cast<size_t>(std::ceil(.99 * tokens)) - 1]).epsilon(1e-9));
  }
}

TEST_CASE("logits: a flip of the most likely word counts when the reference's lead is more than a tie") {
  const at::Tensor r = logits({{5, 4.9, 0, 0}, {5, 3, 0, 0}, {2, 2, 1, 0}});
  const LogitStats same = measure_logits(r, r + 7);  // a constant changes no distribution
  CHECK(*same.kl_max < 1e-15);
  CHECK(same.flips == 0);
  CHECK(*same.same_top == 1);
  CHECK(*same.top5_overlap == 1);
  const LogitStats tie = measure_logits(r, logits({{4.9, 5, 0, 0}, {5, 3, 0, 0}, {2, 2.1, 1, 0}}));
  CHECK(tie.flips == 1);  // in the third row the two lead together
  CHECK(tie.flips_beyond == 0);
  CHECK(tie.first_flip->token == std::vector<int64_t>{0});
  // A lead of 1 in bf16, whose ULP at 200 is 1: a tie. In fp32 it is none, where the other logits stand still.
  std::vector<double> before(1000, 0.), after(1000, 0.);
  before[0] = 200, before[1] = 199, after[0] = 199, after[1] = 200;
  CHECK(measure_logits(logits({before}, at::kBFloat16), logits({after}, at::kBFloat16)).flips_beyond == 0);
  const LogitStats flip = measure_logits(logits({before}, at::kFloat), logits({after}, at::kFloat));
  CHECK(flip.flips_beyond == 1);
  CHECK(flip.first_flip->reference_word == 0);
  CHECK(flip.first_flip->candidate_word == 1);
  CHECK(flip.first_flip->margin == 1);
  CHECK(flip.first_flip->allowed == doctest::Approx(2 * std::sqrt(2. / 1000)).epsilon(1e-4));
}

TEST_CASE("logits: masked words are none, a token without a distribution is counted and left out") {
  const at::Tensor r = logits({{1, 2, -kInf}, {1, NAN, 0}, {1, 2, 3}});
  const LogitStats s = measure_logits(r, logits({{1, 2, -kInf}, {1, 2, 0}, {1, 2, 3}}));
  CHECK(s.not_finite == 1);
  CHECK(*s.kl_max == 0);
  CHECK(*s.same_top == 1);
  const LogitStats gone = measure_logits(logits({{1, 2, 3}}), logits({{1, 2, -kInf}}));  // what was likely cannot be
  CHECK(*gone.kl_mean == kInf);
  CHECK(gone.flips == 1);
  const LogitStats none = measure_logits(logits({{NAN, 1}}), logits({{0, 1}}));
  CHECK(none.not_finite == 1);
  CHECK_FALSE(none.kl_mean);
  CHECK_FALSE(none.same_top);
  CHECK_THROWS_AS(measure_logits(at::zeros({2, 3}), at::zeros({3, 2})), Error);
  CHECK_THROWS_AS(measure_logits(at::zeros({2, 1}), at::zeros({2, 1})), Error);
  CHECK_THROWS_AS(measure_logits(at::zeros({2, 3}, at::kLong), at::zeros({2, 3}, at::kLong)), Error);
}

TEST_CASE("logits: a port of a language model has them, a port of a video transformer has none") {
  const test::Scratch scratch;
  const auto pairs = [&](const std::string& reference, const std::string& candidate) {
    const std::string file = (scratch / "report.json").string();
    const std::string folder = test::reference_dump("selftest").string() + "/";
    test::parity_check("compare " + folder + reference + " " + folder + candidate + " --no-diagnosis --json " + file);
    return json::parse(test::read_text(file))["logits"];
  };
  const json right = pairs("gpt2.bf16.h5", "gpt2.bf16.h5");
  REQUIRE(right.size() == 1);
  CHECK(right[0]["kl_max"] == 0);
  CHECK(right[0]["same_top"] == 1);
  const json wrong = pairs("gpt2.bf16.h5", "gpt2.bf16.fault.attention-scale.h5");
  REQUIRE(wrong.size() == 1);
  CHECK(wrong[0]["kl_mean"].get<double>() > 1e-3);
  CHECK(pairs("wan.bf16.h5", "wan.bf16.fault.gelu-erf.h5").empty());
}

TEST_CASE("report: logits in every file, and nothing where there are none") {
  Report r = test::sample_report();
  CHECK(markdown_logits(r).empty());
  CHECK(logit_lines(r).empty());
  r.logits = {sample_pair()};
  const json good = to_json(r);
  CHECK(test::schema_complaint("parity-report-1", good) == "");
  for (const auto& [key, value] : good["logits"][0].items()) {
    json bad = good;
    bad["logits"][0].erase(key);
    CHECK(test::schema_complaint("parity-report-1", bad) != "");
  }
  const std::string line = logit_lines(r).at(0);
  CHECK(line.find("logits (dump: lm_head, bf16): KL mean") == 0);
  CHECK(line.find("1 of 2 tokens have another most likely word") != std::string::npos);
  CHECK(line.find("token [1], word 1 becomes 0") != std::string::npos);
  CHECK(markdown_logits(r).find("| dump: lm_head, bf16 | 2 |") != std::string::npos);
  CHECK(console_summary(r, false).find(line) != std::string::npos);
  const at::Tensor same = logits({{4, 3, 0}});
  r.logits.push_back({"other", "", "", "fp32", measure_logits(same, same)});
  REQUIRE(logit_lines(r).size() == 2);
  CHECK(logit_lines(r).at(1) == "logits: the same distribution in 1 of 2 runs");
}
