// Recording × dtype: one line for each, the whole run at a glance.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

struct Cell {
  std::string recording, dtype;  // recording: its name, also where there is only one
  int64_t count = 0;             // rows
  std::map<Verdict, int64_t> verdicts;
  const OpResult* worst = nullptr;     // the row that uses most of a limit, of the failing ones if there are any
  std::optional<double> of_limit;      // how much of it: 1 is the limit
  std::optional<double> equal_share;   // of all elements, teacher-forced: bitwise equal
  std::optional<double> free_output;   // relative L2 of the last result, free-running
  std::optional<double> worst_forced;  // the largest relative L2, teacher-forced
};

/// In order of appearance.
std::vector<Cell> matrix(const Report& report);
/// Cells of one recording as one, its dtypes joined: "fp64 fp32 bf16"; the worst number of any of them.
std::vector<Cell> matrix_by_recording(const Report& report);
/// The one that uses most of a limit, null when nothing was compared.
const Cell* worst_cell(const std::vector<Cell>& cells);

/// "0.41 of its limit", "exact" when nothing of any limit is used, "" when no limit applies.
std::string of_limit_text(const Cell& cell);

/// The name of a row's recording: its own, else the reference's file name without ending.
std::string recording_name(const Report& report, const std::string& reference);
/// What is known of a recording's coverage; null when nothing is.
const Coverage* coverage_of_recording(const Report& report, const std::string& reference);

}  // namespace parity
