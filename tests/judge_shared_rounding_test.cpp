// A rounding that every valid arithmetic has and the oracle has not: a time of 713 in bf16 is 712, and its sines lie
// far from the exact time's. How far valid arithmetics lie from one another says then what is near.
#include <ATen/ATen.h>

#include <doctest/doctest.h>

#include "judge/error_limit.hpp"
#include "judged_evidence.hpp"
#include "measure/local.hpp"

namespace parity {
namespace {

// sin(712 f) recorded, sin(713 f) in the oracle; arithmetics whose angles are some roundings off.
struct Times {
  at::Tensor frequencies = at::exp(at::arange(256, at::kDouble) * (-9.21 / 256));  // [256]

  at::Tensor sines(double time) const { return (time * frequencies).sin().to(at::kFloat); }

  OpResult judged(const at::Tensor& candidate) const {
    const at::Tensor oracle = (713 * frequencies).sin();
    const Evidence e =
        measure_local({candidate, oracle, sines(712), {sines(712 * (1 + 1e-7)), sines(712 * (1 - 1e-7))}});
    CHECK(e.null_error > .1);
    CHECK(e.null_apart < .01);
    return testing::judged_evidence(e);
  }
};

}  // namespace

TEST_CASE("judge: beside a rounding that valid arithmetics share, near is what they lie from one another") {
  const Times times;
  CHECK(times.judged(times.sines(712)).verdict == Verdict::pass);
  CHECK(times.judged(times.sines(712 * (1 + 2e-7))).verdict == Verdict::pass);
  CHECK(times.judged(times.sines(712 * (1 + 1e-6))).verdict == Verdict::inconclusive);
  CHECK(times.judged(times.sines(712.5)).verdict == Verdict::inconclusive);
}

TEST_CASE("judge: where valid arithmetics lie far from one another, nothing is near but a sum's rounding") {
  const at::Tensor recorded = at::arange(1, 257, at::kFloat), oracle = recorded.to(at::kDouble);
  const Evidence far = measure_local({recorded * 1.1, oracle, recorded, {recorded * 1.2}});
  CHECK(far.null_apart == doctest::Approx(.2));
  const Thresholds limits;
  CHECK(near_recorded(far, Segment(), limits) < 1e-6);
  const Evidence close = measure_local({recorded, oracle, recorded, {recorded * (1 + 1e-6)}});
  CHECK(close.null_apart == 0);  // the oracle says it
}

}  // namespace parity
