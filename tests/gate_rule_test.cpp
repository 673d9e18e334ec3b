// The gate's rule: what is within the noise of both runs is never worse; each kind of seeded regression is red.
#include <doctest/doctest.h>

#include <functional>

#include "gate/compare.hpp"
#include "report_sample.hpp"

using namespace parity;

namespace {

constexpr const char* kToday = "2026-06-15";

/// A row of `run`: bitwise equal, its limits as another machine's null makes them.
Report quiet_report() {
  Report r = test::sample_report();
  r.ops.resize(2);
  for (OpResult& op : r.ops) {
    op.limits = {{"bitwise_equal_share", .98, true, "null"},
                 {"rel_l2", 4e-3, false, "null"},
                 {"own_inputs_rel_l2", 6e-3, false, "the op's rounding"}};
    op.free = op.forced;
    op.free->rel_l2 = 1e-3;
    op.predicted_free = 2e-3;
    op.free_oracle = OracleStats{};
    op.free_oracle->candidate_error = 1.7e-3;
  }
  return r;
}

/// What becomes of the first row when the report is changed so.
RowChange changed(const Report& before, const std::function<void(OpResult&)>& change) {
  Report after = before;
  change(after.ops[0]);
  const GateResult result = compare_with(frozen(before, "test", "2026-06-01"), after, kToday);
  for (const RowChange& row : result.rows)
    if (row.key.path == before.ops[0].path) return row;
  return {};
}

Change after(const std::function<void(OpResult&)>& change) { return changed(quiet_report(), change).change; }

}  // namespace

TEST_CASE("gate: the same report again is the same") {
  const Report r = test::sample_report();  // with failures, missing rows and a shape
  const GateResult result = compare_with(frozen(r, "test", "2026-06-01"), r, kToday);
  CHECK(count_of(result, Change::same) == static_cast<int64_t>(r.ops.size()));
  CHECK(exit_status(result) == 0);
}

TEST_CASE("gate: each number made worse by twice its limit is red, whatever the verdict says") {
  CHECK(after([](OpResult& op) { op.forced->rel_l2 = *op.forced->rel_l2 + 2 * 4e-3; }) == Change::worse);
  CHECK(after([](OpResult& op) { op.oracle->candidate_error = *op.oracle->candidate_error + 2 * 4e-3; }) ==
        Change::worse);
  CHECK(after([](OpResult& op) { op.forced->bitwise_equal_share = 1 - 2 * .02; }) == Change::worse);
  CHECK(after([](OpResult& op) { op.logic.rel_l2 = *op.logic.rel_l2 + 2e-12; }) == Change::worse);
  CHECK(after([](OpResult& op) { op.free_oracle->candidate_error = 1.7e-3 + 2 * 6e-3; }) == Change::worse);
  CHECK(after([](OpResult& op) { op.free->rel_l2 = .1; }) == Change::worse);
  CHECK(after([](OpResult& op) { op.forced->special_mismatch = 1; }) == Change::worse);
}

TEST_CASE("gate: a measured limit is held, too") {
  Report r = quiet_report();
  r.ops[0].limits = {{"candidate_error", 4e-3, false, "null", 2e-3}, {"gain", 1e-6, false, "null", 5e-7}};
  const auto so = [&](auto change) { return changed(r, change).change; };
  CHECK(so([](OpResult& op) { op.limits[0].measured = 2e-3 + 2 * 4e-3; }) == Change::worse);
  CHECK(so([](OpResult& op) { op.limits[1].measured = 5e-7 + 2 * 1e-6; }) == Change::worse);
  CHECK(so([](OpResult& op) { op.forced->rel_l2 = 2 * 4e-3; }) ==
        Change::worse);  // not limited itself: both sides' errors
  CHECK(so([](OpResult& op) { op.limits[0].measured = 4e-3; }) == Change::same);
  // A gain above its limit that random signs explain, in a tensor of 768 elements.
  CHECK(so([](OpResult& op) { op.limits[1].measured = 2e-4, op.forced->rel_l2 = 2e-3; }) == Change::same);
  CHECK(so([](OpResult& op) { op.limits[1].measured = 6e-4, op.forced->rel_l2 = 2e-3; }) == Change::worse);
}

TEST_CASE("gate: what the limits' own null explains is not worse, in either run") {
  CHECK(after([](OpResult& op) { op.forced->rel_l2 = .7 * 4e-3; }) == Change::same);
  CHECK(after([](OpResult& op) { op.forced->bitwise_equal_share = 1 - .7 * .02; }) == Change::same);
  CHECK(after([](OpResult& op) { op.free_oracle->candidate_error = 1.7e-3 + .7 * 6e-3; }) == Change::same);
  CHECK(after([](OpResult& op) { op.free->rel_l2 = 8e-3; }) == Change::same);
  // Another machine's kernels move more, and its null says so: the wider of the two decides.
  const auto moved = [](OpResult& op) {
    op.forced->rel_l2 = 6e-3;
    op.limits[1].value = 12e-3;
  };
  CHECK(after(moved) == Change::same);
  Report wide = quiet_report();
  wide.ops[0].limits[1].value = 12e-3;
  CHECK(changed(wide, [](OpResult& op) {
          op.forced->rel_l2 = 6e-3;
          op.limits[1].value = 4e-3;
        }).change == Change::same);
}

