#include "pair/inserted_ops.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "trace/flow.hpp"

namespace parity {
namespace {

using json = nlohmann::json;

void rename(json& node, int64_t from, int64_t to) {
  if (node.is_object() && node.contains("v") && node["v"] == from) node["v"] = to;
  if (node.is_structured())
    for (json& child : node) rename(child, from, to);
}

}  // namespace

json argument(const Value& value) { return {{"v", value.id}}; }

std::set<int64_t> values_from(const Program& program, std::set<int64_t> values) {
  for (const OpFlow& op : analyse_flow(program).ops)
    if (std::any_of(op.reads.begin(), op.reads.end(), [&](int64_t id) { return values.contains(id); })) {
      values.insert(op.fresh.begin(), op.fresh.end());
      values.insert(op.writes.begin(), op.writes.end());
    }
  return values;
}

OpInserter::OpInserter(Program& program, std::string label) : program_(program), label_(std::move(label)) {
  const Flow flow = analyse_flow(program);
  for (const auto& [id, root] : flow.root) next_id_ = std::max(next_id_, id + 1);
}

int OpInserter::op_that_makes(int64_t id) const {
  const Flow flow = analyse_flow(program_);
  for (size_t i = 0; i < flow.ops.size(); ++i) {
    const auto& fresh = flow.ops[i].fresh;
    if (std::find(fresh.begin(), fresh.end(), id) != fresh.end())
      return flow.written_from(id, static_cast<int>(i)) ? -1 : static_cast<int>(i);
  }
  return -1;
}

Value OpInserter::fresh(const Value& like, std::vector<int64_t> shape) {
  Value value = like;
  value.id = next_id_++;
  value.shape = std::move(shape);
  value.key = "";
  return value;
}

Op OpInserter::made(const std::string& name, json args, const Value& output, int beside) const {
  Op op;
  op.name = "aten::" + name;
  op.kind = name.substr(0, name.find('.'));
  op.path = label_ + "/" + op.kind;
  op.call = program_.ops[beside].call;
  op.module_call = program_.ops[beside].module_call;
  op.args = std::move(args);
  op.kwargs = json::object();
  op.outputs = {output};
  op.view = op.kind != "clone" && op.kind != "cat";
  return op;
}

Op OpInserter::contiguous_clone(const Value& of, const Value& output, int beside) const {
  Op op = made("clone", json::array({argument(of)}), output, beside);
  op.kwargs["memory_format"] = {{"memory_format", "contiguous_format"}};
  return op;
}

Value OpInserter::recorded(const Value& whole, std::vector<int64_t> shape, std::vector<AxisPart> parts) {
  Value value = fresh(whole, std::move(shape));
  value.key = whole.key, value.parts = std::move(parts);
  return recorded_.emplace_back(value);
}

void OpInserter::insert(const Value& whole, const Value& part, const Value& instead, int before, std::vector<Op> ops) {
  const int after = op_that_makes(whole.id) + 1, more = static_cast<int>(ops.size());
  go_on_from(whole.id, instead.id, static_cast<size_t>(after));
  for (Op& op : ops) op.stands_for = whole.id;
  program_.ops.insert(program_.ops.begin() + after, std::make_move_iterator(ops.begin()),
                      std::make_move_iterator(ops.end()));
  for (ModuleCall& call : program_.calls) {
    if (call.begin >= after) call.begin += more;
    if (call.end >= after) call.end += more;
  }
  for (Leaf& leaf : program_.leaves)
    if (leaf.position >= after) leaf.position += more;
  for (Boundary& boundary : program_.boundaries) {
    if (boundary.position >= after) boundary.position += boundary.position == after ? before : more;
    if (boundary.value.id == whole.id) boundary.value = part;
  }
  for (const Value& value : std::exchange(recorded_, {})) {
    const auto place = std::ranges::upper_bound(program_.leaves, after, {}, &Leaf::position);
    Leaf& leaf = *program_.leaves.insert(place, Leaf());
    leaf.value = value, leaf.position = after;
  }
  parts_.insert(part.id);
}

void OpInserter::go_on_from(int64_t whole, int64_t instead, size_t after) {
  for (size_t i = after; i < program_.ops.size(); ++i) {
    rename(program_.ops[i].args, whole, instead);
    rename(program_.ops[i].kwargs, whole, instead);
  }
}

}  // namespace parity
