// What the rows come to, for report.html: causes, what they have in common, what to run next; and the environment, as
// every other report file has it.
#include <algorithm>

#include "report/causes.hpp"
#include "report/environment.hpp"
#include "report/html.hpp"
#include "report/json_values.hpp"
#include "report/limit_use.hpp"

namespace parity {
namespace {

using nlohmann::json;

constexpr size_t kCausesOnPage = 200;  // 5,000 rows may fail for as many reasons; the table has them all

json rows_json(const std::vector<EnvironmentRow>& rows) {
  json out = json::array();
  for (const EnvironmentRow& row : rows) out.push_back({plain(row.what), texts(row.values), row.differs});
  return out;
}

}  // namespace

json html_environment(const Report& report) {
  const Environment machines = environment(report);
  json recordings = json::array();
  const json& details = report.reference.details;
  if (details.is_object() && details.contains("dumps"))
    for (const json& dump : details["dumps"])
      recordings.push_back({plain(dump.value("name", "")), plain(dump.value("model", "")),
                            plain(dump.value("code", "")), plain(dump.value("producer", ""))});
  return {{"columns", machines.columns},
          {"differing", plain(differing_text(machines))},
          {"sides", rows_json(identity_rows(report))},
          {"rows", rows_json(machines.rows)},
          {"others", rows_json(other_settings(report))},
          {"recordings", std::move(recordings)}};
}

json html_causes(const Report& report) {
  const std::vector<Cause> all = causes(report);
  json out = json::array();
  for (size_t i = 0; i < std::min(all.size(), kCausesOnPage); ++i) {
    json rows = json::array();
    for (const OpResult* row : all[i].rows) rows.push_back(row - report.ops.data());
    out.push_back({{"title", plain(cause_title(all[i]))},
                   {"verdict", verdict_name(all[i].verdict)},
                   {"broken", texts(broken_limit_lines(*all[i].rows.front()))},
                   {"rows", std::move(rows)}});
  }
  return {{"all", all.size()}, {"shown", std::move(out)}};
}

}  // namespace parity
