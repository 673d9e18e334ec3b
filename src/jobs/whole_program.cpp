#include "jobs/whole_program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/precision_gain.hpp"
#include "measure/measure.hpp"
#include "trace/lanes.hpp"

namespace parity {
namespace {

constexpr size_t kSteps = 8;  // more ops kept wide than these nobody tries by hand

// The last call's result.
const OpResult* result_row(const Program& program, const std::vector<OpResult>& rows) {
  const OpResult* last = nullptr;
  for (const OpResult& row : rows)
    if (row.free && row.free->rel_l2 && program.is_result(static_cast<size_t>(row.index))) last = &row;
  return last;
}

double furthest_valid(const Dump& dump, const Program& program, size_t root) {
  std::vector<ReplayOptions> lanes;
  for (const Arithmetic a :
       {Arithmetic::kernel, Arithmetic::exact, Arithmetic::reordered, Arithmetic::split, Arithmetic::blocked,
        Arithmetic::pairwise, Arithmetic::interleaved, Arithmetic::transposed})
    lanes.emplace_back().arithmetic = a;
  double furthest = 0;
  replay_in_step(dump, program, lanes, [&](const BoundaryEvent& event) -> Replacements {
    if (event.boundary == root)
      for (size_t l = 1; l < lanes.size(); ++l)
        furthest = std::max(furthest, measure_sums(event.computed[0], event.computed[l]).rel_l2.value_or(0));
    return {};
  });
  return furthest;
}

}  // namespace

std::optional<WholeProgram> whole_program(const Dump& dump, const Program& program, const std::vector<OpResult>& rows,
                                          double asked, const std::function<void(double)>& progress) {
  const bool wrong = std::any_of(rows.begin(), rows.end(), [](const OpResult& row) {
    return row.verdict == Verdict::fail || row.verdict == Verdict::shape;
  });
  const OpResult* result = result_row(program, rows);
  if (wrong || result == nullptr || *result->free->rel_l2 <= asked) return std::nullopt;
  const auto root = static_cast<size_t>(result->index);
  WholeProgram whole;
  whole.asked = asked;
  whole.error = *result->free->rel_l2;
  whole.valid_error = furthest_valid(dump, program, root);
  PrecisionGain gain = precision_gain(dump, program, root, kSteps, progress);
  whole.precision = gain.error;
  whole.explained = gain.explained;
  whole.roundings = gain.roundings;
  whole.steps = std::move(gain.steps);
  return whole;
}

OpResult whole_program_row(const WholeProgram& whole) {
  const bool attainable = whole.valid_error < whole.error;
  OpResult row;
  row.path = "(whole program)";
  row.kind = "whole program";
  row.verdict = attainable ? Verdict::fail : Verdict::inconclusive;
  row.gate = attainable ? Gate::propagation : Gate::none;
  row.diagnosis = fmt::format(
      "no op is wrong: each is right on its own inputs, and the result differs by {:.2g} where at most {:.2g} was "
      "asked. Valid arithmetics move the reference's own result by up to {:.2g}{}",
      whole.error, whole.asked, whole.valid_error,
      attainable ? "" : ": with the same casts no implementation can be relied on to be nearer");
  row.limits.push_back({"free_rel_l2", whole.asked, false, "asked by --max-free", whole.error});
  return row;
}

}  // namespace parity
