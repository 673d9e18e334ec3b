#include "pair/inserted_ops.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

namespace parity {
namespace {

using json = nlohmann::json;

void rename(json& node, const std::unordered_map<int64_t, int64_t>& names) {
  if (node.is_object() && node.contains("v") && node["v"].is_number_integer())
    if (const auto name = names.find(node["v"].get<int64_t>()); name != names.end()) node["v"] = name->second;
  if (node.is_structured())
    for (json& child : node) rename(child, names);
}

}  // namespace

json argument(const Value& value) { return {{"v", value.id}}; }

std::set<int64_t> values_from(const Program& program, std::set<int64_t> values, bool through_picks) {
  const Flow flow = analyse_flow(program);
  for (size_t i = 0; i < flow.ops.size(); ++i) {
    const OpFlow& op = flow.ops[i];
    if (!through_picks && program.ops[i].kind == "argmax") continue;
    if (std::any_of(op.reads.begin(), op.reads.end(), [&](int64_t id) { return values.contains(id); })) {
      values.insert(op.fresh.begin(), op.fresh.end());
      values.insert(op.writes.begin(), op.writes.end());
    }
  }
  return values;
}

OpInserter::OpInserter(Program& program, std::string label)
    : program_(program), label_(std::move(label)), flow_(analyse_flow(program)) {
  for (const auto& [id, root] : flow_.root) next_id_ = std::max(next_id_, id + 1);
  for (size_t i = 0; i < flow_.ops.size(); ++i)
    for (const int64_t id : flow_.ops[i].fresh) made_by_.emplace(id, static_cast<int>(i));
}

int OpInserter::op_that_makes(int64_t id) const {
  const auto op = made_by_.find(id);
  return op == made_by_.end() || flow_.written_from(id, op->second) ? -1 : op->second;
}

Value OpInserter::fresh(const Value& like, std::vector<int64_t> shape) {
  Value value = like;
  value.id = next_id_++;
  value.shape = std::move(shape);
  value.key = "", value.packed = {};
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

Value OpInserter::recorded(const Value& whole) {
  Value value = fresh(whole, whole.shape);
  value.key = whole.key, value.packed = whole.packed;
  return recorded_.emplace_back(value);
}

void OpInserter::insert(const Value& whole, const Value& part, const Value& instead, int before, std::vector<Op> ops) {
  for (Op& op : ops) op.stands_for = whole.id;
  instead_.emplace(whole.id, instead.id);
  insertions_.push_back(
      {whole.id, part, op_that_makes(whole.id) + 1, before, std::move(ops), std::exchange(recorded_, {})});
}

void OpInserter::apply() {
  if (insertions_.empty()) return;
  std::ranges::stable_sort(insertions_, {}, &Insertion::after);
  std::vector<int> before(program_.ops.size() + 2);  // by position: ops that are inserted before it
  int inserted = 0;
  for (Insertion& insertion : insertions_) {
    insertion.begin = insertion.after + inserted;
    inserted += static_cast<int>(insertion.ops.size());
    before[insertion.after + 1] += static_cast<int>(insertion.ops.size());
  }
  std::partial_sum(before.begin(), before.end(), before.begin());
  for (ModuleCall& call : program_.calls) call.begin += before[call.begin + 1], call.end += before[call.end + 1];
  for (Leaf& leaf : program_.leaves) leaf.position += before[leaf.position + 1];
  move_boundaries(before);
  insert_ops();
  std::ranges::stable_sort(program_.leaves, {}, &Leaf::position);
  insertions_.clear();
}

// Behind their parts, and in the order that they have.
void OpInserter::move_boundaries(const std::vector<int>& before) {
  std::unordered_map<int64_t, const Insertion*> found;  // by the whole
  for (const Insertion& insertion : insertions_) found.emplace(insertion.whole, &insertion);
  int last = -1, moved = -1;  // positions of the boundary before
  for (Boundary& boundary : program_.boundaries) {
    const int position = boundary.position;
    boundary.position += before[position];
    if (const auto part = found.find(boundary.value.id); part != found.end()) {
      const Insertion& insertion = *part->second;
      boundary.value = insertion.part;
      if (position == insertion.after) boundary.position = insertion.begin + insertion.before;
    }
    if (position == last) boundary.position = std::max(boundary.position, moved);
    last = position, moved = boundary.position;
  }
}

void OpInserter::insert_ops() {
  std::vector<Op> ops;
  auto next = program_.ops.begin();
  const auto take_until = [&](std::ptrdiff_t end) {
    for (; next != program_.ops.begin() + end; ++next) {
      rename(next->args, instead_);
      rename(next->kwargs, instead_);
      ops.push_back(std::move(*next));
    }
  };
  for (Insertion& insertion : insertions_) {
    take_until(insertion.after);
    for (const Value& value : insertion.recorded) {
      Leaf& leaf = program_.leaves.emplace_back();
      leaf.value = value, leaf.position = insertion.begin;
    }
    std::ranges::move(insertion.ops, std::back_inserter(ops));
  }
  take_until(std::ssize(program_.ops));
  program_.ops = std::move(ops);
}

}  // namespace parity
