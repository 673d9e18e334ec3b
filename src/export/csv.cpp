// Columns are a table: those of kStatistics come by themselves, so the head is the same for every report of a version.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "core/plain.hpp"
#include "core/statistics.hpp"
#include "export/formats.hpp"
#include "report/limit_use.hpp"

namespace parity {
namespace {

/// RFC 4180, 2: quotes around what holds a comma, a quote or a line's end; a quote in it doubled.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string number_field(std::optional<double> x) { return x && std::isfinite(*x) ? fmt::format("{}", *x) : ""; }

struct Columns {
  std::vector<std::string> names, values;
  void text(const char* name, const std::string& value) {
    names.emplace_back(name);
    values.push_back(field(plain(value)));
  }
  void number(std::string name, std::optional<double> value) {
    names.push_back(std::move(name));
    values.push_back(number_field(value));
  }
  void count(std::string name, std::optional<int64_t> value) {
    names.push_back(std::move(name));
    values.push_back(value ? fmt::format("{}", *value) : "");
  }
};

void add_stats(Columns& out, const std::string& prefix, const std::optional<Stats>& stats,
               const std::optional<OracleStats>& oracle) {
  const auto counted = [&](int64_t Stats::*member) { return stats ? std::optional((*stats).*member) : std::nullopt; };
  out.count(prefix + "count", counted(&Stats::count));
  out.count(prefix + "nan_reference", counted(&Stats::nan_reference));
  out.count(prefix + "nan_candidate", counted(&Stats::nan_candidate));
  out.count(prefix + "special_mismatch", counted(&Stats::special_mismatch));
  for (const auto& row : kStatistics)
    out.number(prefix + std::string(row.name), stats ? (*stats).*row.field : std::nullopt);
  for (const auto& row : kOracleStatistics)
    out.number(prefix + std::string(row.name), oracle ? (*oracle).*row.field : std::nullopt);
}

Columns columns_of(const OpResult& op) {
  Columns out;
  out.count("index", op.index);
  out.text("reference", op.reference);
  out.text("path", op.path);
  out.count("call", op.call);
  out.text("candidate_path", op.candidate_path);
  out.text("kind", op.kind);
  out.text("dtype", op.dtype);
  out.text("tensor_dtype", op.tensor_dtype);
  out.text("shape", fmt::format("{}", fmt::join(op.shape, "x")));
  out.text("verdict", verdict_name(op.verdict));
  out.text("gate", gate_name(op.gate));
  out.number("error_over_limit", share_of_limits(op));
  out.number("logic.rel_l2", op.logic.rel_l2);
  out.number("logic.limit", op.logic.limit);
  add_stats(out, "forced.", op.forced, op.oracle);
  add_stats(out, "free.", op.free, op.free_oracle);
  out.number("amplification", op.amplification);
  out.number("predicted_free", op.predicted_free);
  out.number("blame", op.blame);
  out.text("diagnosis", op.diagnosis);
  out.text("source", op.source);
  out.text("candidate_source", op.candidate_source);
  out.text("rerun", op.rerun);
  return out;
}

}  // namespace

std::string report_csv(const Report& report) {
  std::string out = fmt::format("{}\r\n", fmt::join(columns_of({}).names, ","));
  for (const OpResult& op : report.ops) out += fmt::format("{}\r\n", fmt::join(columns_of(op).values, ","));
  return out;
}

}  // namespace parity
