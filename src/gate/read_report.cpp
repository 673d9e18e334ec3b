#include "gate/read_report.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/plain.hpp"
#include "gate/fields.hpp"

namespace parity {
namespace {

std::optional<Stats> stats_from(const Fields& from) {
  if (!from.has("count")) return std::nullopt;  // all null: not measured
  Stats s;
  s.count = from.integer("count");
  s.rel_l2 = from.magnitude_or_null("rel_l2");
  s.normalized_max = from.magnitude_or_null("normalized_max");
  s.bitwise_equal_share = from.magnitude_or_null("bitwise_equal_share");
  if (s.bitwise_equal_share > 1) from.reject("bitwise_equal_share", "is more than 1");
  s.gain = from.number_or_null("gain");
  s.special_mismatch = from.integer("special_mismatch");
  return s;
}

std::optional<OracleStats> oracle_from(const Fields& from) {
  OracleStats o;
  o.candidate_error = from.magnitude_or_null("candidate_error");
  o.reference_error = from.magnitude_or_null("reference_error");
  if (!o.candidate_error && !o.reference_error) return std::nullopt;
  return o;
}

std::vector<Limit> limits_from(const Fields& row) {
  std::vector<Limit> out;
  for (const Fields& from : row.objects("limits")) {
    const auto value = from.number_or_null("value");
    if (!value) continue;  // no limit after all: nothing to measure by
    out.push_back({from.text("statistic"), *value, from.boolean("at_least"), from.text_or_empty("origin"),
                   from.number_or_null("measured")});
  }
  return out;
}

OpResult row_from(const Fields& from) {
  OpResult op;
  op.index = from.integer("index");
  op.reference = from.text("reference");
  op.path = from.text("path");
  op.candidate_path = from.text("candidate_path");
  op.call = static_cast<int>(from.integer("call"));
  op.kind = from.text("kind");
  op.dtype = from.text("dtype");
  op.tensor_dtype = from.text_or_empty("tensor_dtype");
  op.verdict = from.verdict("verdict");
  op.diagnosis = from.text("diagnosis");
  const Fields logic = from.object("logic");
  op.logic.rel_l2 = logic.magnitude_or_null("rel_l2");
  op.logic.limit = logic.magnitude_or_null("limit");
  if (logic.has("verdict")) op.logic.verdict = logic.verdict("verdict");
  const Fields forced = from.object("forced"), free = from.object("free");
  op.forced = stats_from(forced);
  op.free = stats_from(free);
  op.oracle = oracle_from(forced);
  op.free_oracle = oracle_from(free);
  op.limits = limits_from(from);
  op.predicted_free = from.magnitude_or_null("predicted_free");
  op.source = from.text_or_empty("source");
  op.candidate_source = from.text_or_empty("candidate_source");
  op.rerun = from.text_or_empty("rerun");
  return op;
}

Side side_from(const Fields& from) {
  Side side;
  side.path = from.text("path");
  side.sha256 = from.text("sha256");
  side.model = from.text("model");
  side.producer = from.text("producer");
  side.details = from.object("details").raw();
  return side;
}

}  // namespace

Report read_report(const std::filesystem::path& file) {
  const nlohmann::json document = read_document(file, "parity-report/1");
  const Fields from(document, file.string());
  Report report;
  report.command = from.text("command");
  report.date = from.text("date");
  report.machine = from.object("machine").raw();
  report.reference = side_from(from.object("reference"));
  report.candidate = side_from(from.object("candidate"));
  for (const Fields& row : from.objects("ops")) report.ops.push_back(row_from(row));
  if (report.ops.empty()) throw Error(fmt::format("{}: holds no comparison of an op", plain(file.string())));
  return report;
}

}  // namespace parity
