#include "gate/baseline.hpp"

#include <fmt/format.h>

#include <utility>

#include "gate/date.hpp"
#include "gate/fields.hpp"
#include "report/sink.hpp"

namespace parity {
namespace {

using nlohmann::json;

json key_json(const RowKey& key) {
  return {
      {"reference", key.reference}, {"path", key.path}, {"call", key.call}, {"dtype", key.dtype}, {"copy", key.copy}};
}

RowKey key_from(const Fields& from) {
  return {from.text("reference"), from.text("path"), from.text("dtype"), from.integer("call"), from.integer("copy")};
}

json row_json(const RowKey& key, const BaselineRow& row) {
  json numbers = json::object();
  for (const auto& [name, number] : row.numbers) numbers[name] = {{"value", number.value}, {"noise", number.noise}};
  json out = key_json(key);
  out.update({{"kind", row.kind},
              {"candidate_path", row.candidate_path},
              {"verdict", verdict_name(row.verdict)},
              {"numbers", std::move(numbers)}});
  return out;
}

std::pair<RowKey, BaselineRow> row_of(const Fields& from) {
  BaselineRow row{from.text("kind"), from.text("candidate_path"), from.verdict("verdict"), {}};
  const Fields numbers = from.object("numbers");
  for (const auto& [name, value] : numbers.raw().items()) {
    const Fields number = numbers.object(name.c_str());
    row.numbers[name] = {number.magnitude("value"), number.magnitude("noise")};
  }
  return {key_from(from), std::move(row)};
}

json acceptance_json(const Acceptance& a) {
  json out = key_json(a.key);
  out.update({{"verdict", verdict_name(a.verdict)},
              {"numbers", a.numbers},
              {"reason", a.reason},
              {"since", a.since},
              {"until", a.until}});
  return out;
}

Acceptance acceptance_from(const Fields& from) {
  Acceptance a{key_from(from),      from.verdict("verdict"), {},
               from.text("reason"), from.text("since"),      from.text("until")};
  if (a.reason.empty()) from.reject("reason", "is empty: an acceptance needs one");
  if (!is_day(a.until)) from.reject("until", "is no day like 2026-12-31");
  const Fields numbers = from.object("numbers");
  for (const auto& [name, value] : numbers.raw().items()) a.numbers[name] = numbers.magnitude(name.c_str());
  return a;
}

std::map<std::string, std::string> texts_of(const Fields& from) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : from.raw().items()) out[name] = from.text(name.c_str());
  return out;
}

std::string one_line(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

ClassBaseline class_from(const Fields& from) {
  ClassBaseline entry;
  entry.machine = texts_of(from.object("machine"));
  entry.references = texts_of(from.object("references"));
  entry.date = from.text("date");
  entry.reason = from.text("reason");
  entry.command = from.text("command");
  for (const Fields& row : from.objects("rows"))
    if (!entry.rows.insert(row_of(row)).second) row.reject("path", "names a row for the second time");
  for (const Fields& accepted : from.objects("accepted")) entry.accepted.push_back(acceptance_from(accepted));
  return entry;
}

json class_json(const ClassBaseline& entry) {
  json rows = json::array(), accepted = json::array();
  for (const auto& [key, row] : entry.rows) rows.push_back(row_json(key, row));
  for (const Acceptance& a : entry.accepted) accepted.push_back(acceptance_json(a));
  return {{"machine", entry.machine},       {"date", entry.date},
          {"reason", entry.reason},         {"command", entry.command},
          {"references", entry.references}, {"rows", std::move(rows)},
          {"accepted", std::move(accepted)}};
}

}  // namespace

Baseline read_baseline(const std::filesystem::path& file) {
  const json document = read_document(file, "parity-baseline/1");
  const Fields from(document, file.string());
  Baseline baseline;
  for (const Fields& entry : from.objects("classes")) {
    baseline.classes.push_back(class_from(entry));
    ClassBaseline* first = find_class(baseline, baseline.classes.back().machine);
    if (first != &baseline.classes.back()) entry.reject("machine", "has a second entry");
  }
  return baseline;
}

json to_json(const Baseline& baseline) {
  json classes = json::array();
  for (const ClassBaseline& entry : baseline.classes) classes.push_back(class_json(entry));
  return {{"schema", "parity-baseline/1"}, {"classes", std::move(classes)}};
}

// A row a line: what --update and --accept change can be read in a diff of the file.
void write_baseline(const Baseline& baseline, const std::filesystem::path& file) {
  const json whole = to_json(baseline);
  std::string text = fmt::format("{{\n\"schema\": {},\n\"classes\": [", one_line(whole["schema"]));
  for (size_t i = 0; i < whole["classes"].size(); ++i) {
    text += i == 0 ? "\n{" : ",\n{";
    bool first = true;
    for (const auto& [key, value] : whole["classes"][i].items()) {
      text += fmt::format("{}\n \"{}\": ", std::exchange(first, false) ? "" : ",", key);
      if (!value.is_array()) {
        text += one_line(value);
        continue;
      }
      for (size_t row = 0; row < value.size(); ++row)
        text += fmt::format("{}\n  {}", row == 0 ? "[" : ",", one_line(value[row]));
      text += value.empty() ? "[]" : "]";
    }
    text += "}";
  }
  write_file(file, text + "]}\n");
}

std::vector<std::pair<RowKey, const OpResult*>> keyed_rows(const Report& report) {
  std::vector<std::pair<RowKey, const OpResult*>> out;
  std::map<RowKey, int64_t> seen;
  for (const OpResult& op : report.ops) {
    RowKey key{op.reference, op.path, op.dtype, op.call, 0};
    key.copy = seen[key]++;
    out.emplace_back(std::move(key), &op);
  }
  return out;
}

ClassBaseline frozen(const Report& report, std::string reason, std::string date) {
  ClassBaseline entry;
  entry.machine = machine_class(report);
  entry.date = std::move(date);
  entry.reason = std::move(reason);
  entry.command = report.command;
  entry.references = reference_sums(report);
  for (const auto& [key, op] : keyed_rows(report))
    entry.rows[key] = {op->kind, op->candidate_path, op->verdict, numbers_of(*op)};
  return entry;
}

ClassBaseline* find_class(Baseline& baseline, const MachineClass& machine) {
  for (ClassBaseline& entry : baseline.classes)
    if (entry.machine == machine) return &entry;
  return nullptr;
}

const ClassBaseline* nearest_class(const Baseline& baseline, const MachineClass& machine) {
  const ClassBaseline* nearest = nullptr;
  size_t fewest = 0;
  for (const ClassBaseline& entry : baseline.classes) {
    const size_t differing = class_differences(entry.machine, machine).size();
    if (nearest == nullptr || differing < fewest) nearest = &entry, fewest = differing;
  }
  return nearest;
}

std::map<std::string, std::string> reference_sums(const Report& report) {
  std::map<std::string, std::string> out;
  const nlohmann::json& details = report.reference.details;
  if (!report.reference.sha256.empty()) out[""] = report.reference.sha256;
  if (!details.is_object() || !details.contains("dumps") || !details["dumps"].is_array()) return out;
  for (const json& dump : details["dumps"])
    if (dump.is_object() && dump.contains("name") && dump["name"].is_string() && dump.contains("sha256") &&
        dump["sha256"].is_string())
      out[dump["name"].get<std::string>()] = dump["sha256"].get<std::string>();
  return out;
}

}  // namespace parity
