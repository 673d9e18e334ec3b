#include "trace/flow.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#include "trace/operator.hpp"

namespace parity {
namespace {

void add_once(std::vector<int64_t>& ids, int64_t id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

// What the schema says is written (`Tensor(a!)`): also ops that return nothing, as _foreach_add_.
void add_schema_writes(const Op& op, const c10::FunctionSchema& schema, std::vector<int64_t>& writes) {
  const auto& arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].alias_info() == nullptr || !arguments[i].alias_info()->isWrite()) continue;
    std::vector<int64_t> ids;
    if (i < op.args.size())
      collect_ids(op.args[i], ids);
    else if (op.kwargs.contains(arguments[i].name()))
      collect_ids(op.kwargs[arguments[i].name()], ids);
    for (const int64_t id : ids) add_once(writes, id);
  }
}

OpFlow flow_of(const Op& op, const std::unordered_map<int64_t, int64_t>& root) {
  OpFlow flow;
  for (const auto& argument : op.args) collect_ids(argument, flow.reads);
  for (const auto& argument : op.kwargs) collect_ids(argument, flow.reads);
  for (const auto& output : op.outputs) {
    if (!output) continue;
    if (!root.contains(output->id))
      add_once(flow.fresh, output->id);
    else if (std::find(flow.reads.begin(), flow.reads.end(), output->id) != flow.reads.end())
      add_once(flow.writes, output->id);
  }
  if (const auto handle = find_operator(op.name)) add_schema_writes(op, handle->schema(), flow.writes);
  if (op.view && !flow.reads.empty()) flow.base = flow.reads.front();  // every ATen view takes what it views first
  return flow;
}

}  // namespace

void collect_ids(const nlohmann::json& argument, std::vector<int64_t>& ids) {
  if (argument.is_array())
    for (const auto& element : argument) collect_ids(element, ids);
  else if (argument.is_object() && argument.contains("v") && argument["v"].is_number_integer())
    ids.push_back(argument["v"].get<int64_t>());
}

bool Flow::written_from(int64_t id, int position) const {
  const auto found = root.find(id);
  const auto write = last_write.find(found == root.end() ? id : found->second);
  return write != last_write.end() && write->second >= position;
}

Flow analyse_flow(const Program& program) {
  Flow flow;
  for (const Leaf& leaf : program.leaves) flow.root[leaf.value.id] = leaf.value.id;
  flow.ops.reserve(program.ops.size());
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const OpFlow& op = flow.ops.emplace_back(flow_of(program.ops[i], flow.root));
    for (const int64_t id : op.fresh) flow.root[id] = op.base >= 0 ? flow.root.at(op.base) : id;
    for (const int64_t id : op.writes) flow.last_write[flow.root.at(id)] = static_cast<int>(i);
  }
  return flow;
}

}  // namespace parity
