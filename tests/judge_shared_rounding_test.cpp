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

namespace {

// A norm's value in fp16, off by less than its limit; `unequal` of its elements differ.
Evidence half_evidence(int64_t count, double unequal) {
  Evidence e;
  e.reference_dtype = e.candidate_dtype = at::kHalf;
  e.scale = 1, e.error = 2.8e-4, e.recorded_error = 2e-4, e.null_error = 2.8e-4, e.unequal = unequal;
  e.forced.count = count, e.forced.difference_norm = 1e-4, e.forced.rel_l2 = 1e-4;
  e.forced.bitwise_equal_share = 1 - unequal, e.forced.max_ulp = 1;
  return e;
}

Verdict verdict_of(const Evidence& evidence, const std::vector<Finding>& findings, bool rounds_inside = false) {
  OpResult row;
  row.forced = evidence.forced;
  Segment segment;
  segment.arithmetic = true;
  segment.rounds_inside = rounds_inside;
  judge_port(row, evidence, segment, findings, Thresholds());
  return row.verdict;
}

}  // namespace

TEST_CASE("judge: a change is not known by so few elements next to a tie that other arithmetic brings over, too") {
  Finding eps{"norm eps", "eps 1e-06 -> 1e-12", "", Gate::logic};
  eps.fit.amplitude = eps.fit.explained = eps.fit.correlation = 1;
  eps.fit.size = 7.7e-5, eps.rest = 0;
  for (const double elements : {2., 5., 10., 40.}) {
    CAPTURE(elements);
    eps.fit.elements = elements;
    eps.fit.z = eps.fit.z_rows = std::sqrt(elements);
    CHECK(verdict_of(half_evidence(4096, elements / 4096), {eps}) == (elements < 15 ? Verdict::pass : Verdict::fail));
  }
}

TEST_CASE("judge: a formula in other words, as far as valid arithmetics lie that way, is no change") {
  Evidence e = half_evidence(4096, .2);
  e.reference_dtype = e.candidate_dtype = at::kFloat;
  e.error = e.recorded_error = e.null_error = e.forced.difference_norm = 7.5e-8;
  Finding none{"residual missing", "second term left out", "", Gate::logic};  // the first is constant, q and k are 0
  none.fit.amplitude = none.fit.explained = none.fit.correlation = 1;
  none.fit.size = 7.5e-8, none.fit.elements = 800, none.fit.z = none.fit.z_rows = 8, none.rest = 0;
  CHECK(verdict_of(e, {none}) == Verdict::fail);
  none.null_amplitude = .998;
  CHECK(verdict_of(e, {none}) == Verdict::pass);
}

TEST_CASE("judge: one rounding before a product changes a row of it") {
  Evidence token = half_evidence(64, .2), one_of_many = half_evidence(64 * 24, .04), all = half_evidence(64 * 24, .07);
  token.fullest_row = .2, one_of_many.fullest_row = .03, all.fullest_row = .07 / 24;
  for (const Evidence& evidence : {token, one_of_many, all}) CHECK(verdict_of(evidence, {}) == Verdict::fail);
  CHECK(verdict_of(token, {}, true) == Verdict::pass);
  CHECK(verdict_of(one_of_many, {}, true) == Verdict::pass);
  CHECK(verdict_of(all, {}, true) == Verdict::fail);
}

}  // namespace parity
