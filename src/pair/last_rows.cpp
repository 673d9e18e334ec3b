#include "pair/last_rows.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pair/inserted_ops.hpp"
#include "trace/flow.hpp"

namespace parity {
namespace {

using json = nlohmann::json;

constexpr int kBefore = 2;  // of the inserted ops run before the row is there

// The boundary's last row as a value of its own, and what is computed from the whole computed from that. Its id; none
// where it is no op's result, or something writes to its memory.
std::optional<int64_t> take(Program& program, OpInserter& rows, size_t b, int64_t axis, int64_t tokens) {
  const Value whole = program.boundaries[b].value;
  if (rows.has_part_of(whole.id)) return std::nullopt;  // another name of one
  const int op = rows.op_that_makes(whole.id);
  if (op < 0) return std::nullopt;
  const int64_t count = whole.shape[axis];
  std::vector<int64_t> shape = whole.shape;
  shape[axis] = count / tokens;  // a row a prompt
  const Value view = rows.fresh(whole, shape), row = rows.fresh(whole, shape);
  shape.insert(shape.begin() + axis + 1, 1);
  const Value apart = rows.fresh(whole, shape);
  shape[axis + 1] = tokens;
  const Value wide = rows.fresh(whole, shape), full = rows.fresh(whole, shape);
  const Value repeated = rows.fresh(whole, whole.shape);
  rows.insert(whole, row, repeated, kBefore,
              {rows.made("slice.Tensor", {argument(whole), axis, tokens - 1, count, tokens}, view, op),
               rows.made("clone", json::array({argument(view)}), row, op),
               rows.made("unsqueeze", {argument(row), axis + 1}, apart, op),
               rows.made("expand", {argument(apart), wide.shape}, wide, op), rows.contiguous_clone(wide, full, op),
               rows.made("view", {argument(full), whole.shape}, repeated, op)});
  return row.id;
}

std::vector<bool> are_among(const Program& program, const std::set<int64_t>& values) {
  std::vector<bool> among;
  for (const Boundary& boundary : program.boundaries) among.push_back(values.contains(boundary.value.id));
  return among;
}

// Does this op take the last of `tokens` rows along `axis`, and no other?
bool takes_last_row(const Op& op, const std::vector<int64_t>& shape, int64_t axis) {
  if ((op.kind != "slice" && op.kind != "select") || op.args.size() < 3 || !op.args[1].is_number_integer() ||
      !op.args[2].is_number_integer() || !op.outputs[0])
    return false;
  const auto rank = std::ssize(shape);
  const int64_t along = op.args[1].get<int64_t>(), at = op.args[2].get<int64_t>(), n = shape[axis];
  const bool one = op.kind == "select" || op.outputs[0]->shape[axis] == 1;
  return (along + rank) % rank == axis && one && (at == -1 || at == n - 1);
}

bool last_row_alone_is_read(const Program& program, const Flow& flow, const Value& value, int64_t axis) {
  std::vector<Value> same{value};  // and casts and whole views of it
  for (size_t next = 0; next < same.size(); ++next)
    for (size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.ops[i];
      if (std::ranges::find(flow.ops[i].reads, same[next].id) == flow.ops[i].reads.end()) continue;
      if (op.outputs.empty() || !op.outputs[0]) return false;
      if (takes_last_row(op, value.shape, axis)) continue;
      if (op.outputs[0]->shape != value.shape || !(op.view || op.kind == "_to_copy")) return false;
      same.push_back(*op.outputs[0]);
    }
  return true;
}

// What was recorded of the other rows does not come out any more.
void forget_recorded(Program& program, const std::set<int64_t>& rows) {
  const std::set<int64_t> moved = values_from(program, rows);
  for (Boundary& boundary : program.boundaries)
    if (moved.contains(boundary.value.id)) boundary.value.key = "";
}

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
  return are_among(program, values_from(program, values));
}

std::vector<bool> computed_from_rows(const Program& program, const LastRows& last) {
  const Flow flow = analyse_flow(program);
  std::set<int64_t> values, alone;
  for (const size_t b : last.first) {
    const Value& value = program.boundaries[b].value;
    const auto axis = axis_of_tokens(value.shape, last.tokens);
    const bool row = axis && value.shape[*axis] == last.tokens && last_row_alone_is_read(program, flow, value, *axis);
    (row ? alone : values).insert(value.id);
  }
  values = values_from(program, values);
  values.insert(alone.begin(), alone.end());
  return are_among(program, values);
}

void go_on_from_last_rows(Program& program, const LastRows& last, const std::vector<bool>* marked) {
  const std::vector<bool> follows = computed_from_rows(program, last);
  OpInserter rows(program, "~last token");
  std::set<int64_t> taken;
  for (size_t b = 0; b < follows.size(); ++b) {
    const auto axis = axis_of_tokens(program.boundaries[b].value.shape, last.tokens);
    if (axis && follows[b] && (marked == nullptr || (*marked)[b]))
      if (const auto row = take(program, rows, b, *axis, last.tokens)) taken.insert(*row);
  }
  rows.apply();
  forget_recorded(program, taken);
}

}  // namespace parity
