#include "pair/last_rows.hpp"

#include <nlohmann/json.hpp>

#include "pair/inserted_ops.hpp"

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
  values = values_from(program, values);
  std::vector<bool> follows;
  for (const Boundary& boundary : program.boundaries) follows.push_back(values.contains(boundary.value.id));
  return follows;
}

void go_on_from_last_rows(Program& program, const LastRows& last, const std::vector<bool>* marked) {
  const std::vector<bool> follows = computed_from(program, last.first);
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
