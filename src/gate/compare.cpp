#include "gate/compare.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gate/limits.hpp"

namespace parity {
namespace {

/// 0 pass, 1 not decided, 2 failed.
int rank_of(Verdict v) { return v == Verdict::pass ? 0 : v == Verdict::fail || v == Verdict::shape ? 2 : 1; }

/// How far from its band in units of the noise: above 0 is worse, -1 as it was, below -2 better.
double excess(const NumberChange& n) {
  if (n.noise > 0) return (n.now - n.allowed) / n.noise;
  return n.now > n.allowed ? INFINITY : n.now < n.was ? -INFINITY : -1;
}

const Acceptance* acceptance_of(const ClassBaseline& baseline, const RowKey& key) {
  const Acceptance* latest = nullptr;
  for (const Acceptance& a : baseline.accepted)
    if (a.key == key && (latest == nullptr || latest->until <= a.until)) latest = &a;
  return latest;
}

std::vector<NumberChange> changes_of(const BaselineRow& was, const std::map<std::string, GateNumber>& now,
                                     const Acceptance* accepted) {
  std::vector<NumberChange> out;
  for (const auto& [name, number] : now) {
    const auto found = was.numbers.find(name);
    if (found == was.numbers.end()) continue;  // no limit then: nothing was promised
    NumberChange n{name, found->second.value, number.value, std::max(found->second.noise, number.noise), 0};
    double from = n.was;
    if (accepted != nullptr)
      if (const auto loosened = accepted->numbers.find(name); loosened != accepted->numbers.end())
        from = std::max(from, loosened->second);
    n.allowed = from + n.noise;
    out.push_back(n);
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return excess(a) > excess(b); });
  return out;
}

bool any_worse(const RowChange& row) {
  return std::any_of(row.numbers.begin(), row.numbers.end(), [](const NumberChange& n) { return n.worse(); });
}

/// "" when everything that was measured still is.
std::string unmeasured(const BaselineRow& was, const std::map<std::string, GateNumber>& now) {
  for (const char* name : {"forced.special_mismatch", "free.special_mismatch", "logic.rel_l2"})
    if (was.numbers.contains(name) && !now.contains(name))
      return fmt::format("not measured any more: {}",
                         std::string_view(name).substr(0, std::string_view(name).find('.')));
  for (const char* name : {"forced.rel_l2", "free.rel_l2"})
    if (was.numbers.contains(name) && !now.contains(name)) return fmt::format("has no {} any more", name);
  return "";
}

Change judged(const RowChange& row, Verdict allowed, bool complete) {
  const int now = rank_of(*row.now), was = rank_of(*row.was);
  if (any_worse(row) || (now == 2 && rank_of(allowed) < 2)) return Change::worse;
  if (now > rank_of(allowed) || !complete) return Change::undecided;
  const bool better = std::any_of(row.numbers.begin(), row.numbers.end(), [](const auto& n) { return n.better(); });
  return better || now < was ? Change::better : Change::same;
}

RowChange described(const RowKey& key, const OpResult& op) {
  RowChange row;
  row.key = key;
  row.kind = op.kind;
  row.now = op.verdict;
  row.candidate_now = op.candidate_path;
  row.note = op.diagnosis;
  row.source = op.source;
  row.candidate_source = op.candidate_source;
  row.rerun = op.rerun;
  return row;
}

RowChange row_change(const BaselineRow& was, const RowKey& key, const OpResult& op, const Acceptance* accepted,
                     const std::string& today) {
  RowChange row = described(key, op);
  row.was = was.verdict;
  row.candidate_was = was.candidate_path;
  const auto now = numbers_of(op);
  const std::string missing = unmeasured(was, now);
  row.numbers = changes_of(was, now, nullptr);
  row.change = judged(row, was.verdict, missing.empty());
  if (!missing.empty()) row.note = missing + (row.note.empty() ? "" : "; " + row.note);
  if (accepted != nullptr && (row.change == Change::worse || row.change == Change::undecided)) {
    const std::string said = fmt::format("accepted until {}: {}", accepted->until, accepted->reason);
    if (accepted->until < today) {
      row.change = Change::worse;  // whatever it was accepted for is due
      row.note = fmt::format("{} (this has run out){}", said, row.note.empty() ? "" : "; " + row.note);
    } else {
      row.numbers = changes_of(was, now, accepted);
      const Verdict allowed = rank_of(accepted->verdict) > rank_of(was.verdict) ? accepted->verdict : was.verdict;
      row.change = judged(row, allowed, missing.empty());
      if (row.change == Change::same || row.change == Change::better) row.change = Change::accepted;
      row.note = said + (row.note.empty() ? "" : "; " + row.note);
    }
  }
  if (row.candidate_was != row.candidate_now && row.now != Verdict::missing) {
    // Another tensor: its numbers are no better or worse than those of the one before.
    if (row.change == Change::worse || row.change == Change::undecided)
      row.note = fmt::format("not as good as the one before{}", row.note.empty() ? "" : ": " + row.note);
    row.change = Change::paired;
  }
  return row;
}

void add_vanished(const ClassBaseline& baseline, const std::map<RowKey, bool>& found, std::vector<RowChange>& rows) {
  for (const auto& [key, was] : baseline.rows) {
    if (found.contains(key)) continue;
    RowChange row;
    row.key = key;
    row.kind = was.kind;
    row.change = Change::vanished;
    row.was = was.verdict;
    row.candidate_was = was.candidate_path;
    rows.push_back(std::move(row));
  }
}

double furthest(const RowChange& row) { return row.numbers.empty() ? 0 : excess(row.numbers.front()); }

void sort_rows(std::vector<RowChange>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const RowChange& a, const RowChange& b) {
    if (a.change != b.change) return a.change < b.change;
    if (a.change == Change::better)
      return excess(a.numbers.empty() ? NumberChange{} : a.numbers.back()) <
             excess(b.numbers.empty() ? NumberChange{} : b.numbers.back());
    return furthest(a) > furthest(b);
  });
}

