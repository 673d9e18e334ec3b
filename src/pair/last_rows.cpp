#include "pair/last_rows.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trace/flow.hpp"

namespace parity {
namespace {

using json = nlohmann::json;

json value_of(int64_t id) { return {{"v", id}}; }

// These values and what is computed from them.
std::set<int64_t> values_from(const Program& program, std::set<int64_t> values) {
  for (const OpFlow& op : analyse_flow(program).ops)
    if (std::any_of(op.reads.begin(), op.reads.end(), [&](int64_t id) { return values.contains(id); })) {
      values.insert(op.fresh.begin(), op.fresh.end());
      values.insert(op.writes.begin(), op.writes.end());
    }
  return values;
}

class RowTaker {
 public:
  explicit RowTaker(Program& program) : program_(program) {
    const Flow flow = analyse_flow(program);
    for (const auto& [id, root] : flow.root) next_id_ = std::max(next_id_, id + 1);
  }

  // The boundary's last row as a value of its own, and what is computed from the whole computed from that. False: it
  // is no op's result, or something writes to its memory.
  bool take(size_t b, int64_t axis, int64_t tokens) {
    const Value whole = program_.boundaries[b].value;
    if (rows_.contains(whole.id)) return true;  // another name of one
    const int op = op_that_makes(whole.id);
    if (op < 0) return false;
    const int64_t count = whole.shape[axis];
    const auto fresh = [&](int64_t rows) {
      Value value = whole;
      value.id = next_id_++;
      value.shape[axis] = rows;
      value.key = "";
      return value;
    };
    const int64_t prompts = count / tokens;
    const Value view = fresh(prompts), row = fresh(prompts), repeated = fresh(count);
    Value apart = fresh(prompts), wide = fresh(prompts), full = fresh(prompts);
    for (Value* value : {&apart, &wide, &full})
      value->shape.insert(value->shape.begin() + axis + 1, value == &apart ? 1 : tokens);
    const int after = op + 1;
    go_on_from(whole.id, repeated.id, after);
    insert(after, {made("slice.Tensor", {value_of(whole.id), axis, tokens - 1, count, tokens}, view, op),
                   made("clone", json::array({value_of(view.id)}), row, op),
                   made("unsqueeze", {value_of(row.id), axis + 1}, apart, op),
                   made("expand", {value_of(apart.id), wide.shape}, wide, op),
                   contiguous(made("clone", json::array({value_of(wide.id)}), full, op)),
                   made("view", {value_of(full.id), whole.shape}, repeated, op)});
    for (Boundary& boundary : program_.boundaries)
      if (boundary.value.id == whole.id) boundary.value = row;
    rows_.insert(row.id);
    return true;
  }

  // What was recorded of the other rows does not come out any more.
  void forget_recorded() {
    const std::set<int64_t> moved = values_from(program_, rows_);
    for (Boundary& boundary : program_.boundaries)
      if (moved.contains(boundary.value.id)) boundary.value.key = "";
  }

 private:
  static constexpr int kBefore = 2;  // of the inserted ops run before the row is there

  int op_that_makes(int64_t id) const {
    const Flow flow = analyse_flow(program_);
    for (size_t i = 0; i < flow.ops.size(); ++i) {
      const auto& fresh = flow.ops[i].fresh;
      if (std::find(fresh.begin(), fresh.end(), id) != fresh.end())
        return flow.written_from(id, static_cast<int>(i)) ? -1 : static_cast<int>(i);
    }
    return -1;
  }

  // `beside`: the op in whose module call it runs.
  Op made(const std::string& name, json args, const Value& output, int beside) const {
    Op op;
    op.name = "aten::" + name;
    op.kind = name.substr(0, name.find('.'));
    op.path = "~last token/" + op.kind;
    op.call = program_.ops[beside].call;
    op.module_call = program_.ops[beside].module_call;
    op.args = std::move(args);
    op.kwargs = json::object();
    op.outputs = {output};
    op.view = op.kind != "clone";
    return op;
  }

  static Op contiguous(Op clone) {
    clone.kwargs["memory_format"] = {{"memory_format", "contiguous_format"}};
    return clone;
  }

  static void rename(json& node, int64_t from, int64_t to) {
    if (node.is_object() && node.contains("v") && node["v"] == from) node["v"] = to;
    if (node.is_structured())
      for (json& child : node) rename(child, from, to);
  }

  void go_on_from(int64_t whole, int64_t repeated, int after) {
    for (size_t i = static_cast<size_t>(after); i < program_.ops.size(); ++i) {
      rename(program_.ops[i].args, whole, repeated);
      rename(program_.ops[i].kwargs, whole, repeated);
    }
  }

  void insert(int after, std::vector<Op> ops) {
    const int more = static_cast<int>(ops.size());
    program_.ops.insert(program_.ops.begin() + after, ops.begin(), ops.end());
    for (ModuleCall& call : program_.calls) {
      if (call.begin >= after) call.begin += more;
      if (call.end >= after) call.end += more;
    }
    for (Leaf& leaf : program_.leaves)
      if (leaf.position >= after) leaf.position += more;
    for (Boundary& boundary : program_.boundaries)
      if (boundary.position >= after) boundary.position += boundary.position == after ? kBefore : more;
  }

  Program& program_;
  int64_t next_id_ = 0;
  std::set<int64_t> rows_;  // ids of last rows
};

}  // namespace

std::optional<int64_t> axis_of_tokens(const std::vector<int64_t>& shape, int64_t tokens) {
  const auto axes = static_cast<int64_t>(shape.size()) - 1;
  if (axes == 1) return shape[0] > 0 && shape[0] % tokens == 0 ? std::optional<int64_t>(0) : std::nullopt;
  if (axes > 0 && shape[axes - 1] == tokens) return axes - 1;
  for (int64_t axis = 0; axis < axes; ++axis)
    if (shape[axis] == tokens) return axis;
  return std::nullopt;
}

std::vector<bool> computed_from(const Program& program, const std::set<size_t>& first) {
  std::set<int64_t> values;
  for (const size_t b : first) values.insert(program.boundaries[b].value.id);
  values = values_from(program, values);
  std::vector<bool> follows;
  for (const Boundary& boundary : program.boundaries) follows.push_back(values.contains(boundary.value.id));
  return follows;
}

void go_on_from_last_rows(Program& program, const LastRows& last, const std::vector<bool>* marked) {
  const std::vector<bool> follows = computed_from(program, last.first);
  RowTaker rows(program);
  for (size_t b = 0; b < follows.size(); ++b) {
    const auto axis = axis_of_tokens(program.boundaries[b].value.shape, last.tokens);
    if (axis && follows[b] && (marked == nullptr || (*marked)[b])) rows.take(b, *axis, last.tokens);
  }
  rows.forget_recorded();
}

}  // namespace parity
