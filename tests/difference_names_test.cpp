// What names of faults of differences are found: guidance, exchanged operands; and of halves of a product.
#include <doctest/doctest.h>

#include "program_file.hpp"

namespace parity {

using testing::diagnosis_of;
using testing::json;
using testing::ProgramFile;
using testing::ref;

TEST_CASE("names: guidance added to the other prediction, and its difference taken the other way") {
  at::manual_seed(22);
  const json hidden = {{"store", false}};
  const at::Tensor u = at::randn({2, 4, 6}), c = u + .3 * at::randn({2, 4, 6});
  for (const bool to_second : {true, false}) {
    CAPTURE(to_second);
    ProgramFile file("guidance.h5");
    const int64_t unconditional = file.leaf(u, {"inputs/u"}), conditional = file.leaf(c, {"inputs/c"});
    const int64_t a = file.op("aten::mul.Tensor", {ref(unconditional), 1.5}, {u * 1.5}, {}, hidden);
    const int64_t b = file.op("aten::mul.Tensor", {ref(conditional), 1.5}, {c * 1.5}, {}, hidden);
    const at::Tensor difference = c * 1.5 - u * 1.5, scaled = difference * 5, base = (to_second ? u : c) * 1.5,
                     other = (to_second ? c : u) * 1.5;
    const int64_t d = file.op("aten::sub.Tensor", {ref(b), ref(a)}, {difference}, {}, hidden);
    const int64_t s = file.op("aten::mul.Tensor", {ref(d), 5.0}, {scaled}, {}, hidden);
    file.op("aten::add.Tensor", {ref(to_second ? a : b), ref(s)}, {base + scaled});
    const std::string form = diagnosis_of(file, other + scaled), turned = diagnosis_of(file, base - scaled);
    CHECK_MESSAGE(form.starts_with("guidance form ("), form);
    CHECK_MESSAGE(turned.starts_with("sign (operands of the difference exchanged at "), turned);
  }
}

TEST_CASE("names: another entry of a sampler's table, and a batch's halves exchanged, are no shift and scale") {
  at::manual_seed(23);
  const json hidden = {{"store", false}}, view = {{"view", true}};
  const at::Tensor x = at::randn({4, 6}), y = at::randn({4, 6}), sigmas = at::rand({5}) + .5;
  {
    ProgramFile file("sigmas.h5");
    const int64_t left = file.leaf(x, {"inputs/x"}), right = file.leaf(y, {"inputs/y"}), table = file.leaf(sigmas);
    const int64_t first = file.op("aten::select.int", {ref(table), 0, 1}, {sigmas[1]}, {}, view);
    const int64_t second = file.op("aten::select.int", {ref(table), 0, 2}, {sigmas[2]}, {}, view);
    const int64_t a = file.op("aten::mul.Tensor", {ref(left), ref(first)}, {x * sigmas[1]}, {}, hidden);
    const int64_t b = file.op("aten::mul.Tensor", {ref(right), ref(second)}, {y * sigmas[2]}, {}, hidden);
    file.op("aten::add.Tensor", {ref(a), ref(b)}, {x * sigmas[1] + y * sigmas[2]});
    const std::string said = diagnosis_of(file, x * sigmas[2] + y * sigmas[1]);
    CHECK_MESSAGE(said.starts_with("wrong entry ("), said);
  }
  ProgramFile file("halves.h5");
  const int64_t both = file.leaf(at::cat({x, y}), {"inputs/both"});
  const int64_t half = file.op("aten::split.Tensor", {ref(both), 4}, {x, y}, {}, view);
  const int64_t a = file.op("aten::mul.Tensor", {ref(half), 3.0}, {x * 3}, {}, hidden);
  file.op("aten::add.Tensor", {ref(half + 1), ref(a)}, {y + x * 3});
  const std::string said = diagnosis_of(file, x + y * 3);
  CHECK_MESSAGE(said.starts_with("batch order ("), said);
}

TEST_CASE("names: the chosen experts' weights that their sum does not divide, in place or not") {
  at::manual_seed(24);
  const json hidden = {{"store", false}};
  const at::Tensor scores = at::randn({12, 8}), all = scores.softmax(-1);
  const auto [weights, chosen] = all.topk(2);
  const at::Tensor sum = weights.sum(-1, true);
  for (const bool in_place : {true, false}) {
    CAPTURE(in_place);
    ProgramFile file("routing.h5");
    const int64_t in = file.leaf(scores, {"inputs/scores"});
    const int64_t soft = file.op("aten::_softmax", {ref(in), -1, false}, {all}, {}, hidden);
    const int64_t top = file.op("aten::topk", {ref(soft), 2}, {weights, chosen}, {}, hidden);
    const int64_t total = file.op("aten::sum.dim_IntList", {ref(top), {-1}, true}, {sum}, {}, hidden);
    if (in_place)
      file.op("aten::div_.Tensor", {ref(top), ref(total)}, {weights / sum}, {}, {{"ids", {top}}});
    else
      file.op("aten::div.Tensor", {ref(top), ref(total)}, {weights / sum});
    const std::string said = diagnosis_of(file, weights);
    CHECK_MESSAGE(said.starts_with("expert routing (weights not normalised among the chosen"), said);
  }
}

TEST_CASE("names: gate and up as every second channel where they are halves of one product") {
  at::manual_seed(33);
  const json hidden = {{"store", false}}, view = {{"view", true}};
  const at::Tensor both = at::randn({6, 32});
  const auto gated = [](const at::Tensor& gate, const at::Tensor& up) { return at::silu(gate) * up; };
  const auto every_second = [&](int64_t first) { return both.slice(1, first, std::nullopt, 2); };
  const at::Tensor wrong = gated(every_second(0), every_second(1)), gate = both.slice(1, 0, 16),
                   up = both.slice(1, 16, 32);
  for (const bool split : {true, false}) {
    CAPTURE(split);
    ProgramFile file("interleaved.h5");
    const int64_t in = file.leaf(both, {"inputs/both"});
    const int64_t first = split ? file.op("aten::split.Tensor", {ref(in), 16, 1}, {gate, up}, {}, view)
                                : file.op("aten::slice.Tensor", {ref(in), 1, 0, 16}, {gate}, {}, view);
    const int64_t second = split ? first + 1 : file.op("aten::slice.Tensor", {ref(in), 1, 16, 32}, {up}, {}, view);
    const int64_t active = file.op("aten::silu", {ref(first)}, {at::silu(gate)}, {}, hidden);
    file.op("aten::mul.Tensor", {ref(active), ref(second)}, {gated(gate, up)});
    const std::string said = diagnosis_of(file, wrong);
    CHECK_MESSAGE(said.starts_with("channel order (every second channel for halves"), said);
  }
}

TEST_CASE(
    "names: a factor of all values that a scalar's last bits make is none, and a coefficient of a sum is no gain") {
  at::manual_seed(44);
  const at::Tensor x = at::randn({4, 256}), y = at::randn({4, 256}) * .3, sum = x * 1.25 + y;
  const auto judged = [&](const at::Tensor& theirs) {
    ProgramFile file("scaled_sum.h5");
    const json hidden = {{"store", false}};
    const int64_t scaled = file.op("aten::mul.Tensor", {ref(file.leaf(x)), 1.25}, {x * 1.25}, {}, hidden);
    file.op("aten::add.Tensor", {ref(scaled), ref(file.leaf(y))}, {sum});
    return testing::judged_result(file, theirs);
  };
  const auto scaled_by = [&](double factor) { return judged((sum.to(at::kDouble) * factor).to(at::kFloat)); };
  const OpResult table = scaled_by(1 + 1.2e-7);
  CHECK_MESSAGE(table.verdict == Verdict::pass, table.diagnosis);  // a table of alphas that numpy computes in fp32
  const OpResult gain = scaled_by(1 + 2e-5), coefficient = judged(x * 1.4 + y);
  CHECK_MESSAGE(gain.diagnosis.starts_with("gain (all values scaled"), gain.diagnosis);
  CHECK_MESSAGE(coefficient.diagnosis.find("all values scaled") == std::string::npos, coefficient.diagnosis);
}

TEST_CASE("names: attention's scale, where a module calls it for each sample") {
  at::manual_seed(45);
  const at::Tensor q = at::randn({2, 2, 5, 8}), k = at::randn({2, 2, 5, 8}), v = at::randn({2, 2, 5, 8});
  ProgramFile file("each_sample.h5");
  const json hidden = {{"store", false}};
  json parts = json::array();
  std::vector<at::Tensor> recorded, ported;
  for (int64_t i = 0; i < 2; ++i) {
    const at::Tensor qs = q.narrow(0, i, 1), ks = k.narrow(0, i, 1), vs = v.narrow(0, i, 1);
    const auto [result, sums] = at::_scaled_dot_product_flash_attention_for_cpu(qs, ks, vs);
    const auto [other, more] = at::_scaled_dot_product_flash_attention_for_cpu(qs, ks, vs, 0, false, {}, 1.0);
    recorded.push_back(result), ported.push_back(other);
    parts.push_back(ref(file.op("aten::_scaled_dot_product_flash_attention_for_cpu",
                                {ref(file.leaf(qs)), ref(file.leaf(ks)), ref(file.leaf(vs)), 0.0, false},
                                {result, sums}, {}, hidden)));
  }
  file.op("aten::cat", {parts, 0}, {at::cat(recorded)});
  const std::string said = diagnosis_of(file, at::cat(ported));
  CHECK_MESSAGE(said.starts_with("attention scale (no scale"), said);
}

}  // namespace parity
