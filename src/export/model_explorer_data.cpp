// Numbers on nodes. Errors are divided by their limits, so that 1 is the line on every node.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "export/model_explorer.hpp"
#include "report/limit_use.hpp"
#include "report/markup.hpp"

namespace parity {
namespace {

using nlohmann::json;

constexpr double kBeyond = 1e6;  // shown where nothing is allowed and something was measured; JSON has no infinity

struct Colour {
  Verdict verdict;
  const char* name;
};
constexpr std::array kColours{
    Colour{Verdict::fail, "#ef9a9a"},         Colour{Verdict::shape, "#ef9a9a"},
    Colour{Verdict::missing, "#ffcc80"},      Colour{Verdict::untrusted, "#ffe082"},
    Colour{Verdict::inconclusive, "#fff59d"}, Colour{Verdict::pass, "#c8e6c9"},
};

size_t rank(Verdict verdict) {
  size_t i = 0;
  while (i < kColours.size() && kColours[i].verdict != verdict) ++i;
  return i;
}

const char* colour_of(Verdict verdict) { return kColours[std::min(rank(verdict), kColours.size() - 1)].name; }

/// One number a node and dtype.
struct Column {
  const char* file;
  const char* title;
  json thresholds;
  std::function<json(const OpResult&)> value;  // null: none
};

std::vector<Column> columns() {
  const json limits = {{{"value", 1}, {"bgColor", "#c8e6c9"}},
                       {{"value", 10}, {"bgColor", "#ffb74d"}},
                       {{"value", kBeyond}, {"bgColor", "#ef9a9a"}}};
  const auto finite = [](std::optional<double> x) {
    return x && !std::isnan(*x) ? json(std::stod(fmt::format("{:.4g}", std::min(*x, kBeyond)))) : json(nullptr);
  };
  return {
      {"error_over_limit", "local error / limit", limits,
       [finite](const OpResult& op) { return finite(share_of_limits(op)); }},
      {"verdict", "verdict", nullptr, [](const OpResult& op) { return json(verdict_name(op.verdict)); }},
      {"free_error", "free-running error", nullptr,
       [finite](const OpResult& op) { return op.free ? finite(op.free->rel_l2) : json(nullptr); }},
      {"amplification", "amplification", nullptr, [finite](const OpResult& op) { return finite(op.amplification); }}};
}

/// Of several rows on one node (a module's result is its last op's) the worst, and of these the largest number.
json result_of(const Report& report, const GraphNode& node, const std::string& dtype, const Column& column) {
  json out;
  const OpResult* shown = nullptr;
  for (const size_t row : node.rows) {
    const OpResult& op = report.ops[row];
    if (op.dtype != dtype) continue;
    const json value = column.value(op);
    if (value.is_null()) continue;
    const bool worse = shown == nullptr || rank(op.verdict) < rank(shown->verdict) ||
                       (op.verdict == shown->verdict && value.is_number() && value > out["value"]);
    if (!worse) continue;
    shown = &op;
    out = {{"value", value}};
    // A row can fail below its limits, by shape or by its gain; the verdict's colour is the truth then.
    if (!value.is_number() || (!column.thresholds.is_null() && op.verdict != Verdict::pass))
      out["bgColor"] = colour_of(op.verdict);
  }
  return out;
}

json column_of(const Report& report, const std::vector<GraphPair>& pairs, const std::string& dtype,
               const Column& column, const std::string& title) {
  json file = json::object();
  for (const GraphPair& pair : pairs)
    for (const SideGraph* graph : {&pair.reference, &pair.candidate}) {
      json results = json::object();
      for (const GraphNode& node : graph->nodes)
        if (json result = result_of(report, node, dtype, column); !result.is_null())
          results[plain(node.id)] = std::move(result);
      if (results.empty()) continue;
      json data = {{"name", title}, {"results", std::move(results)}};
      if (!column.thresholds.is_null()) data["thresholds"] = column.thresholds;
      if (column.file == std::string_view("verdict")) data["showExpandedSummaryOnGroupNode"] = true;
      if (column.file != std::string_view("verdict")) data["hideAggregatedStats"] = {"sum", "avg"};
      file[plain(graph->id)] = std::move(data);
    }
  return file;
}

}  // namespace

std::vector<NodeData> node_data(const Report& report, const std::vector<GraphPair>& pairs) {
  std::vector<std::string> dtypes;
  for (const GraphPair& pair : pairs)
    for (const GraphNode& node : pair.reference.nodes)
      for (const size_t row : node.rows)
        if (std::find(dtypes.begin(), dtypes.end(), report.ops[row].dtype) == dtypes.end())
          dtypes.push_back(report.ops[row].dtype);
  std::vector<NodeData> out;
  for (const std::string& dtype : dtypes)
    for (const Column& column : columns()) {
      const std::string title = dtypes.size() == 1 ? column.title : fmt::format("{} ({})", column.title, dtype);
      json file = column_of(report, pairs, dtype, column, title);
      if (!file.empty()) out.push_back({fmt::format("{}.{}", column.file, dtype), std::move(file)});
    }
  return out;
}

}  // namespace parity
