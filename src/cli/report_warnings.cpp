#include "cli/report_warnings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/glob.hpp"

namespace parity::cli {
namespace {

constexpr size_t kShownNames = 3;

// A row says which rule declared it (jobs/judged_row.cpp); a rule of paths may have had nothing to declare there.
bool works(const std::string& rule, const OpResult& row) {
  return matches_layer(row.path, rule) ||
         row.diagnosis.find(fmt::format("(--accept-path {})", rule)) != std::string::npos;
}

std::string idle_declarations(const Report& report, const std::vector<std::string>& accepted) {
  std::vector<std::string> idle;
  for (const std::string& rule : accepted)
    if (std::none_of(report.ops.begin(), report.ops.end(), [&](const OpResult& row) { return works(rule, row); }))
      idle.push_back(fmt::format("'{}'", rule));
  if (idle.empty()) return "";
  return fmt::format(
      "--accept-path {} declared nothing: no path here, and no name of a rounding as a diagnosis has it before the "
      "bracket ('kv cache: fp16')",
      fmt::join(idle, ", "));
}

std::string mostly_unpaired(const Report& report) {
  int64_t paired = 0;
  std::vector<std::string> loose;
  for (const auto& [name, c] : report.coverage) {
    paired += c.paired;
    loose.insert(loose.end(), c.unmatched_candidates.begin(), c.unmatched_candidates.end());
  }
  const auto count = static_cast<int64_t>(loose.size());
  if (count <= paired) return "";
  loose.resize(std::min(loose.size(), kShownNames));
  return fmt::format(
      "most of the candidate's tensors, {} of {}, have no reference and were compared with nothing ({}, …): --save-map "
      "lists them beside the reference's points",
      count, count + paired, fmt::join(loose, ", "));
}

}  // namespace

std::vector<std::string> report_warnings(const Report& report, const Thresholds& limits) {
  std::vector<std::string> out;
  for (std::string line : {mostly_unpaired(report), idle_declarations(report, limits.accepted)})
    if (!line.empty()) out.push_back(std::move(line));
  return out;
}

}  // namespace parity::cli
