#include "export/read_rows.hpp"

#include "core/statistics.hpp"
#include "gate/fields.hpp"
#include "gate/read_report.hpp"

namespace parity {
namespace {

template <class Of, size_t n>
bool fill(Of& stats, const std::array<Statistic<Of>, n>& table, const Fields& from) {
  bool any = false;
  for (const Statistic<Of>& row : table) {
    stats.*row.field = from.number_or_null(std::string(row.name).c_str());
    any = any || stats.*row.field;
  }
  return any;
}

void fill(std::optional<Stats>& stats, std::optional<OracleStats>& oracle, const Fields& from) {
  if (stats) {
    fill(*stats, kStatistics, from);
    stats->nan_reference = from.has("nan_reference") ? from.integer("nan_reference") : 0;
    stats->nan_candidate = from.has("nan_candidate") ? from.integer("nan_candidate") : 0;
  }
  OracleStats all;
  if (fill(all, kOracleStatistics, from)) oracle = all;
}

Gate gate_from(const Fields& row) {
  const std::string name = row.text_or_empty("gate");
  for (const Gate gate : {Gate::none, Gate::structure, Gate::logic, Gate::dtype_path, Gate::propagation})
    if (gate_name(gate) == name) return gate;
  row.reject("gate", "is no gate");
}

std::vector<int64_t> shape_from(const Fields& row) {
  std::vector<int64_t> out;
  const auto found = row.raw().find("shape");
  if (found == row.raw().end() || !found->is_array()) row.reject("shape", "is no list");
  for (const auto& size : *found)
    size.is_number_integer() ? out.push_back(size.get<int64_t>()) : row.reject("shape", "holds what is no size");
  return out;
}

std::vector<std::string> texts_from(const Fields& from, const char* key) {
  std::vector<std::string> out;
  if (from.has(key) && from.raw()[key].is_array())
    for (const auto& text : from.raw()[key])
      if (text.is_string()) out.push_back(text.get<std::string>());
  return out;
}

}  // namespace

Report read_whole_report(const std::filesystem::path& file) {
  Report report = read_report(file);
  const nlohmann::json document = read_document(file, "parity-report/1");
  const Fields from(document, file.string());
  const std::vector<Fields> rows = from.objects("ops");
  for (size_t i = 0; i < rows.size() && i < report.ops.size(); ++i) {
    OpResult& op = report.ops[i];
    op.gate = gate_from(rows[i]);
    op.shape = shape_from(rows[i]);
    fill(op.forced, op.oracle, rows[i].object("forced"));
    fill(op.free, op.free_oracle, rows[i].object("free"));
    op.amplification = rows[i].number_or_null("amplification");
    op.blame = rows[i].number_or_null("blame");
  }
  if (from.has("coverage"))
    for (const auto& [name, one] : from.object("coverage").raw().items())
      if (one.is_object())
        report.coverage[name].unmatched_candidates = texts_from({one, file.string()}, "unmatched_candidates");
  return report;
}

}  // namespace parity
