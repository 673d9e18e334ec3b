#include "jobs/other_selections.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace parity {
namespace {

bool selected_by(const OtherSelection& s, const std::vector<int64_t>& reference,
                 const std::vector<int64_t>& candidate) {
  return std::equal(reference.begin(), reference.end(), candidate.begin(), candidate.end(),
                    [&](int64_t r, int64_t c) { return r == c || (r == s.recorded && c == s.selected); });
}

// Integers that index give as many rows as there are of them, and those may have been selected otherwise.
bool takes_rows(const Op& op) {
  return op.opaque == kDataDependent || op.kind == "index" || op.kind == "masked_select";
}

}  // namespace

OtherSelections::OtherSelections(const Program& program, const std::vector<Segment>& segments,
                                 const std::vector<std::vector<size_t>>& ancestors,
                                 const std::vector<OtherSelection>& found)
    : program_(program), segments_(segments), ancestors_(ancestors) {
  for (const OtherSelection& s : found) by_op_[s.op] = &s;
}

// Those between the compared values before it and this one, and what an excused value before it was excused with.
std::vector<const OtherSelection*> OtherSelections::behind(size_t boundary) const {
  std::vector<const OtherSelection*> found;
  for (const size_t op : segments_[boundary].ops)
    if (const auto s = by_op_.find(op); s != by_op_.end()) found.push_back(s->second);
  for (const size_t before : ancestors_[boundary])
    if (const auto s = excused_.find(before); s != excused_.end()) found.push_back(s->second);
  return found;
}

// Of rows selected otherwise a mask takes some: how many of them, no recording of the reference says.
const OtherSelection* OtherSelections::selected_again(const OpResult& row, const std::vector<int64_t>& candidate) {
  const auto boundary = static_cast<size_t>(row.index);
  const auto otherwise = [&](size_t before) { return excused_.contains(before); };
  if (row.verdict != Verdict::shape || row.shape.size() != candidate.size() ||
      std::none_of(ancestors_[boundary].begin(), ancestors_[boundary].end(), otherwise))
    return nullptr;
  const auto axis = std::mismatch(row.shape.begin(), row.shape.end(), candidate.begin());
  if (!std::equal(axis.first + 1, row.shape.end(), axis.second + 1)) return nullptr;
  for (const size_t op : segments_[boundary].ops)
    if (takes_rows(program_.ops[op])) return &again_.emplace_back(OtherSelection{op, *axis.first, *axis.second});
  return nullptr;
}

bool OtherSelections::concerns(const OpResult& row) const {
  if (by_op_.empty() || (row.verdict != Verdict::fail && row.verdict != Verdict::shape)) return false;
  return row.index >= 0 && static_cast<size_t>(row.index) < segments_.size() &&
         !behind(static_cast<size_t>(row.index)).empty();
}

void OtherSelections::excuse(OpResult& row, const std::vector<int64_t>& candidate_shape) {
  const auto boundary = static_cast<size_t>(row.index);
  const std::vector<const OtherSelection*> all = behind(boundary);
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const auto* s) { return selected_by(*s, row.shape, candidate_shape); });
  const OtherSelection* selection = it == all.end() ? selected_again(row, candidate_shape) : *it;
  if (selection == nullptr) return;
  if (row.verdict == Verdict::shape) excused_[boundary] = selection;
  row.verdict = Verdict::inconclusive;
  row.gate = Gate::none;
  row.diagnosis = fmt::format(
      "{} selects {} rows on the candidate's own values, {} in the recording: a decision before it (a tie of a "
      "router's "
      "scores) fell otherwise, and what is computed from it cannot be compared; give both sides the same routing, or "
      "compare in fp32",
      program_.ops[selection->op].path, selection->selected, selection->recorded);
}

}  // namespace parity
