#include "cli/report_warnings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/glob.hpp"

namespace parity::cli {
namespace {

constexpr size_t kShownNames = 3;

// "kv cache: fp16" of "declared (--accept-path kv*): kv cache: fp16 (…)"; "" where nothing is declared.
std::string declared_name(const std::string& diagnosis) {
  constexpr std::string_view kEnd = "): ";
  const size_t declared = diagnosis.find("declared (--accept-path"), end = diagnosis.find(kEnd, declared);
  if (declared == std::string::npos || end == std::string::npos) return "";
  const std::string rest = diagnosis.substr(end + kEnd.size());
  return rest.substr(0, rest.find(" ("));
}

bool works(const std::string& rule, const OpResult& row) {
  const std::string name = declared_name(row.diagnosis);
  return matches_layer(row.path, rule) || (!name.empty() && matches_layer(name, rule));
}

std::string idle_declarations(const Report& report, const std::vector<std::string>& accepted) {
  std::vector<std::string> idle;
  for (const std::string& rule : accepted)
    if (std::none_of(report.ops.begin(), report.ops.end(), [&](const OpResult& row) { return works(rule, row); }))
      idle.push_back(fmt::format("'{}'", rule));
  if (idle.empty()) return "";
  return fmt::format(
      "--accept-path {} declared nothing: no path and no whole name of arithmetic below the cast found here ('kv "
      "cache: "
      "fp16'); a cast that is placed otherwise is declared by its path",
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
