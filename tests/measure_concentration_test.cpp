#include <doctest/doctest.h>

#include "core/error.hpp"
#include "measure/concentration.hpp"

namespace parity {
namespace {

at::Tensor values(at::IntArrayRef shape) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(7), at::kFloat);
}

std::string where(const at::Tensor& reference, const at::Tensor& candidate) {
  const auto found = concentration(reference, candidate);
  return found ? found->indices : "spread";
}

}  // namespace

TEST_CASE("concentration: one token, some channels, one sample") {
  const at::Tensor r = values({2, 12, 64});
  at::Tensor c = r.clone();
  c.select(1, 11).add_(.1);
  CHECK(where(r, c) == "[:, 11]");
  CHECK(concentration(r, c)->share == doctest::Approx(.99));
  c = r.clone();
  c.narrow(2, 32, 32).mul_(1.5);
  CHECK(where(r, c) == "[:, :, 32:]");
  c = r.clone();
  c.narrow(2, 16, 16).mul_(1.5);
  CHECK(where(r, c) == "[:, :, 16:32]");
  c = r.clone();
  c.slice(2, 1, 64, 2).mul_(1.5);
  CHECK(where(r, c) == "[:, :, 1::2]");
  c = r.clone();
  c.select(0, 1).select(0, 3).add_(1);
  CHECK(where(r, c) == "[1, 3]");
  CHECK(concentration(r, c)->share == doctest::Approx(.98));
  c = r.clone();
  for (const int64_t token : {0, 5, 9}) c.select(1, token).add_(1);
  CHECK(where(r, c) == "[:, [0, 5, 9]]");
  for (const int64_t token : {1, 7}) c.select(1, token).add_(1);
  CHECK(where(r, c) == "[:, [0, 1, 5, 7, …]]");
}

TEST_CASE("concentration: what is spread, equal or has no axes has none") {
  const at::Tensor r = values({2, 12, 64});
  CHECK(where(r, r) == "spread");
  CHECK(where(r, r * 1.01) == "spread");
  CHECK(where(r, r + .1 * values({2, 12, 64})) == "spread");
  at::Tensor large = r.clone();
  large.select(2, 5).mul_(1000);  // as wrong as all the others
  CHECK(where(large, large * 1.01) == "spread");
  CHECK(where(at::tensor(1.F), at::tensor(2.F)) == "spread");
  CHECK(where(at::empty({0, 3}), at::empty({0, 3})) == "spread");
  CHECK_THROWS_AS(concentration(r, r.select(0, 0)), Error);
}

TEST_CASE("concentration: every dtype, layouts, and parts that are taken one after the other") {
  at::Tensor r = at::arange(24, at::kLong).reshape({4, 6}), c = r.clone();
  c.select(1, 2).add_(3);
  CHECK(where(r, c) == "[:, 2]");
  CHECK(where(r.to(at::kBFloat16), c.to(at::kBFloat16)) == "[:, 2]");
  CHECK(where(r.t(), c.t()) == "[2]");
  CHECK(where(at::complex(r.to(at::kFloat), r.to(at::kFloat)), at::complex(r.to(at::kFloat), c.to(at::kFloat))) ==
        "[:, 2]");
  c[1][2] = 1000;
  at::Tensor nan = r.to(at::kFloat);
  nan[0][0] = std::nan("");
  CHECK(where(nan, c.to(at::kFloat)) == "[1, 2]");
  const at::Tensor large = values({3, 3000, 1024});
  at::Tensor other = large.clone();
  other.select(1, 2999).add_(1);
  CHECK(where(large, other) == "[:, 2999]");
  CHECK(where(large, large + .1 * values({3, 3000, 1024})) == "spread");
  other = large.clone();
  other.slice(2, 0, 1024, 2).mul_(1.5);
  CHECK(where(large, other) == "[:, :, ::2]");
  other = large.clone();
  other[2][17][5] += 1;  // one that no sample need meet
  CHECK(where(large, other) == "[2, 17, 5]");
}

}  // namespace parity
