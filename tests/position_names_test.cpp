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
  CHECK(diagnosis_of(file, ((times + 1) * step).sin()).starts_with("position off by one (times +1"));
}

}  // namespace parity
