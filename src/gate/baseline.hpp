// What a run may not fall behind: parity-baseline/1 (reports/parity-baseline-1.schema.json), one entry a machine class.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gate/machine_class.hpp"
#include "gate/numbers.hpp"

namespace parity {

/// A row as it was when the baseline was frozen.
struct BaselineRow {
  std::string kind, candidate_path;
  Verdict verdict = Verdict::pass;
  std::map<std::string, GateNumber> numbers;
};

/// One row that may be as bad as it was seen, for a reason and until a day.
struct Acceptance {
  RowKey key;
  Verdict verdict = Verdict::pass;
  std::map<std::string, double> numbers;  // up to which they are accepted
  std::string reason, since, until;       // days, the last one included
};

/// Frozen for one machine class.
struct ClassBaseline {
  MachineClass machine;
  std::string date, reason, command;
  std::map<std::string, std::string> references;  // sha256 by name
  std::map<RowKey, BaselineRow> rows;
  std::vector<Acceptance> accepted;
};

struct Baseline {
  std::vector<ClassBaseline> classes;
};

/// Throws Error for whatever is no such file.
Baseline read_baseline(const std::filesystem::path& file);
nlohmann::json to_json(const Baseline& baseline);
void write_baseline(const Baseline& baseline, const std::filesystem::path& file);

/// A report frozen, without acceptances.
ClassBaseline frozen(const Report& report, std::string reason, std::string date);

/// The rows of a report under their names, in its order.
std::vector<std::pair<RowKey, const OpResult*>> keyed_rows(const Report& report);

/// Those of this class; null when there are none.
ClassBaseline* find_class(Baseline& baseline, const MachineClass& machine);
/// Those whose class differs in the fewest fields; null when the baseline is empty.
const ClassBaseline* nearest_class(const Baseline& baseline, const MachineClass& machine);

/// sha256 of each reference by name ("" when there is only one).
std::map<std::string, std::string> reference_sums(const Report& report);

}  // namespace parity