TEST_CASE("gate: where every bit is demanded, one that differs is worse") {
  Report r = quiet_report();
  r.ops[0].limits = {{"bitwise_equal_share", 1, true, "table"}, {"rel_l2", 0, false, "table"}};
  CHECK(changed(r, [](OpResult& op) { op.forced->bitwise_equal_share = .999; }).change == Change::worse);
  CHECK(changed(r, [](OpResult& op) { op.forced->rel_l2 = 1e-9; }).change == Change::worse);
}

TEST_CASE("gate: a failing row that gets worse is worse, one that does not is the same") {
  Report r = quiet_report();
  r.ops[0].verdict = Verdict::fail;
  r.ops[0].forced->rel_l2 = .5;
  CHECK(changed(r, [](OpResult& op) { op.forced->rel_l2 = .5 + 2 * 4e-3; }).change == Change::worse);
  CHECK(changed(r, [](OpResult& op) { op.forced->rel_l2 = .5 + .5 * 4e-3; }).change == Change::same);
  r.ops[0].limits.clear();  // failed at its logic: the reference's own rounding is the scale
  CHECK(changed(r, [](OpResult& op) { op.forced->rel_l2 = .52; }).change == Change::worse);
  CHECK(changed(r, [](OpResult& op) { op.forced->rel_l2 = .501; }).change == Change::same);
}

TEST_CASE("gate: verdicts that get worse") {
  for (const Verdict v : {Verdict::fail, Verdict::shape})
    CHECK(after([&](OpResult& op) { op.verdict = v; }) == Change::worse);
  for (const Verdict v : {Verdict::inconclusive, Verdict::untrusted, Verdict::missing})
    CHECK(after([&](OpResult& op) { op.verdict = v; }) == Change::undecided);
  Report open = quiet_report();
  open.ops[0].verdict = Verdict::inconclusive;
  CHECK(changed(open, [](OpResult& op) { op.verdict = Verdict::fail; }).change == Change::worse);
  CHECK(changed(open, [](OpResult& op) { op.verdict = Verdict::pass; }).change == Change::better);
}

TEST_CASE("gate: what is not measured any more is not green") {
  CHECK(after([](OpResult& op) { op.forced.reset(), op.oracle.reset(); }) == Change::undecided);
  CHECK(after([](OpResult& op) { op.free.reset(); }) == Change::undecided);
  CHECK(after([](OpResult& op) { op.logic = {}; }) == Change::undecided);
  CHECK(after([](OpResult& op) { op.forced->rel_l2.reset(); }) == Change::undecided);
}

TEST_CASE("gate: new, vanished and newly paired rows are named apart") {
  const Report before = quiet_report();
  Report now = before;
  now.ops[0].candidate_path = "another";
  now.ops[0].forced->rel_l2 = .5;
  now.ops[1].path = "blocks.0.new";
  const GateResult result = compare_with(frozen(before, "test", "2026-06-01"), now, kToday);
  CHECK(count_of(result, Change::worse) == 0);
  CHECK(count_of(result, Change::paired) == 1);
  CHECK(count_of(result, Change::added) == 1);
  CHECK(count_of(result, Change::vanished) == 1);
  CHECK(exit_status(result) == 3);
  Report more = before;  // a new row that passes, and pairing with a tensor as good, leave it green
  more.ops.push_back(before.ops[0]);
  more.ops[2].path = "blocks.0.new";
  more.ops[1].candidate_path = "another";
  CHECK(exit_status(compare_with(frozen(before, "test", "2026-06-01"), more, kToday)) == 0);
  more.ops[2].verdict = Verdict::fail;
  CHECK(exit_status(compare_with(frozen(before, "test", "2026-06-01"), more, kToday)) == 3);
}

TEST_CASE("gate: rows of one name are told apart by their order") {
  Report r = quiet_report();
  r.ops[1] = r.ops[0];
  r.ops[1].forced->rel_l2 = .5;
  const GateResult result = compare_with(frozen(r, "test", "2026-06-01"), r, kToday);
  CHECK(count_of(result, Change::same) == 2);
}

TEST_CASE("gate: limits wider than the baseline's are said") {
  const Report before = quiet_report();
  Report now = before;
  now.ops[0].limits[1].value = 1;
  const GateResult result = compare_with(frozen(before, "test", "2026-06-01"), now, kToday);
  REQUIRE(result.notes.size() == 1);
  CHECK(result.notes[0].find("wider than the baseline's") != std::string::npos);
  now.ops[0].limits[1].value = 8e-3;
  CHECK(compare_with(frozen(before, "test", "2026-06-01"), now, kToday).notes.empty());
}
