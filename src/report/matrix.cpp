#include "report/matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "report/limit_use.hpp"
#include "report/summary.hpp"

namespace parity {
namespace {

using Number = std::optional<double>;

// Of the shares of elements, by their numbers.
struct Tally {
  Cell cell;
  double equal = 0, elements = 0;
  const OpResult* last = nullptr;

  void add(const OpResult& op) {
    ++cell.count;
    ++cell.verdicts[op.verdict];
    if (op.forced && op.forced->bitwise_equal_share) {
      elements += static_cast<double>(op.forced->count);
      equal += *op.forced->bitwise_equal_share * static_cast<double>(op.forced->count);
    }
    if (op.forced && op.forced->rel_l2) cell.worst_forced = std::max(cell.worst_forced.value_or(0), *op.forced->rel_l2);
    if (op.free && (last == nullptr || op.index >= last->index)) last = &op;
    judge(op);
  }

  void judge(const OpResult& op) {
    const Number share = share_of_limits(op);
    const bool red = is_failure(op), before = cell.worst != nullptr && is_failure(*cell.worst);
    if (cell.worst != nullptr && (before > red || (before == red && share.value_or(-1) <= cell.of_limit.value_or(-1))))
      return;
    if (!share && !red) return;
    cell.worst = &op;
    cell.of_limit = share;
  }

  Cell finished() {
    if (elements > 0) cell.equal_share = equal / elements;
    if (last != nullptr) cell.free_output = last->free->rel_l2;
    return std::move(cell);
  }
};

void keep_largest(Number& kept, const Number& other) {
  if (other && (!kept || *other > *kept)) kept = other;
}

bool worse(const Cell& a, const Cell& b) {
  const bool red = a.worst != nullptr && is_failure(*a.worst), other = b.worst != nullptr && is_failure(*b.worst);
  return red != other ? red : a.of_limit.value_or(-1) > b.of_limit.value_or(-1);
}

void merge(Cell& into, const Cell& from) {
  into.dtype += " " + from.dtype;
  into.count += from.count;
  for (const auto& [verdict, n] : from.verdicts) into.verdicts[verdict] += n;
  if (worse(from, into)) into.worst = from.worst, into.of_limit = from.of_limit;
  if (from.equal_share && (!into.equal_share || *from.equal_share < *into.equal_share))
    into.equal_share = from.equal_share;
  keep_largest(into.free_output, from.free_output);
  keep_largest(into.worst_forced, from.worst_forced);
}

}  // namespace

std::vector<Cell> matrix(const Report& report) {
  std::vector<Tally> tallies;
  for (const OpResult& op : report.ops) {
    const std::string name = recording_name(report, op.reference);
    auto found = std::find_if(tallies.begin(), tallies.end(),
                              [&](const Tally& t) { return t.cell.recording == name && t.cell.dtype == op.dtype; });
    if (found == tallies.end()) {
      found = tallies.insert(tallies.end(), Tally{});
      found->cell.recording = name;
      found->cell.dtype = op.dtype;
    }
    found->add(op);
  }
  std::vector<Cell> out;
  for (Tally& t : tallies) out.push_back(t.finished());
  return out;
}

std::vector<Cell> matrix_by_recording(const Report& report) {
  std::vector<Cell> out;
  for (const Cell& cell : matrix(report)) {
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const Cell& c) { return c.recording == cell.recording; });
    if (same == out.end())
      out.push_back(cell);
    else
      merge(*same, cell);
  }
  return out;
}

const Cell* worst_cell(const std::vector<Cell>& cells) {
  const Cell* out = nullptr;
  for (const Cell& cell : cells)
    if (out == nullptr || worse(cell, *out)) out = &cell;
  return out;
}

std::string of_limit_text(const Cell& cell) {
  if (!cell.of_limit) return "";
  if (*cell.of_limit == 0) return "exact";
  return std::isfinite(*cell.of_limit) ? fmt::format("{:.2g} of its limit", *cell.of_limit) : "must be exact";
}

std::string recording_name(const Report& report, const std::string& reference) {
  if (!reference.empty()) return reference;
  const std::string stem = std::filesystem::path(report.reference.path).stem().string();
  return stem.empty() ? "recording" : stem;
}

const Coverage* coverage_of_recording(const Report& report, const std::string& reference) {
  for (const std::string& name : {reference, recording_name(report, reference)})
    if (const auto found = report.coverage.find(name); found != report.coverage.end()) return &found->second;
  return nullptr;
}

}  // namespace parity
