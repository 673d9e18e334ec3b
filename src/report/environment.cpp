#include "report/environment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <sstream>

#include "report/environment_facts.hpp"
#include "report/markup.hpp"
#include "report/summary.hpp"

namespace parity {
namespace {

using nlohmann::json;

constexpr size_t kLongestValue = 400;  // of one setting

/// The provenance of every recording of a side.
std::vector<json> provenances(const Side& side) {
  if (!side.details.is_object() || !side.details.contains("dumps")) return {side.details};
  std::vector<json> out;
  for (const json& dump : side.details["dumps"]) out.push_back(dump.value("details", json::object()));
  return out;
}

std::string joined(const std::vector<json>& recordings, std::string_view key, bool of_gpus = false) {
  std::vector<std::string> values;
  for (const json& one : recordings)
    if (const std::string value = of_gpus && fact_of(one, "device") == "cpu" ? "" : fact_of(one, key);
        !value.empty() && std::find(values.begin(), values.end(), value) == values.end())
      values.push_back(value);
  if (values.size() > 3)
    return fmt::format("{} to {}", *std::min_element(values.begin(), values.end()),
                       *std::max_element(values.begin(), values.end()));
  return values.empty() ? "" : fmt::format("{}", fmt::join(values, " / "));
}

bool any_on_a_gpu(const std::vector<json>& recordings) {
  return std::any_of(recordings.begin(), recordings.end(), [](const json& one) {
    const std::string device = fact_of(one, "device");
    return !device.empty() && device != "cpu";
  });
}

bool same(Same how, const std::string& a, const std::string& b) {
  const auto cut = [&](const std::string& text) {
    return how == Same::version ? text.substr(0, text.find('+')) : text;
  };
  return how == Same::never || cut(a) == cut(b);
}

bool runs_here(const Report& report) { return report.candidate.path.empty(); }

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Of a list, what is not in every known one; any other value as it is.
std::string apart(const std::string& value, const EnvironmentRow& row) {
  const std::vector<std::string> words = words_of(value);
  if (row.what != kFeaturesRow) return value;
  std::vector<std::string> own;
  for (const std::string& word : words)
    for (const std::string& other : row.values) {
      const std::vector<std::string> there = words_of(other);
      if (there.empty() || std::find(there.begin(), there.end(), word) != there.end()) continue;
      own.push_back(word);
      break;
    }
  return own.empty() ? "none" : fmt::format("{}", fmt::join(own, " "));
}

/// "AVX512 (reference), AVX2 (candidate, judged here)"; what is not known is left out.
std::string values_apart(const EnvironmentRow& row, const std::vector<std::string>& columns) {
  std::vector<std::pair<std::string, std::string>> by_value;
  for (size_t i = 0; i < row.values.size(); ++i) {
    if (row.values[i].empty()) continue;
    const std::string value = apart(row.values[i], row), column = columns[i].substr(0, columns[i].find(','));
    const auto found = std::find_if(by_value.begin(), by_value.end(), [&](const auto& v) { return v.first == value; });
    if (found == by_value.end())
      by_value.emplace_back(value, column);
    else
      found->second += ", " + column;
  }
  std::vector<std::string> parts;
  for (const auto& [value, where] : by_value) parts.push_back(fmt::format("{} ({})", value, where));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Nested settings as "config.n_layer"; without those that the table of facts or of identities has.
void flatten(const json& from, const std::string& prefix, std::map<std::string, std::string>& out, int depth = 0) {
  if (!from.is_object() || depth > kDeepest) return;
  for (const auto& [key, value] : from.items()) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (name == "code" || std::any_of(kFacts.begin(), kFacts.end(), [&](const Fact& f) { return f.recorded == name; }))
      continue;
    if (value.is_object())
      flatten(value, name, out, depth + 1);
    else if (const std::string text = words_of_setting(value); !text.empty())
      out[name] = shortened_text(text, kLongestValue);
  }
}

}  // namespace

Environment environment(const Report& report) {
  Environment out;
  const bool here = runs_here(report);
  out.columns = here ? std::vector<std::string>{"reference", "candidate, here"}
                     : std::vector<std::string>{"reference", "candidate", "judged here"};
  const std::vector<json> reference = provenances(report.reference), candidate = provenances(report.candidate);
  const bool gpus = any_on_a_gpu(reference) || any_on_a_gpu(candidate);
  for (const Fact& fact : kFacts) {
    EnvironmentRow row{std::string(fact.what), {joined(reference, fact.recorded, fact.of_gpus)}, false};
    if (!here) row.values.push_back(joined(candidate, fact.recorded, fact.of_gpus));
    row.values.push_back(fact_here(report.machine, fact, gpus));
    std::vector<std::string> known;
    for (const std::string& value : row.values)
      if (!value.empty()) known.push_back(value);
    if (known.empty()) continue;
    row.differs = std::any_of(known.begin(), known.end(), [&](const auto& v) { return !same(fact.same, v, known[0]); });
    out.rows.push_back(std::move(row));
  }
  return out;
}

std::string machine_text(const Environment& environment, size_t column) {
  std::vector<std::string> parts;
  for (const Fact& fact : kFacts)
    for (const EnvironmentRow& row : environment.rows)
      if (fact.in_line && row.what == fact.what && !row.values[column].empty())
        parts.push_back(fact.what == "torch"     ? "torch " + row.values[column]
                        : fact.what == "threads" ? row.values[column] + " threads"
                                                 : row.values[column]);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string differing_text(const Environment& environment) {
  std::vector<std::string> parts;
  for (const EnvironmentRow& row : environment.rows)
    if (row.differs) parts.push_back(fmt::format("{} {}", row.what, values_apart(row, environment.columns)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::vector<EnvironmentRow> identity_rows(const Report& report) {
  const bool here = runs_here(report);
  std::vector<EnvironmentRow> out;
  const auto add = [&](const char* what, const std::string& reference, const std::string& candidate) {
    if (reference.empty() && candidate.empty()) return;
    out.push_back({what, {reference, candidate}, false});
    if (!here) out.back().values.emplace_back();
  };
  const Side &r = report.reference, &c = report.candidate;
  const auto code = [](const Side& side) { return joined(provenances(side), "code"); };
  add("model", r.model, c.model), add("code", code(r), code(c)), add("producer", r.producer, c.producer);
  add("file", r.path, c.path), add("sha256", r.sha256, c.sha256);
  return out;
}

std::vector<EnvironmentRow> other_settings(const Report& report) {
  std::map<std::string, std::array<std::string, 2>> found;
  size_t side = 0;
  for (const Side* s : {&report.reference, &report.candidate}) {
    if (s->details.is_object() && (s->details.contains("dumps") || s->details.contains("models"))) return {};
    std::map<std::string, std::string> settings;
    flatten(s->details, "", settings);
    for (const auto& [name, value] : settings) found[name][side] = value;
    ++side;
  }
  std::vector<EnvironmentRow> out;
  for (const auto& [name, values] : found) {
    const bool differs = !values[0].empty() && !values[1].empty() && values[0] != values[1] && name != "command";
    out.push_back({name, {values[0], values[1]}, differs});
    if (!runs_here(report)) out.back().values.emplace_back();
  }
  return out;
}

std::string reference_text(const Report& report) {
  const std::vector<ReferenceRow> rows = reference_rows(report);
  std::vector<std::string> counted;
  std::map<std::string, int> codes;
  for (const ReferenceRow& row : rows) ++codes[row.code.empty() ? "unknown code" : row.code];
  if (rows.size() > 1) {
    for (const auto& [code, count] : codes) counted.push_back(fmt::format("{} of {}", count, code));
    return fmt::format("{} recordings: {}", rows.size(), fmt::join(counted, ", "));
  }
  for (const std::string& part :
       {report.reference.model, rows.empty() ? "" : rows.front().code, report.reference.producer})
    if (!part.empty()) counted.push_back(part);
  return fmt::format("{}", fmt::join(counted, ", "));
}

Side side_of_recording(const Report& report, const std::string& name) {
  const json& details = report.reference.details;
  if (!details.is_object() || !details.contains("dumps")) return report.reference;
  for (const json& dump : details["dumps"])
    if (dump.value("name", "") == name)
      return {dump.value("path", ""), dump.value("sha256", ""), dump.value("model", ""), dump.value("producer", ""),
              dump.value("details", json::object())};
  return {};
}

std::string candidate_text(const Report& report) {
  std::vector<std::string> parts;
  for (const std::string& part : {report.candidate.model, report.candidate.producer})
    if (!part.empty()) parts.push_back(part);
  if (runs_here(report) && report.candidate.model.empty() && report.candidate.details.contains("models"))
    parts.insert(parts.begin(), "the C++ re-implementation");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace parity
