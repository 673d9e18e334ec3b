// What a verdict of `compare` rests on: every doubt and every silence has a rule, and a case that goes red.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/error.hpp"
#include "jobs/port_job.hpp"
#include "judge/limits.hpp"
#include "measure/local.hpp"
#include "pair/port_pairing.hpp"
#include "program_file.hpp"

namespace parity {
namespace {

using testing::json;
using testing::judged_with;
using testing::ProgramFile;
using testing::ref;

std::string words_of(const Report& report, Verdict verdict) {
  for (const OpResult& row : report.ops)
    if (row.verdict == verdict) return row.diagnosis;
  return "";
}

// x - x: exactly zero on the candidate's own inputs, whatever the arithmetic.
Report zero_judged(const at::Tensor& x, const at::Tensor& candidate) {
  ProgramFile file("zero.h5");
  const int64_t id = file.leaf(x);
  file.op("aten::sub.Tensor", {ref(id), ref(id)}, {x - x});
  return judged_with(file, candidate);
}

}  // namespace

TEST_CASE("judge: where the reference is exactly zero, nothing but zero passes") {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t count : {1, 40}) {
      CAPTURE(count);
      const at::Tensor x = at::ones({count}, dtype) * 3;
      CHECK(exit_status(zero_judged(x, at::zeros({count}, dtype))) == 0);
      const Report five = zero_judged(x, at::full({count}, 5, dtype));
      CHECK(exit_status(five) == 1);
      CHECK(testing::contains(words_of(five, Verdict::fail), "exactly zero"));
      CHECK(exit_status(zero_judged(x, at::full({count}, 1e-6, dtype))) == 1);
    }
}

TEST_CASE("judge: a gain as small as other kernels' fp32 means and roots make has no name") {
  at::manual_seed(3);
  const at::Tensor x = at::randn({64, 512}).to(at::kBFloat16);
  const auto judged = [&](double gain) {
    ProgramFile file("gain.h5");
    file.op("aten::tanh", {ref(file.leaf(x))}, {x.tanh()});
    return judged_with(file, (x.to(at::kDouble).tanh() * (1 + gain)).to(at::kBFloat16));
  };
  const Report green = judged(1e-6);  // group norm with channels last: 8e-7, a few elements of thousands
  CAPTURE(words_of(green, Verdict::fail));
  CHECK(exit_status(green) == 0);
  const Report red = judged(2e-5);
  CHECK(exit_status(red) == 1);
  CHECK(testing::contains(words_of(red, Verdict::fail), "gain"));
}

TEST_CASE("judge: fp64 values behind bf16 ops are held to these ops' rounding") {
  at::manual_seed(5);
  const at::Tensor x = at::rand({2, 53, 4}).to(at::kBFloat16), third = (x / 3).to(at::kDouble);
  const auto judged = [&](const at::Tensor& value) {
    ProgramFile file("boxes.h5");
    const int64_t quotient = file.op("aten::div.Tensor", {ref(file.leaf(x)), 3}, {x / 3});
    const int64_t wide = file.op("aten::_to_copy", {ref(quotient)}, {third}, {{"dtype", {{"dtype", "float64"}}}});
    file.op("aten::mul.Tensor", {ref(wide), 63}, {third * 63});
    return judged_with(file, value, {"~/mul.0"});
  };
  const Report green = judged(third * 63);
  CAPTURE(words_of(green, Verdict::fail));
  CHECK(exit_status(green) == 0);
  CHECK(exit_status(judged(third * 64)) == 1);
  CHECK(exit_status(judged((x.to(at::kDouble) / 3) * 63)) == 1);  // not rounded to bf16
}

