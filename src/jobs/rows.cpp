#include "jobs/rows.hpp"

#include <fmt/format.h>

#include <map>

#include "core/precision.hpp"
#include "measure/concentration.hpp"
#include "measure/spread.hpp"
#include "pair/layout_advice.hpp"
#include "pair/name_map.hpp"

namespace parity {

std::string recorded_dtype(const Program& program) {
  std::map<at::ScalarType, int>
      count;  // of what the ops computed; parameters may be kept wider than the run (autocast)
  for (const Boundary& b : program.boundaries)
    if (at::isFloatingType(b.value.dtype)) ++count[b.value.dtype];
  for (const auto half : {at::kBFloat16, at::kHalf})
    if (count[half] > 0 && count[half] >= count[at::kBFloat16]) return short_dtype_name(half);
  return count[at::kFloat] > 0 || count[at::kDouble] == 0 ? "fp32" : "fp64";
}

OpResult row_of(const Program& program, size_t boundary) {
  const Boundary& b = program.boundaries[boundary];
  OpResult row;
  row.index = static_cast<int64_t>(boundary);
  row.path = b.path;
  row.call = b.call;
  row.kind = b.kind;
  row.shape = b.value.shape;
  row.source = program.source(b.line);
  return row;
}

PairedBy paired_by(const OpResult& row, const std::string& witnesses, double confidence, const Layout& layout,
                   int candidate_call) {
  const std::string steps = layout.text();
  const bool other_call = candidate_call != row.call;
  return {
      witnesses, confidence,
      fmt::format("{}{} = {}{}{}{}", row.path, other_call ? call_text(row.call) : "", row.candidate_path,
                  other_call && candidate_call > 0 ? call_text(candidate_call) : "", steps.empty() ? "" : " ", steps),
      steps, candidate_call};
}

OpResult missing_row(OpResult head, std::string diagnosis) {
  head.verdict = Verdict::missing;
  head.gate = Gate::structure;
  head.diagnosis = std::move(diagnosis);
  return head;
}

void judge_misfit(OpResult& row, const at::Tensor& candidate, const Layout& layout, const at::Tensor& reference) {
  const Fitted fit = layout.fit_reference(candidate);
  row.verdict = Verdict::shape;
  row.gate = Gate::structure;
  row.diagnosis = fit.problem;
  if (!fit.tensor.defined()) return;
  const ShapeAdvice advice =
      layout.as_it_is() ? shape_advice(row.path, reference, row.candidate_path, fit.tensor) : ShapeAdvice{};
  row.read_as = advice.steps;
  row.diagnosis = fmt::format("shape differs: reference {}, candidate {}{}", c10::str(at::IntArrayRef(row.shape)),
                              c10::str(fit.tensor.sizes()), advice.text);
}

void add_spread(OpResult& row, const at::Tensor& reference, const at::Tensor& candidate) {
  const std::optional<Stats>& measured = row.forced ? row.forced : row.free;
  if (!measured || measured->count == 0) return;
  row.histogram = difference_histogram(reference, candidate, *measured);
  if (row.verdict != Verdict::pass) row.worst = worst_elements(reference, candidate);
  if (row.verdict != Verdict::fail) return;
  if (const std::optional<Concentration> where = concentration(reference, candidate))
    row.diagnosis += fmt::format("; {:.0f} % of the squared difference lies in {}", 100 * where->share, where->indices);
}

}  // namespace parity
