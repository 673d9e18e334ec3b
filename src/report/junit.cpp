// JUnit XML for CI: a suite per reference and dtype run, a case per op and gate. <failure> is a fault that was found
// (fail, shape); <error> is what could not be decided (inconclusive, missing, untrusted): viewers show both as not
// green, and tell them apart.
#include <fmt/format.h>

#include "report/causes.hpp"
#include "report/environment.hpp"
#include "report/limit_use.hpp"
#include "report/markup.hpp"
#include "report/sink.hpp"
#include "report/summary.hpp"

namespace parity {
namespace {

constexpr size_t kLongestMessage = 300;  // characters of a diagnosis: a cell of a CI page; the report has all of it

struct GateCase {
  std::string name;
  Verdict verdict;
};

bool was_evaluated(const OpResult& op, Gate gate) {
  switch (gate) {
    case Gate::structure:
      return op.forced || op.free || op.logic.verdict;
    case Gate::logic:
      return op.logic.verdict.has_value();
    case Gate::dtype_path:
      return !op.limits.empty();
    case Gate::propagation:
      return op.predicted_free.has_value();
    case Gate::none:
      return false;
  }
  return false;
}

/// The ladder stops at the first gate that is not green; later gates have no case then.
std::vector<GateCase> cases(const OpResult& op) {
  std::vector<GateCase> out;
  // A verdict that no gate explains (untrusted, missing) leaves no gate that may be called passed.
  if (op.gate == Gate::none && op.verdict != Verdict::pass) return {{"verdict", op.verdict}};
  for (const Gate gate : {Gate::structure, Gate::logic, Gate::dtype_path, Gate::propagation}) {
    if (gate == op.gate) {
      out.push_back({gate_name(gate), op.verdict});
      break;
    }
    if (was_evaluated(op, gate)) out.push_back({gate_name(gate), Verdict::pass});
  }
  if (out.empty()) out.push_back({"verdict", op.verdict});
  return out;
}

/// The limits that do not hold, and how to run it again; the other limits stand in the report.
std::string details(const OpResult& op) {
  // Each line by itself: xml() keeps to one, and a line end within a name begins none.
  std::string out = xml(fmt::format("{} {} {}", op.kind, op.dtype, shape_text(op.shape))) + "\n";
  for (const std::string& line : broken_limit_lines(op)) out += xml(line) + "\n";
  if (const std::string lines = source_text(op); !lines.empty()) out += xml(lines) + "\n";
  return out + xml("again: " + op.rerun);
}

/// Without the recording: the suite and the class name it.
std::string case_name(const OpResult& op, const GateCase& c) {
  return xml(fmt::format("{} [{}]", path_name(op), c.name));
}

std::string case_text(const std::string& suite, const OpResult& op, const GateCase& c) {
  const std::string head = fmt::format("<testcase classname=\"{}\" name=\"{}\"", xml(suite), case_name(op, c));
  if (c.verdict == Verdict::pass) return head + "/>\n";
  const char* element = is_failure(op) ? "failure" : "error";
  return fmt::format("{}><{} type=\"{}\" message=\"{}\">{}</{}></testcase>\n", head, element, verdict_name(c.verdict),
                     xml(shortened_text(op.diagnosis, kLongestMessage)), details(op), element);
}

struct Suite {
  std::string name, body;
  int64_t tests = 0, failures = 0, errors = 0;

  void add(const OpResult& op) {
    for (const GateCase& c : cases(op)) {
      body += case_text(name, op, c);
      ++tests;
      const bool failure = c.verdict == Verdict::fail || c.verdict == Verdict::shape;
      failures += failure;
      errors += !failure && c.verdict != Verdict::pass;
    }
  }
};

/// On which machines: what explains a difference before any case does.
std::string environment_properties(const Report& report) {
  const Environment machines = environment(report);
  std::string out;
  for (size_t i = 0; i < machines.columns.size(); ++i)
    if (const std::string text = machine_text(machines, i); !text.empty())
      out += fmt::format("<property name=\"{}\" value=\"{}\"/>", xml(machines.columns[i]), xml(text));
  if (const std::string differs = differing_text(machines); !differs.empty())
    out += fmt::format("<property name=\"differs\" value=\"{}\"/>", xml(differs));
  return out.empty() ? "" : fmt::format("<properties>{}</properties>\n", out);
}

std::vector<Suite> suites(const Report& report) {
  std::vector<Suite> out;
  for (const OpResult& op : report.ops) {
    const std::string name = op.reference.empty() ? op.dtype : fmt::format("{}.{}", op.reference, op.dtype);
    auto found = std::find_if(out.begin(), out.end(), [&](const Suite& s) { return s.name == name; });
    if (found == out.end()) found = out.insert(out.end(), Suite{.name = name, .body = {}});
    found->add(op);
  }
  if (!out.empty()) return out;
  // Nothing compared: an empty file would be green in most viewers.
  return {{"report",
           "    <testcase classname=\"report\" name=\"something was compared\">\n      <error type=\"inconclusive\" "
           "message=\"nothing was compared\"/>\n    </testcase>\n",
           1, 0, 1}};
}

}  // namespace

void write_junit(const Report& report, const std::filesystem::path& file) {
  const auto all = suites(report);
  int64_t tests = 0, failed = 0, errors = 0;
  for (const Suite& s : all) tests += s.tests, failed += s.failures, errors += s.errors;
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text += fmt::format("<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3f}\">\n",
                      xml(report.command), tests, failed, errors, report.seconds);
  const std::string properties = environment_properties(report);
  for (const Suite& s : all) {
    text += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n", xml(s.name), s.tests,
                        s.failures, s.errors);
    text += properties + s.body;
    text += "  </testsuite>\n";
  }
  write_file(file, text + "</testsuites>\n");
}

}  // namespace parity