TEST_CASE("judge: constants, zeros and empty tensors are coverage, not doubt") {
  ProgramFile file("constants.h5");
  const at::Tensor x = at::randn({3, 5});
  const int64_t id = file.leaf(x);
  const int64_t ones = file.op("aten::ones_like", {ref(id)}, {at::ones_like(x)});
  const at::Tensor none = x.narrow(0, 0, 0);
  const int64_t empty = file.op("aten::slice.Tensor", {ref(id), 0, 0, 0}, {none}, {}, {{"view", true}});
  file.op("aten::clone", {ref(empty)},
          {none.clone()});  // a cache before its first token: only moved, all 0 of it equal
  file.op("aten::mul.Tensor", {ref(id), ref(ones)}, {x * 1});
  const Report report = judged_with(file, {});
  CHECK(exit_status(report) == 0);
  const auto& list = report.coverage.at("").not_exercised;
  for (const char* word : {"constant", "empty"}) {
    CAPTURE(word);
    CHECK(std::any_of(list.begin(), list.end(), [&](const auto& text) { return testing::contains(text, word); }));
  }
}

TEST_CASE("judge: a weight that no compared value moves with is said") {
  for (const double gate : {0., .5}) {
    CAPTURE(gate);
    at::manual_seed(4);
    ProgramFile file("gate.h5");
    const at::Tensor x = at::randn({6, 8}), w = at::randn({8, 8}), g = at::full({8}, gate);
    const int64_t in = file.leaf(x, {"inputs/0/x"}), weight = file.leaf(w, {"weights/branch.weight"}),
                  by = file.leaf(g, {"weights/gate"});
    const int64_t branch = file.op("aten::mm", {ref(in), ref(weight)}, {x.mm(w)});
    const int64_t gated = file.op("aten::mul.Tensor", {ref(branch), ref(by)}, {x.mm(w) * g});
    file.op("aten::add.Tensor", {ref(in), ref(gated)}, {x + x.mm(w) * g});
    const Report report = judged_with(file, {}, {"~/add.0"});
    REQUIRE(report.ops.size() >= 1);
    const std::string hidden = words_of(report, Verdict::untrusted);
    CHECK(testing::contains(hidden, "weights/branch.weight") == (gate == 0));
    CHECK_FALSE(testing::contains(hidden, "weights/gate"));  // it moves with the gate itself
    CHECK(exit_status(report) == (gate == 0 ? 3 : 0));
  }
}

TEST_CASE("judge: what softmax takes of one element alone cannot show, and leaves no doubt") {
  for (const bool behind_a_gate : {false, true}) {
    CAPTURE(behind_a_gate);
    at::manual_seed(5);
    ProgramFile file("one.h5");
    const at::Tensor x = at::randn({6, 8}), w = at::randn({8, 1}), ones = at::ones({6, 1});
    const int64_t in = file.leaf(x, {"inputs/0/x"}), weight = file.leaf(w, {"weights/w_g"});
    const int64_t scores = file.op("aten::mm", {ref(in), ref(weight)}, {x.mm(w)});
    const int64_t p = behind_a_gate ? file.op("aten::pow.Tensor_Scalar", {ref(scores), 0}, {ones})
                                    : file.op("aten::_softmax", {ref(scores), -1, false}, {ones});
    file.op("aten::mul.Tensor", {ref(in), ref(p)}, {x * ones});
    CHECK(exit_status(judged_with(file, {}, {"~/mul.0"})) == (behind_a_gate ? 3 : 0));
  }
}

