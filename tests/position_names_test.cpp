// What names of faults of positions are found: other frequencies, other places, in tables and in computed angles.
#include <doctest/doctest.h>

#include <cmath>

#include "program_file.hpp"

namespace parity {
namespace {

using testing::diagnosis_of;
using testing::json;
using testing::ProgramFile;
using testing::ref;

// base^(-i / steps), i below `count`
at::Tensor frequencies(double base, int64_t count, double steps) {
  return (at::arange(count, at::kDouble) * (-std::log(base) / steps)).exp();
}

}  // namespace

TEST_CASE("names: the base of frequencies laid side by side, or of a part for each axis of an image") {
  const auto of_base = [](double base) { return frequencies(base, 4, 4); };
  const auto side_by_side = [&](double base) {
    return at::outer(at::arange(6, at::kDouble), of_base(base)).repeat_interleave(2, 1).to(at::kFloat);
  };
  const auto by_axis = [&](double base) {
    const at::Tensor place = at::arange(12, at::kDouble), rows = place.div(4).floor(), columns = place.remainder(4);
    return at::cat({at::outer(rows, of_base(base)), at::outer(columns, of_base(base))}, 1).to(at::kFloat);
  };
  const auto resized = [&](double base) {  // of an image of other sizes than those that were learnt
    const at::Tensor place = at::arange(12, at::kDouble), rows = place.div(4).floor() * 5,
                     columns = place.remainder(4) * 3;
    return at::cat({at::outer(rows, of_base(base)), at::outer(columns, of_base(base))}, 1).to(at::kFloat);
  };
  const auto diagnosis = [](const at::Tensor& right, const at::Tensor& wrong) {
    ProgramFile file("frequencies.h5");
    file.op("aten::cos", {ref(file.leaf(right))}, {right.cos()});
    return diagnosis_of(file, wrong.cos());
  };
  CHECK(diagnosis(side_by_side(1e4), side_by_side(1e5)).starts_with("RoPE theta (base 100000"));
  CHECK(diagnosis(by_axis(1e4), by_axis(5e5)).starts_with("RoPE theta (base 500000"));
  CHECK(diagnosis(resized(1e4), resized(5e5)).starts_with("RoPE theta (base 500000"));
}

TEST_CASE("names: another base where angles are a module's result, and cosines are taken elsewhere") {
  const at::Tensor places = at::arange(9, at::kFloat).unsqueeze(1), own = frequencies(1e4, 6, 6).to(at::kFloat),
                   angles = places * own;
  ProgramFile file("angles.h5");
  const int64_t made = file.op("aten::mul.Tensor", {ref(file.leaf(places)), ref(file.leaf(own))}, {angles});
  const at::Tensor twice = at::cat({angles, angles}, 1);
  const int64_t both = file.op("aten::cat", {json{ref(made), ref(made)}, 1}, {twice}, {}, {{"store", false}});
  file.op("aten::cos", {ref(both)}, {twice.cos()}, {}, {{"store", false}});
  const at::Tensor other = places * frequencies(2e4, 6, 6).to(at::kFloat);
  CHECK(diagnosis_of(file, other).starts_with("RoPE theta (base x 2"));
}

TEST_CASE("names: another base of times, whose last frequency is one over it") {
  const at::Tensor times = at::tensor({31.0F, 412.0F}).unsqueeze(1);
  const auto angles = [&](double base) { return times * frequencies(base, 8, 7).to(at::kFloat); };
  ProgramFile file("time-base.h5");
  file.op("aten::sin", {ref(file.leaf(angles(1e4)))}, {angles(1e4).sin()});
  CHECK(diagnosis_of(file, angles(2e4).sin()).starts_with("RoPE theta (base x 2"));
}

TEST_CASE("names: a learned table of positions whose rows are one off") {
  at::manual_seed(8);
  const at::Tensor x = at::randn({2, 7, 24}), table = at::randn({1, 7, 24}) * .3;
  const auto program = [&](const json& names) {
    ProgramFile file("table.h5");
    file.op("aten::add.Tensor", {ref(file.leaf(x)), ref(file.leaf(table, names))}, {x + table});
    return diagnosis_of(file, x + table.roll(1, 1));
  };
  CHECK(program({"weights/pos_embed"}).starts_with("position off by one (rows of the table +1"));
  CHECK_FALSE(program(json::array()).starts_with("position off by one"));  // an input has no places
}

TEST_CASE("names: the last places of each head's table read one too early") {
  at::manual_seed(9);
  const at::Tensor table = at::randn({4, 20, 12}), x = at::randn({4, 12, 7});
  ProgramFile file("places.h5");
  const json all = json(table.numel());
  const at::Tensor last = table.slice(1, -8);
  const int64_t read = file.op("aten::slice.Tensor", {ref(file.leaf(table, {"weights/pos_emb"})), 1, -8, all}, {last},
                               {}, {{"view", true}});
  file.op("aten::bmm", {ref(read), ref(file.leaf(x))}, {last.bmm(x)});
  CHECK(diagnosis_of(file, table.slice(1, -9, -1).bmm(x)).starts_with("position off by one (positions of one axis -1"));
}

TEST_CASE("names: the times of a diffusion model's steps one too large") {
  const at::Tensor times = at::tensor({700.0, 23.0}).unsqueeze(1), step = (at::arange(8) * -.9).exp();
  const at::Tensor angles = times * step;
  ProgramFile file("times.h5");
  file.op("aten::sin", {ref(file.leaf(angles))}, {angles.sin()});
  CHECK(diagnosis_of(file, ((times + 1) * step).sin()).starts_with("position off by one (timesteps one more"));
}

TEST_CASE("names: frequencies of timesteps that enter a layer, of another period or count") {
  at::manual_seed(43);
  const at::Tensor times = at::tensor({700.0, 23.0}).unsqueeze(1), place = at::arange(8, at::kDouble),
                   w = at::randn({16, 6}, at::kDouble);
  const auto embedded = [&](double period, double count) {
    return times * (place * (-std::log(period) / count)).exp();
  };
  const auto sides = [](const at::Tensor& angles) { return at::cat({angles.cos(), angles.sin()}, -1); };
  const at::Tensor angles = embedded(1e4, 8);
  const auto said_of = [&](const at::Tensor& other) {
    ProgramFile file("timesteps.h5");
    const json hidden = {{"store", false}};
    const int64_t in = file.leaf(angles);
    const int64_t cosines = file.op("aten::cos", {ref(in)}, {angles.cos()}, {}, hidden),
                  sines = file.op("aten::sin", {ref(in)}, {angles.sin()}, {}, hidden);
    const int64_t both =
        file.op("aten::cat", {json::array({ref(cosines), ref(sines)}), -1}, {sides(angles)}, {}, hidden);
    file.op("aten::mm", {ref(both), ref(file.leaf(w))}, {sides(angles).mm(w)});
    return diagnosis_of(file, sides(other).mm(w));
  };
  const std::string period = said_of(embedded(1e3, 8)), count = said_of(embedded(1e4, 7));
  CHECK_MESSAGE(period.starts_with("timestep frequencies (base x 0.1"), period);
  CHECK_MESSAGE(count.starts_with("timestep frequencies (their count shifted by 1"), count);
}

TEST_CASE("names: slopes of ALiBi's heads, and what Bloom's product adds to the scores") {
  at::manual_seed(31);
  constexpr int64_t kHeads = 8, kTokens = 7;
  const json hidden = {{"store", false}}, view = {{"view", true}};
  const at::Tensor base = at::full({}, .6, at::kFloat), heads = at::arange(1, kHeads + 1),
                   places = at::arange(kTokens).to(at::kFloat).reshape({1, 1, kTokens}),
                   query = at::randn({kHeads, kTokens, 4}), key = at::randn({kHeads, 4, kTokens});
  const auto bias = [&](const at::Tensor& slopes) { return slopes.reshape({kHeads, 1, 1}) * places; };
  const at::Tensor slopes = base.pow(heads);
  const auto scores = [&](const at::Tensor& of, double beta, double alpha) {
    return bias(of).baddbmm(query, key, beta, alpha);
  };
  ProgramFile file("alibi.h5");
  const int64_t counted = file.op("aten::arange.start", {1, kHeads + 1}, {heads}, {}, hidden);
  const int64_t powers = file.op("aten::pow.Tensor_Tensor", {ref(file.leaf(base)), ref(counted)}, {slopes}, {}, hidden);
  const int64_t column =
      file.op("aten::view", {ref(powers), {kHeads, 1, 1}}, {slopes.reshape({kHeads, 1, 1})}, {}, view);
  const int64_t added = file.op("aten::mul.Tensor", {ref(column), ref(file.leaf(places))}, {bias(slopes)}, {}, hidden);
  const int64_t product =
      file.op("aten::baddbmm", {ref(added), ref(file.leaf(query, {"inputs/q"})), ref(file.leaf(key, {"inputs/k"}))},
              {scores(slopes, 1, .5)}, {{"beta", 1}, {"alpha", .5}}, hidden);
  file.op("aten::_softmax", {ref(product), -1, false}, {scores(slopes, 1, .5).softmax(-1)});
  const auto diagnosis = [&](const at::Tensor& wrong) { return diagnosis_of(file, wrong.softmax(-1)); };
  for (const auto& [other, what] :
       {std::pair{base.pow(heads - 1), "heads counted from 0"}, std::pair{base.pow(heads * 2), "exponents doubled"},
        std::pair{slopes.flip(0), "heads in reverse"}}) {
    const std::string said = diagnosis(scores(other, 1, .5));
    CHECK_MESSAGE(said.starts_with(std::string("ALiBi slopes (") + what), said);
  }
}

TEST_CASE("names: scale and bias of a product that adds") {
  at::manual_seed(32);
  const at::Tensor added = at::randn({8, 7, 7}), query = at::randn({8, 7, 4}), key = at::randn({8, 4, 7});
  const auto weights = [&](double beta, double alpha) { return added.baddbmm(query, key, beta, alpha).softmax(-1); };
  ProgramFile file("product-adds.h5");
  const int64_t product = file.op(
      "aten::baddbmm",
      {ref(file.leaf(added, {"inputs/bias"})), ref(file.leaf(query, {"inputs/q"})), ref(file.leaf(key, {"inputs/k"}))},
      {added.baddbmm(query, key, 1, .5)}, {{"beta", 1}, {"alpha", .5}}, {{"store", false}});
  file.op("aten::_softmax", {ref(product), -1, false}, {weights(1, .5)});
  CHECK(diagnosis_of(file, weights(0, .5)).starts_with("missing bias (nothing added to the scores"));
  CHECK(diagnosis_of(file, weights(1, 1)).starts_with("attention scale (scores not scaled"));
  CHECK(diagnosis_of(file, weights(1, .25)).starts_with("attention scale (scores scaled twice"));
  CHECK(diagnosis_of(file, weights(.5, .5)).starts_with("attention scale (what is added to the scores scaled, too"));
}

}  // namespace parity
