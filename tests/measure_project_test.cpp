// Projections against the definitions of measure/evidence.hpp, written with whole tensors.
#include <doctest/doctest.h>

#include <cmath>

#include "core/error.hpp"
#include "measure/local.hpp"
#include "measure_numbers.hpp"

namespace parity::numbers {
namespace {

struct Expected {
  double amplitude, z, explained, correlation, size, elements;
};

Expected by_definition(const at::Tensor& d, const at::Tensor& g, double norm) {
  const auto sum = [](const at::Tensor& t) { return t.sum().item<double>(); };
  const double dg = sum(d * g), gg = sum(g * g), dd = sum(d * d), left = sum((d - g).square());
  return {dg / gg,
          dg / std::sqrt(sum((d * g).square())),
          1 - left / dd,
          dg / std::sqrt(dd * gg),
          std::sqrt(gg) / norm,
          dd * dd / sum(d.square().square())};
}

void check_projection(const Projection& p, const Expected& e) {
  CHECK(p.amplitude == doctest::Approx(e.amplitude));
  CHECK(p.z == doctest::Approx(e.z));
  CHECK(p.explained == doctest::Approx(e.explained));
  CHECK(p.correlation == doctest::Approx(e.correlation));
  CHECK(p.size == doctest::Approx(e.size));
  CHECK(p.elements == doctest::Approx(e.elements));
}

}  // namespace

TEST_CASE("project: the definitions, for every dtype and rows longer than a block") {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    CAPTURE(dtype);
    const at::Tensor base = random({5, 3001}, 1, dtype), value = base + .1 * random({5, 3001}, 2, dtype),
                     direction = random({5, 3001}, 3, dtype) + .5 * (value - base);
    const at::Tensor d = value.to(at::kDouble) - base.to(at::kDouble), g = direction.to(at::kDouble);
    check_projection(project(d, g, 3), by_definition(d, g, 3));
    check_projection(project({value, base}, direction, 3), by_definition(d, g, 3));
    check_projection(project({value, base}, base, 3), by_definition(d, base.to(at::kDouble), 3));
    CHECK(project({value, base}, direction, 3).z_rows == project(d, g, 3).z_rows);
  }
}

TEST_CASE("project: transposed, complex and non-finite values, other shapes are an error") {
  const at::Tensor base = random({40, 30}, 4).t(), value = base + random({40, 30}, 5).t();
  check_projection(project({value, base}, base, 1), by_definition(value - base, base, 1));
  const at::Tensor z = at::complex(base.contiguous(), value.contiguous()), w = z * 1.5;
  CHECK(project({w, z}, z, 1).amplitude == doctest::Approx(.5));
  at::Tensor holed = value.clone();
  holed[3][3] = kInf;
  const at::Tensor rest = (holed - base).nan_to_num(0, 0, 0);
  CHECK(project({holed, base}, base, 1).amplitude == doctest::Approx(by_definition(rest, base, 1).amplitude));
  CHECK_THROWS_AS(project({value, base}, base.t(), 1), Error);
  CHECK_THROWS_AS(project({value, base.t()}, base.t(), 1), Error);
}

TEST_CASE("project: do difference and direction lie in the same rows?") {
  at::manual_seed(3);
  const at::Tensor all = at::randn({200, 64}), other = at::randn({200, 64});
  at::Tensor half = other.clone();
  half.slice(0, 100).zero_();
  CHECK(project(all, all, 1).rows_alike == doctest::Approx(1));
  CHECK(project(all, other, 1).rows_alike > .97);
  CHECK(project(half, all, 1).rows_alike == doctest::Approx(std::sqrt(.5)).epsilon(.02));
  CHECK(project(half, (other - half), 1).rows_alike == 0);
}

TEST_CASE("towards zero: of what differs, the share that is smaller") {
  CHECK(share_towards_zero(tensor({1, -2, 3, 4}), tensor({1, -1, 4, 3.5})) == doctest::Approx(2. / 3));
  CHECK(share_towards_zero(tensor({1, 2}), tensor({1, 2})) == 0);
  const at::Tensor r = random({70000}, 6, at::kFloat), c = r + .1 * random({70000}, 7, at::kFloat);
  const double differ = r.ne(c).sum().item<double>();
  CHECK(share_towards_zero(r, c) == doctest::Approx(c.abs().lt(r.abs()).sum().item<double>() / differ));
}

TEST_CASE("project: numbers that whole parts are off by are counted as such, and are a standard normal of chance") {
  constexpr int kParts = 8, kDraws = 400;
  int beyond = 0, beyond_by_elements = 0;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const at::Tensor values = random({kParts, 20, 30}, 3 * draw), factors = random({kParts, 1, 1}, 3 * draw + 1);
    const at::Tensor sizes = random({kParts, 1, 1}, 3 * draw + 2).exp();  // of the direction, part by part
    const Projection p = project(values * factors, values * sizes, 1, {}, kParts);
    beyond += std::abs(p.z_rows) > 1.96;
    beyond_by_elements += std::abs(p.z) > 1.96;
    CHECK(p.elements <= kParts);
    CHECK(project(values * sizes * .01 + .001 * values * factors, values * sizes, 1, {}, kParts).z_rows > 1.96);
  }
  CHECK(beyond == doctest::Approx(.05 * kDraws).epsilon(.6));  // 20, standard deviation 4.4
  CHECK(beyond_by_elements > .8 * kDraws);
}

}  // namespace parity::numbers
