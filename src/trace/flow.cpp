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
  flow.writes = written_ids(op);
  for (const auto& output : op.outputs)
    if (output && !root.contains(output->id)) add_once(flow.fresh, output->id);
  // Every ATen view takes what it views first. An opaque op's results are stored ones: memory of their own.
  if (op.view && op.opaque.empty() && !flow.reads.empty()) flow.base = flow.reads.front();
  return flow;
}

}  // namespace

void collect_ids(const nlohmann::json& argument, std::vector<int64_t>& ids) {
  if (argument.is_array())
    for (const auto& element : argument) collect_ids(element, ids);
  else if (argument.is_object() && argument.contains("v") && argument["v"].is_number_integer())
    ids.push_back(argument["v"].get<int64_t>());
}

int64_t argument_id(const Op& op, size_t position) {
  if (position >= op.args.size() || !op.args[position].is_object() || !op.args[position].contains("v")) return -1;
  return op.args[position]["v"].get<int64_t>();
}

std::vector<int64_t> written_ids(const Op& op) {
  std::vector<int64_t> writes, reads;
  for (const Value& value : op.writes) add_once(writes, value.id);
  if (const auto handle = find_operator(op.name)) {
    add_schema_writes(op, handle->schema(), writes);
  } else {  // unknown here: what it returns of its arguments it has written to, unless they are views
    for (const auto& argument : op.args) collect_ids(argument, reads);
    for (const auto& output : op.outputs)
      if (output && !op.view && std::find(reads.begin(), reads.end(), output->id) != reads.end())
        add_once(writes, output->id);
  }
  return writes;
}

bool Flow::written_from(int64_t id, int position) const {
  const auto found = root.find(id);
  const auto write = last_write.find(found == root.end() ? id : found->second);
  return write != last_write.end() && write->second >= position;
}

Flow analyse_flow(const Program& program) {
  Flow flow;
  size_t leaf = 0;
  const auto add_leaves = [&](int position) {  // in the order of events: an alias may lie in an op's result
    for (; leaf < program.leaves.size() && program.leaves[leaf].position <= position; ++leaf) {
      const Leaf& added = program.leaves[leaf];
      flow.root[added.value.id] = added.base >= 0 ? flow.root.at(added.base) : added.value.id;
      if (added.base >= 0) flow.leaf_base[added.value.id] = added.base;
    }
  };
  flow.ops.reserve(program.ops.size());
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    add_leaves(i);
    const OpFlow& op = flow.ops.emplace_back(flow_of(program.ops[i], flow.root));
    for (const int64_t id : op.fresh) flow.root[id] = op.base >= 0 ? flow.root.at(op.base) : id;
    if (program.ops[i].kind == "set_" && op.reads.size() > 1) flow.root[op.reads[0]] = flow.root.at(op.reads[1]);
    for (const int64_t id : op.writes) flow.last_write[flow.root.at(id)] = i;
  }
  add_leaves(static_cast<int>(program.ops.size()));
  return flow;
}

}  // namespace parity
