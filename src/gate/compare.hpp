// A report held against a baseline: what changed, and by how much of what rounding explains.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "gate/baseline.hpp"

namespace parity {

/// What became of a row, the most serious first.
enum class Change {
  worse,      // more than rounding explains, or failed where it did not
  undecided,  // decided before, not any more; or numbers are missing that were there
  vanished,   // in the baseline alone
  paired,     // compared with another tensor of the candidate than before
  added,      // in the report alone
  accepted,   // worse, and allowed to be
  better,     // by more than rounding explains, or a failure gone
  same
};
std::string change_name(Change change);

struct NumberChange {
  std::string name;
  double was = 0, now = 0;
  double noise = 0;    // of the wider null of the two
  double allowed = 0;  // was (or what was accepted) + noise
  /// The difference in units of the noise; negative: better; nullopt where nothing is explained by noise.
  std::optional<double> times() const;
  bool worse() const { return !(now <= allowed); }
  bool better() const { return now < was - noise; }
};

struct RowChange {
  RowKey key;
  std::string kind;
  Change change = Change::same;
  std::optional<Verdict> was, now;  // absent: the row was not, or is not, there
  std::string candidate_was, candidate_now;
  std::vector<NumberChange> numbers;  // all that both have; the one furthest from its band first
  std::string note;                   // the diagnosis, what is missing, an acceptance
  std::string source, candidate_source, rerun;
};

struct GateResult {
  std::string date, reason;  // of the baseline
  MachineClass there, here;
  bool compared = true;                    // false: the baseline has no entry for this machine class
  bool explicitly = false;                 // of another class, because that was asked for
  std::vector<RowChange> rows;             // every one, the most serious change first, each kind by how far it went
  std::vector<std::string> notes;          // other recordings, wider limits, acceptances without use
  std::vector<std::string> other_classes;  // what the baseline has, where it has not this one
};

/// `today`: a day; acceptances end with theirs.
GateResult compare_with(const ClassBaseline& baseline, const Report& report, const std::string& today);
/// For a machine class that the baseline does not have.
GateResult no_class(const Baseline& baseline, const Report& report);

int64_t count_of(const GateResult& result, Change change);
/// 0 nothing worse, 1 something is, 3 nothing worse but not everything decided.
int exit_status(const GateResult& result);

}  // namespace parity