void note_references(const ClassBaseline& baseline, const Report& report, std::vector<std::string>& notes) {
  for (const auto& [name, sum] : reference_sums(report)) {
    const auto before = baseline.references.find(name);
    if (before != baseline.references.end() && before->second != sum)
      notes.push_back(fmt::format("{} is another recording than the baseline's (sha256 {} was {})",
                                  name.empty() ? "the reference" : name, sum.substr(0, 12),
                                  before->second.substr(0, 12)));
  }
}

void note_wider(const std::vector<RowChange>& rows, const ClassBaseline& baseline, const Report& report,
                std::vector<std::string>& notes) {
  int64_t wider = 0;
  double most = 0;
  for (const auto& [key, op] : keyed_rows(report)) {
    const auto was = baseline.rows.find(key);
    if (was == baseline.rows.end()) continue;
    bool here = false;
    for (const auto& [name, number] : numbers_of(*op)) {
      const auto before = was->second.numbers.find(name);
      if (name == "free.rel_l2" || before == was->second.numbers.end() || !(before->second.noise > 0)) continue;
      const double factor = number.noise / before->second.noise;
      here = here || factor > kGate.wider;
      most = std::max(most, factor);
    }
    wider += here;
  }
  if (wider > 0)
    notes.push_back(
        fmt::format("the limits of {} of {} rows are wider than the baseline's (up to {:.2g} times): other "
                    "kernels or values, or --thresholds",
                    wider, rows.size(), most));
}

}  // namespace

std::optional<double> NumberChange::times() const {
  if (!(noise > 0)) return std::nullopt;
  return (now - was) / noise;
}

std::string change_name(Change change) {
  constexpr std::array kNames{"worse", "undecided", "vanished", "paired", "added", "accepted", "better", "same"};
  return kNames.at(static_cast<size_t>(change));
}

GateResult compare_with(const ClassBaseline& baseline, const Report& report, const std::string& today) {
  GateResult result{baseline.date, baseline.reason, baseline.machine, machine_class(report), true, false, {}, {}, {}};
  std::map<RowKey, bool> found;
  for (const auto& [key, op] : keyed_rows(report)) {
    found[key] = true;
    const auto was = baseline.rows.find(key);
    if (was == baseline.rows.end()) {
      result.rows.push_back(described(key, *op));
      result.rows.back().change = Change::added;
    } else {
      result.rows.push_back(row_change(was->second, key, *op, acceptance_of(baseline, key), today));
    }
  }
  add_vanished(baseline, found, result.rows);
  note_references(baseline, report, result.notes);
  if (result.there == result.here) note_wider(result.rows, baseline, report, result.notes);
  for (const RowChange& row : result.rows)
    if (acceptance_of(baseline, row.key) != nullptr && (row.change == Change::same || row.change == Change::better))
      result.notes.push_back(fmt::format("{} ({}) is accepted to be worse, and is not: the acceptance has no use",
                                         name_of(row.key), row.key.dtype));
  sort_rows(result.rows);
  return result;
}

GateResult no_class(const Baseline& baseline, const Report& report) {
  GateResult result;
  result.here = machine_class(report);
  result.compared = false;
  for (const ClassBaseline& entry : baseline.classes)
    result.other_classes.push_back(fmt::format("{} (of {}); {}", text_of_class(entry.machine), entry.date,
                                               fmt::join(class_differences(entry.machine, result.here), "; ")));
  return result;
}

int64_t count_of(const GateResult& result, Change change) {
  return std::count_if(result.rows.begin(), result.rows.end(), [&](const auto& row) { return row.change == change; });
}

int exit_status(const GateResult& result) {
  if (count_of(result, Change::worse) > 0) return 1;
  if (!result.compared || count_of(result, Change::vanished) > 0 || count_of(result, Change::undecided) > 0) return 3;
  const bool open = std::any_of(result.rows.begin(), result.rows.end(), [](const RowChange& row) {
    // What no baseline knows, or another tensor: green only by itself.
    if (row.change == Change::added) return row.now != Verdict::pass;
    return row.change == Change::paired && (any_worse(row) || rank_of(*row.now) > rank_of(*row.was));
  });
  return open ? 3 : 0;
}

}  // namespace parity