TEST_CASE("judge: query and key of attention to one key cannot show, a number given to all elements does") {
  at::manual_seed(6);
  const at::Tensor x = at::randn({1, 2, 6, 8}), w = at::randn({8, 8}), q = x.matmul(w);
  const at::Tensor key = at::randn({1, 2, 1, 8}), values = at::randn({1, 2, 1, 8}), mix = at::randn({1});
  const auto [seen, sums] = at::_scaled_dot_product_flash_attention_for_cpu(q, key, values);
  for (const bool one_key : {true, false}) {
    CAPTURE(one_key);
    ProgramFile file("one-key.h5");
    const int64_t in = file.leaf(x, {"inputs/0/x"}), weight = file.leaf(w, {"weights/to_q"}),
                  other = file.leaf(key, {"inputs/0/key"}), given = file.leaf(values, {"inputs/0/value"}),
                  factor = file.leaf(mix, {"weights/mix_factor"});
    const int64_t query = file.op("aten::matmul", {ref(in), ref(weight)}, {q});
    const int64_t result = one_key ? file.op("aten::_scaled_dot_product_flash_attention_for_cpu",
                                             {ref(query), ref(other), ref(given)}, {seen, sums})
                                   : file.op("aten::add.Tensor", {ref(query), ref(given)}, {q + values});
    const int64_t spread = file.op("aten::expand", {ref(factor), json{8}}, {mix.expand({8})}, {}, {{"view", true}});
    const int64_t scale = file.op("aten::sigmoid", {ref(spread)}, {mix.expand({8}).sigmoid()});
    const at::Tensor whole = (one_key ? seen : q + values) * mix.expand({8}).sigmoid();
    file.op("aten::mul.Tensor", {ref(result), ref(scale)}, {whole});
    CHECK(exit_status(judged_with(file, {}, {"~/mul.0"})) == 0);
  }
}

TEST_CASE("judge: a reference that does not reproduce itself here is not trusted") {
  at::manual_seed(5);
  const at::Tensor x = at::randn({6, 8}), w = at::randn({8, 8}), right = x.mm(w);
  const auto judge = [&](const at::Tensor& recorded) {
    ProgramFile file("edited.h5");
    const int64_t in = file.leaf(x), weight = file.leaf(w);
    file.op("aten::mm", {ref(in), ref(weight)}, {recorded});
    return judged_with(file, right);
  };
  CHECK(exit_status(judge(right)) == 0);
  CHECK(exit_status(judge(right * (1 + 1e-7))) == 0);  // another machine's kernel
  const Report edited = judge(right * 1.001);
  CHECK(exit_status(edited) == 3);
  CHECK(testing::contains(words_of(edited, Verdict::untrusted), "does not come out here"));
  at::Tensor broken = right.clone();
  broken[0][0] = NAN;
  CHECK(testing::contains(words_of(judge(broken), Verdict::untrusted), "NaN or Inf"));
}

TEST_CASE("judge: a recorded result that cannot be read is an error that names it") {
  const at::Tensor x = at::randn({4, 4});
  ProgramFile file("missing.h5");
  const int64_t in = file.leaf(x);
  file.event({{"e", "op"},
              {"op", "aten::neg"},
              {"in", -1},
              {"args", json::array({ref(in)})},
              {"kwargs", json::object()},
              {"out", json::array({testing::value_json(77, x, "77")})}});
  const Dump dump = file.dump();
  const Program program = load_program(dump);
  CandidateTensor given{.path = "~/neg.0", .dtype = at::kFloat, .shape = {4, 4}, .load = [x] { return -x; }};
  const std::vector<CandidateTensor> tensors{given};
  const PortPairing pairing = pair_by_name(program, tensors, nullptr, nullptr);
  try {
    run_port_job(dump, program, tensors, pairing, {});
    FAIL("read what is not there");
  } catch (const Error& error) {
    CHECK(testing::contains(error.what(), "77"));
  }
}

