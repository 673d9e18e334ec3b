// The main job's judges alone: numbers in, verdict out.
#include <doctest/doctest.h>

#include <cmath>

#include "judge/model.hpp"
#include "judge/model_limits.hpp"
#include "judge/propagation.hpp"

using namespace parity;

namespace {

constexpr double kUnit = 0x1p-24;

Stats stats_of_row(double rel_l2, double equal_share, int64_t count = 4096) {
  Stats s;
  s.count = count;
  s.rel_l2 = rel_l2;
  s.bitwise_equal_share = equal_share;
  s.reference_norm = 1;
  s.difference_norm = rel_l2;
  return s;
}

OpResult row_on_other_kernels(double rel_l2, double equal_share, const NullRun& null) {
  OpResult row;
  row.kind = "linear";
  row.forced = stats_of_row(rel_l2, equal_share);
  JudgeInput in;
  in.same_machine = stats_of_row(0, 1);
  in.null = null;
  judge_local(row, in);
  return row;
}

const Limit* share_limit(const OpResult& row) {
  for (const Limit& limit : row.limits)
    if (limit.statistic == "bitwise_equal_share") return &limit;
  return nullptr;
}

OpResult free_row(double own, double rounding, int64_t count = 4096, bool fp64 = false) {
  OpResult row;
  row.verdict = Verdict::pass;
  row.forced = row.free = stats_of_row(1e-6, .5, count);
  row.oracle = OracleStats{1., 0., rounding, rounding};
  row.amplification = 1;
  PropagationInput in;
  in.is_fp64 = fp64;
  in.unit = kUnit;
  in.largest_input_error = 1e-7;
  in.own = stats_of_row(own, .5, count);
  judge_propagation(row, in);
  return row;
}

}  // namespace

TEST_CASE("judge: a limit on the share of equal elements says something or is left out, and is never negative") {
  const OpResult narrow = row_on_other_kernels(1e-7, .9, {.95, 1e-7, 3});
  REQUIRE(share_limit(narrow) != nullptr);
  CHECK(share_limit(narrow)->value == doctest::Approx(.9));
  CHECK(narrow.verdict == Verdict::pass);
  CHECK(row_on_other_kernels(1e-7, .8, {.95, 1e-7, 3}).verdict == Verdict::fail);

  const OpResult wide = row_on_other_kernels(1e-7, .04, {.045, 1e-7, 3});  // fp32 sums of another kernel
  CHECK(share_limit(wide) == nullptr);
  CHECK(wide.verdict == Verdict::pass);
  CHECK(row_on_other_kernels(1e-3, .04, {.045, 1e-7, 3}).verdict == Verdict::fail);  // the norm decides
  for (double share = 0; share <= 1; share += .05) {
    const OpResult row = row_on_other_kernels(1e-7, share, {share, 1e-7, 3});
    for (const Limit& limit : row.limits) CHECK(limit.value >= 0);
  }
}

TEST_CASE("judge: recorded bits pass on every machine, other bits only where this machine's replay has them") {
  const auto copy_on_another_machine = [](double recorded_share, double replay_share) {
    OpResult row;
    row.kind = "copy";
    row.forced = stats_of_row(recorded_share == 1 ? 0 : 1e-7, recorded_share);
    JudgeInput in;
    in.same_machine = stats_of_row(replay_share == 1 ? 0 : 1e-7, replay_share);
    in.null = {replay_share, 1e-7, 3};
    judge_local(row, in);
    return row.verdict;
  };
  CHECK(copy_on_another_machine(1, .4) == Verdict::pass);  // top-k of a router's logits, recorded on another CPU
  CHECK(copy_on_another_machine(.4, .4) == Verdict::fail);
  CHECK(copy_on_another_machine(.9, 1) == Verdict::fail);
}

TEST_CASE("judge: the free run is held to the op's own rounding, wherever it falls") {
  const double rounding = 4e-8;
  CHECK(free_row(1.9 * rounding, rounding).verdict == Verdict::pass);
  CHECK(free_row(kUnit, 0).verdict == Verdict::pass);  // exact on the reference's inputs, rounded on its own
  const OpResult open = free_row(5 * rounding, rounding), red = free_row(40 * rounding, rounding);
  CHECK(open.verdict == Verdict::inconclusive);
  CHECK(red.verdict == Verdict::fail);
  for (const OpResult& row : {open, red}) {
    CHECK(row.gate == Gate::propagation);
    CHECK(row.diagnosis.find("state is carried") != std::string::npos);
    CHECK(row.limits.back().value == doctest::Approx(2 * rounding + kUnit));
    CHECK(row.free_oracle->candidate_error.has_value());
  }
  CHECK(*red.predicted_free == doctest::Approx(std::sqrt(1e-14 + 2 * rounding * rounding)));
  CHECK(free_row(3 * rounding, rounding, 4).verdict ==
        Verdict::pass);  // rms of four numbers: anything within a factor 12
}

TEST_CASE("judge: in fp64 the free run is held to the logic limit") {
  CHECK(free_row(9e-13, 0, 4096, true).verdict == Verdict::pass);
  CHECK(free_row(2e-12, 0, 4096, true).verdict == Verdict::fail);
}

TEST_CASE("judge: NaN that the free run alone makes fails") {
  OpResult row;
  row.verdict = Verdict::pass;
  row.free = stats_of_row(0, 1);
  PropagationInput in;
  in.own = stats_of_row(0, .9);
  in.own->special_mismatch = 1;
  judge_propagation(row, in);
  CHECK(row.verdict == Verdict::fail);
}

TEST_CASE("judge: the factor on a rounding widens for few elements alone") {
  const double floor = model_limits().own_rounding_factor.value;
  CHECK(rounding_factor(1) == doctest::Approx(std::exp(5)));
  CHECK(rounding_factor(25) == doctest::Approx(std::exp(1)));
  CHECK(rounding_factor(1 << 20) == floor);
  CHECK(rounding_factor(0) == rounding_factor(1));
}
