// Two changes that no size shows: values rounded to a half-width format where valid arithmetics lie far apart, and a
// small gain in a small tensor in half width.
#include <ATen/ATen.h>

#include <doctest/doctest.h>

#include <functional>

#include "judged_evidence.hpp"
#include "measure/local.hpp"
#include "recording_file.hpp"

namespace parity {
namespace {

OpResult judged(const LocalValues& values) { return testing::judged_evidence(measure_local(values)); }

at::Tensor drawn(at::IntArrayRef shape, uint64_t seed = 3) {
  at::manual_seed(seed);
  return at::randn(shape);
}

at::Tensor through(const at::Tensor& values, at::ScalarType dtype) { return values.to(dtype).to(at::kFloat); }

// Sines of angles that an arithmetic computes a thousandth off: what they are to a thousandth says nothing.
LocalValues far_apart(const std::function<at::Tensor(const at::Tensor&)>& port) {
  const at::Tensor right = drawn({40, 24}), other = right * (1 + 1e-3 * drawn({40, 24}).sin());
  return {port(right * (1 + 5e-4 * drawn({40, 24}).cos())), right.to(at::kDouble), right, {other}};
}

}  // namespace

TEST_CASE("judge: values that are all a narrower format's were rounded to it, however wide the null") {
  CHECK(judged(far_apart([](const at::Tensor& t) { return t; })).verdict == Verdict::pass);
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    const OpResult row = judged(far_apart([&](const at::Tensor& t) { return through(t * .25, dtype) * 4; }));
    CHECK(row.verdict == Verdict::fail);
    CHECK(row.gate == Gate::dtype_path);
    CHECK(testing::contains(row.diagnosis, dtype == at::kHalf ? "all float16's" : "all bfloat16's"));
  }
  // all but one
  CHECK(judged(far_apart([](const at::Tensor& t) {
          at::Tensor rounded = through(t, at::kHalf);
          rounded[39][23] = t[39][23];
          return rounded;
        })).verdict == Verdict::pass);
}

TEST_CASE("measure: a half-width format that holds a candidate's values, and what speaks for a rounding to it") {
  const at::Tensor values = drawn({64, 8});
  CHECK_FALSE(held_by_half(values, values));
  const auto half = held_by_half(values, through(values, at::kHalf));
  REQUIRE(half);
  CHECK((half->dtype == at::kHalf));
  CHECK(half->witnesses > 200);
  CHECK((held_by_half(values, through(values, at::kBFloat16))->dtype == at::kBFloat16));
  // the reference's own numbers: none is between two of the format's
  const at::Tensor own = through(values, at::kHalf);
  CHECK(held_by_half(own, own)->witnesses == 0);
  CHECK(held_by_half(own * (1 + 1e-6), own)->witnesses == 0);
  // few different numbers say nothing: a mask, a dead branch
  CHECK(held_by_half(values, at::zeros_like(values))->witnesses <= 1);
  CHECK(held_by_half(values, values.sign())->witnesses == 1);
  // what a half-width format does not hold
  CHECK_FALSE(held_by_half(values, through(values, at::kHalf) * 3e5));
  CHECK_FALSE(held_by_half(values.to(at::kDouble), values.to(at::kDouble)));
}

TEST_CASE("judge: a gain of a thousandth in a small tensor in bf16 is found, flips of its size at random are not") {
  const at::Tensor exact = drawn({40, 20}), bf16 = exact.to(at::kBFloat16);
  const auto at_random = [&](uint64_t seed) { return (exact * (1 + 1e-3 * drawn({40, 20}, seed))).to(at::kBFloat16); };
  const auto port = [&](const at::Tensor& values) {
    return judged({values.to(at::kBFloat16), exact.to(at::kDouble), bf16, {at_random(4), at_random(5)}});
  };
  CHECK(port(at_random(6)).verdict == Verdict::pass);
  // The rows' z is 6.7 weighed and 5.97 plain; 6 is asked for.
  const OpResult row = port(exact * 1.001);
  INFO(row.diagnosis);
  CHECK(row.verdict == Verdict::fail);
  CHECK(testing::contains(row.diagnosis, "gain"));
}

}  // namespace parity