TEST_CASE("judge: rows on which valid arithmetics agree are judged by themselves") {
  at::manual_seed(6);
  constexpr int64_t kSettled = 90;
  const at::Tensor x = at::randn({100, 32}), scale = at::ones({100, 1});
  scale.slice(0, kSettled).fill_(3e6);  // radians as padding has them: no digit of their sine is known
  const at::Tensor angles = x * scale, sine = angles.sin();
  const auto judged = [&](int64_t first, int64_t end, double noise) {
    ProgramFile file("rows.h5");
    const int64_t by = file.op("aten::mul.Tensor", {ref(file.leaf(x)), ref(file.leaf(scale))}, {angles});
    file.op("aten::sin", {ref(by)}, {sine});
    const at::Tensor value = sine.clone();
    value.slice(0, first, end).add_(at::randn({end - first, 32}), noise);
    return judged_with(file, value, {"~/sin.0"});
  };
  const Report green = judged(kSettled, 100, .05);
  CAPTURE(words_of(green, Verdict::fail));
  CHECK(exit_status(green) == 0);
  for (const int64_t end : {int64_t{1}, kSettled}) {
    CAPTURE(end);
    const Report red = judged(0, end, 1e-4);
    CHECK(exit_status(red) == 1);
    CHECK(testing::contains(words_of(red, Verdict::fail), "on the 90 % of rows where valid arithmetics agree"));
  }
}

TEST_CASE("judge: a tie may be decided either way, anything else may not") {
  at::Tensor x = at::arange(12, at::kFloat).reshape({2, 6});
  x[0][3] = x[0][4] = 9;  // places 3 and 4 are equally large
  const auto judge = [&](const std::vector<int64_t>& first) {
    ProgramFile file("topk.h5");
    const int64_t in = file.leaf(x);
    const auto [values, places] = x.topk(2);
    file.op("aten::topk", {ref(in), 2}, {values, places});
    const Dump dump = file.dump();
    const Program program = load_program(dump);
    std::vector<CandidateTensor> tensors = tensors_of(dump, program);
    std::erase_if(tensors, [](const CandidateTensor& t) { return t.dtype != at::kLong; });
    REQUIRE(tensors.size() == 1);
    at::Tensor other = places.clone();
    other[0][0] = first[0];
    other[0][1] = first[1];
    tensors[0].load = [other] { return other; };
    const PortPairing pairing = pair_by_name(program, tensors, &program, nullptr);
    for (const OpResult& row : run_port_job(dump, program, tensors, pairing, {}).rows)
      if (!row.candidate_path.empty()) return row.verdict;
    return Verdict::missing;
  };
  CHECK(judge({3, 4}) == Verdict::pass);
  CHECK(judge({4, 3}) == Verdict::pass);  // the same set
  CHECK(judge({3, 1}) == Verdict::fail);
}

TEST_CASE("judge: sigma follows from the false-alarm budget and the number of tests") {
  CHECK(sigma_limit(.05, 1) == doctest::Approx(1.95996).epsilon(1e-4));
  CHECK(sigma_limit(.01, 1) == doctest::Approx(2.57583).epsilon(1e-4));
  CHECK(sigma_limit(.01, 100) == doctest::Approx(3.88906).epsilon(2e-3));  // each at 1.005e-4
  CHECK(sigma_limit(1e-4, 100000) > sigma_limit(1e-4, 1000));
}

TEST_CASE("judge: an error that a product spreads over rows counts once a row") {
  at::manual_seed(6);
  const at::Tensor spread = at::randn({1, 2048}, at::kDouble);
  double most_elements = 0, most_rows = 0;
  for (int i = 0; i < 50; ++i) {  // independent errors of 24 rows, each spread over 2048 outputs by the same weights
    const at::Tensor d = at::randn({24, 1}, at::kDouble) * spread, g = at::randn({24, 1}, at::kDouble) * spread;
    const Projection p = project(d, g, 1);
    most_elements = std::max(most_elements, std::abs(p.z));
    most_rows = std::max(most_rows, std::abs(p.z_rows));
    CHECK(std::abs(p.sigma()) == doctest::Approx(std::min(std::abs(p.z), std::abs(p.z_rows))));
  }
  CHECK(most_elements > 20);  // elements alone: certain, and wrong
  CHECK(most_rows < 4);
  const at::Tensor d = at::randn({24, 2048}, at::kDouble);
  CHECK(project(d + 0.2 * spread, spread.expand({24, 2048}), 1).z_rows > 6);  // a real one is seen
}

}  // namespace parity
