// JSON, JUnit XML and Markdown of what the gate found.
#include <fmt/format.h>

#include "gate/sinks.hpp"
#include "report/json_values.hpp"
#include "report/sink.hpp"

namespace parity {
namespace {

using nlohmann::json;

constexpr size_t kCommented = 20;  // rows of one kind in a comment: people read no more of it

json verdict_or_null(const std::optional<Verdict>& v) { return v ? json(verdict_name(*v)) : json(nullptr); }

json row_change_json(const RowChange& row) {
  json numbers = json::array();
  for (const NumberChange& n : row.numbers)
    if (n.worse() || n.better())
      numbers.push_back({{"name", plain(n.name)},
                         {"was", value(n.was)},
                         {"now", value(n.now)},
                         {"noise", value(n.noise)},
                         {"allowed", value(n.allowed)},
                         {"times", value(n.times())},
                         {"worse", n.worse()}});
  return {{"change", change_name(row.change)},
          {"reference", plain(row.key.reference)},
          {"path", plain(row.key.path)},
          {"call", row.key.call},
          {"copy", row.key.copy},
          {"dtype", plain(row.key.dtype)},
          {"kind", plain(row.kind)},
          {"verdict_was", verdict_or_null(row.was)},
          {"verdict_now", verdict_or_null(row.now)},
          {"candidate_was", plain(row.candidate_was)},
          {"candidate_now", plain(row.candidate_now)},
          {"numbers", std::move(numbers)},
          {"note", plain(row.note)},
          {"source", plain(row.source)},
          {"candidate_source", plain(row.candidate_source)},
          {"rerun", plain(row.rerun)}};
}

/// What a CI viewer shows of a row: a failure, an error (not decided), or nothing.
const char* element_of(const RowChange& row) {
  if (row.change == Change::worse) return "failure";
  if (row.change == Change::undecided || row.change == Change::vanished) return "error";
  const bool open = row.change == Change::added || row.change == Change::paired;
  return open && row.now != Verdict::pass && row.now != row.was ? "error" : nullptr;
}

std::string junit_case(const RowChange& row) {
  const std::string head = fmt::format("    <testcase classname=\"gate.{}\" name=\"{} [{}]\"", xml(row.key.dtype),
                                       xml(name_of(row.key)), change_name(row.change));
  const char* element = element_of(row);
  if (element == nullptr) return head + "/>\n";
  std::string text = xml(verdict_line(row));
  for (const std::string& line : {number_line(row), row.note})
    if (!line.empty()) text += fmt::format("\n{}", xml(line));
  return fmt::format("{}>\n      <{} type=\"{}\" message=\"{}\">{}</{}>\n    </testcase>\n", head, element,
                     change_name(row.change), xml(number_line(row).empty() ? row.note : number_line(row)), text,
                     element);
}

std::string table_of(const GateResult& result, Change change, const char* title) {
  std::string rows;
  size_t count = 0;
  for (const RowChange& row : result.rows)
    if (row.change == change && ++count <= kCommented)
      rows += fmt::format("| {} | {} | {} | {} | {} |\n", markdown_code(name_of(row.key)), markdown(row.kind),
                          markdown(row.key.dtype), markdown(verdict_line(row)),
                          markdown(number_line(row).empty() ? row.note : number_line(row)));
  if (count == 0) return "";
  if (count > kCommented) rows += fmt::format("\n… and {} more.\n", count - kCommented);
  return fmt::format("**{}** ({})\n\n| op | kind | dtype | verdict | what |\n|---|---|---|---|---|\n{}\n", title, count,
                     rows);
}

}  // namespace

json gate_json(const GateResult& result, const std::string& report, const std::string& baseline) {
  json rows = json::array(), counts = json::object();
  for (const RowChange& row : result.rows)
    if (row.change != Change::same) rows.push_back(row_change_json(row));
  for (const Change c : {Change::worse, Change::undecided, Change::vanished, Change::paired, Change::added,
                         Change::accepted, Change::better, Change::same})
    counts[change_name(c)] = count_of(result, c);
  const int status = exit_status(result);
  return {{"schema", "parity-gate/1"},
          {"verdict", status == 0   ? "pass"
                      : status == 1 ? "worse"
                                    : "undecided"},
          {"exit_status", status},
          {"report", plain(report)},
          {"baseline", plain(baseline)},
          {"baseline_date", plain(result.date)},
          {"baseline_reason", plain(result.reason)},
          {"compared", result.compared},
          {"machine", result.here},
          {"baseline_machine", result.there},
          {"counts", std::move(counts)},
          {"rows", std::move(rows)},
          {"notes", texts(result.notes)}};
}

void write_gate_junit(const GateResult& result, const std::filesystem::path& file) {
  std::string body;
  int64_t failures = 0, errors = 0, cases = 0;
  for (const RowChange& row : result.rows) {
    body += junit_case(row);
    const char* element = element_of(row);
    failures += element != nullptr && std::string_view(element) == "failure";
    errors += element != nullptr && std::string_view(element) == "error";
    ++cases;
  }
  if (!result.compared) {
    body = fmt::format(
        "    <testcase classname=\"gate\" name=\"baseline for this machine class\">\n      <error "
        "type=\"undecided\" message=\"{}\"/>\n    </testcase>\n",
        xml(gate_headline(result)));
    cases = errors = 1;
  }
  write_file(file,
             fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"parity-check gate\" "
                         "tests=\"{0}\" failures=\"{1}\" errors=\"{2}\">\n  <testsuite name=\"gate\" tests=\"{0}\" "
                         "failures=\"{1}\" errors=\"{2}\">\n{3}  </testsuite>\n</testsuites>\n",
                         cases, failures, errors, body));
}

std::string gate_markdown(const GateResult& result) {
  const int status = exit_status(result);
  std::string out = fmt::format("### {} {}\n\n",
                                status == 0   ? "✅"
                                : status == 1 ? "❌"
                                              : "❔",
                                markdown(gate_headline(result)));
  for (const std::string& line : baseline_lines(result)) out += fmt::format("- {}\n", markdown(line));
  for (const std::string& note : result.notes) out += fmt::format("- note: {}\n", markdown(note));
  out += "\n";
  out += table_of(result, Change::worse, "Worse");
  out += table_of(result, Change::undecided, "Not decided any more");
  out += table_of(result, Change::vanished, "Not in the report");
  out += table_of(result, Change::paired, "Paired with another tensor");
  out += table_of(result, Change::added, "New");
  out += table_of(result, Change::accepted, "Accepted until a day");
  out += table_of(result, Change::better, "Better");
  return result.compared ? out + gate_totals(result) + "\n" : out;
}

}  // namespace parity
