// What other implementations' tables differ by, and what valid arithmetics make of a recorded one.
#include <ATen/ATen.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/precision.hpp"
#include "trace/tables.hpp"

namespace parity {
namespace {

double distance(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor reference = b.to(at::kDouble);
  return ((a.to(at::kDouble) - reference).norm() / reference.norm()).item<double>();
}

at::Tensor frequencies(int64_t width, at::ScalarType dtype) {
  return at::pow(10000.0, at::arange(0, width, 2, dtype) / width).reciprocal();
}

// Frequencies as people write them.
std::vector<at::Tensor> written_otherwise(int64_t width) {
  const at::Tensor places = at::arange(0, width, 2, at::kFloat);
  return {frequencies(width, at::kDouble).to(at::kFloat), at::exp(places * (-std::log(10000.0) / width)),
          at::exp2(-(places / width) * std::log2(10000.0)),
          at::exp(at::arange(0, width / 2, at::kFloat) * -(std::log(10000.0) / (width / 2)))};
}

at::Tensor sines(int64_t places, const at::Tensor& frequencies) {  // -> [places, 2 * frequencies]
  const at::Tensor angles = at::outer(at::arange(places, frequencies.options()), frequencies);
  return at::cat({angles.sin(), angles.cos()}, 1);
}

TEST_CASE("tables: frequencies and sines move as far as other formulae put them, not much farther") {
  for (const int64_t width : {16, 64, 128}) {
    const at::Tensor recorded = frequencies(width, at::kFloat);
    const double moved = distance(computed_anew(recorded, 1), recorded);
    CHECK(moved < 4 * unit_roundoff(at::kFloat));
    for (const int64_t places : {64, 2048}) {
      const at::Tensor table = sines(places, recorded);
      const double anew = distance(computed_anew(table, 1), table);
      const double through = distance(sines(places, computed_anew(recorded, 1)), table);
      const auto longest = static_cast<double>(std::max(places, width));
      CHECK(anew < .22 * longest * unit_roundoff(at::kFloat));
      for (const at::Tensor& other : written_otherwise(width)) {
        CHECK(distance(sines(places, other), table) < anew);
        CHECK(distance(sines(places, other), table) < 2 * through);
      }
    }
  }
}

TEST_CASE("tables: masks, ones and whole numbers stay, in every dtype") {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const at::Tensor exact =
        at::cat({at::tensor({0.0, 1.0, -1.0, 0.5, 3.0, -INFINITY, INFINITY}), at::arange(12).to(at::kDouble)})
            .to(dtype);
    CHECK(at::equal(computed_anew(exact, 3), exact));
  }
  const at::Tensor positions = at::arange(40);
  CHECK(computed_anew(positions, 3).is_same(positions));
}

TEST_CASE("tables: half-width sines turn as many elements as angles of that size would") {
  const at::Tensor table = sines(512, frequencies(64, at::kFloat)).to(at::kBFloat16);
  const at::Tensor other = sines(512, written_otherwise(64)[3]).to(at::kBFloat16);
  const auto turned = [&](const at::Tensor& t) { return t.ne(table).to(at::kDouble).mean().item<double>(); };
  const double anew = turned(computed_anew(table, 7));
  CHECK(anew > turned(other));
  CHECK(anew < .1);
  CHECK(distance(computed_anew(table, 7), table) < unit_roundoff(at::kBFloat16));
}

TEST_CASE("tables: shape, strides, dtype and draw") {
  const at::Tensor table = sines(16, frequencies(32, at::kFloat)).t();
  const at::Tensor anew = computed_anew(table, 5);
  CHECK(anew.sizes() == table.sizes());
  CHECK(anew.strides() == table.strides());
  CHECK(at::equal(anew, computed_anew(table, 5)));
  CHECK_FALSE(at::equal(anew, computed_anew(table, 6)));
  const at::Tensor turns = at::polar(at::ones({8, 4}, at::kDouble), at::rand({8, 4}, at::kDouble));
  CHECK(computed_anew(turns, 1).is_complex());
  CHECK(distance(at::view_as_real(computed_anew(turns, 1)), at::view_as_real(turns)) < 8 * unit_roundoff(at::kDouble));
}

}  // namespace
}  // namespace parity
