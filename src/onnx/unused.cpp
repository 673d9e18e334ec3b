#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "onnx/program.hpp"
#include "trace/operator.hpp"

namespace parity::onnx {
namespace {

std::vector<CapturedOp> used(std::vector<CapturedOp>& ops, std::set<int64_t>& needed,
                             const std::filesystem::path& file) {
  std::vector<CapturedOp> used;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    if (std::none_of(op->makes.begin(), op->makes.end(), [&](int64_t id) { return needed.contains(id); })) continue;
    const std::string kind = operator_kind(op->event["op"].get<std::string>());
    if (is_uninitialised(kind))  // what is written to it behind the dispatcher does not come by
      throw Error(fmt::format("{}: a lowering reads uninitialised memory ({}), whose contents cannot be recorded",
                              file.string(), kind));
    needed.insert(op->reads.begin(), op->reads.end());
    needed.insert(op->makes.begin(), op->makes.end());  // all results of one that is taken as stored
    used.push_back(std::move(*op));
  }
  std::reverse(used.begin(), used.end());
  return used;
}

}  // namespace

void leave_out_unused(const std::filesystem::path& file, RanModel& ran) {
  std::set<int64_t> needed;
  for (const ModelRun& run : ran.runs)
    for (const nlohmann::json& output : run.outputs) needed.insert(output["v"].get<int64_t>());
  for (auto run = ran.runs.rbegin(); run != ran.runs.rend(); ++run)
    for (auto node = run->nodes.rbegin(); node != run->nodes.rend(); ++node) node->ops = used(node->ops, needed, file);
  std::erase_if(ran.leaves,
                [&](const auto& leaf) { return leaf.second.names.empty() && !needed.contains(leaf.first); });
  std::erase_if(ran.kept, [&](const auto& value) { return !needed.contains(value.first); });
}

}  // namespace parity::onnx
