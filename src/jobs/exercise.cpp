#include "jobs/exercise.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/dtype_kind.hpp"
#include "diagnose/faults/arithmetic_attention.hpp"

namespace parity {
namespace {

constexpr size_t kHiddenShown = 5;  // inputs and weights named that nothing compared moves with

void join(std::vector<bool>& into, const std::vector<bool>& other) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = into[i] || other[i];
}

// All elements equal. A few of them tell nearly always.
bool is_constant(const at::Tensor& t) {
  if (t.numel() < 2) return false;
  const at::Tensor first = t.select(0, 0).reshape(-1).slice(0, 0, 1);
  const at::Tensor last = t.select(0, -1).reshape(-1).slice(0, -1);
  if (!at::equal(first, last)) return false;
  return t.eq(first.reshape({})).all().item<bool>();
}

// Softmax over an axis of one element is 1 whatever that is: what lies behind it cannot be wrong where it would show.
// (A gate that is zero could be another number.)
bool takes_nothing_over(const Op& op) {
  if (op.kind != "_softmax" && op.kind != "_log_softmax") return false;
  if (op.args.size() < 2 || !op.args[1].is_number_integer() || op.outputs.empty() || !op.outputs[0]) return false;
  const auto& shape = op.outputs[0]->shape;
  const int64_t axis = op.args[1].get<int64_t>(), axes = static_cast<int64_t>(shape.size());
  return axis >= -axes && axis < axes && shape[static_cast<size_t>(axis < 0 ? axis + axes : axis)] == 1;
}

// Query and key of attention to a single key: its result is the value, whatever they are.
std::set<int64_t> without_effect(const Op& op, const std::function<at::Tensor(int64_t id)>& value) {
  if (!is_fused_attention(op)) return {};
  const int64_t query = argument_id(op, 0), key = argument_id(op, 1), values = argument_id(op, 2);
  const at::Tensor keys = key < 0 ? at::Tensor() : value(key);  // (batch, heads, keys, width)
  if (!keys.defined() || keys.dim() < 2 || keys.size(-2) != 1) return {};
  std::set<int64_t> ids{query, key};
  ids.erase(values);
  return ids;
}

bool is_constant_float(const at::Tensor& t) {
  return t.defined() && t.dim() > 0 && is_float(t.scalar_type()) && is_constant(t);
}

// A number that is given to every element is not lost in them.
bool is_one_float(const at::Tensor& t) { return t.defined() && is_float(t.scalar_type()) && t.numel() == 1; }

}  // namespace

Exercise::Exercise(const Program& program)
    : program_(program),
      flow_(analyse_flow(program)),
      used_(program.leaves.size(), false),
      exercised_(program.leaves.size(), false) {
  for (size_t i = 0; i < program.leaves.size(); ++i) {
    Reach own{Leaves(program.leaves.size(), false), {}};
    own.computed_from[i] = true;
    own.moves_with = own.computed_from;
    reach_[program.leaves[i].value.id] = std::move(own);
    names_[root_of(program.leaves[i].value.id)].push_back(program.leaves[i].value.id);
  }
}

const Exercise::Reach* Exercise::find(int64_t id) const {
  const auto found = reach_.find(id);
  return found == reach_.end() ? nullptr : &found->second;
}

void Exercise::ran(int op, const std::function<at::Tensor(int64_t id)>& value) {
  const OpFlow& flow = flow_.ops[op];
  if (flow.fresh.empty() && flow.writes.empty()) return;
  const std::set<int64_t> idle = without_effect(program_.ops[static_cast<size_t>(op)], value);
  const auto joined = [&](bool destroys) {
    Reach reach{Leaves(program_.leaves.size(), false), Leaves(program_.leaves.size(), false)};
    if (takes_nothing_over(program_.ops[static_cast<size_t>(op)])) return reach;
    for (const int64_t id : flow.reads) {
      const Reach* from = find(id);
      if (from == nullptr || idle.contains(id)) continue;
      join(reach.computed_from, from->computed_from);
      // A constant made of something that is not: what was in that is lost here.
      if (!destroys || is_constant_float(value(id)) || is_one_float(value(id)))
        join(reach.moves_with, from->moves_with);
    }
    return reach;
  };
  for (const int64_t id : flow.fresh) {
    reach_[id] = joined(is_constant_float(value(id)));
    names_[root_of(id)].push_back(id);
  }
  const Reach written = flow.writes.empty() ? Reach() : joined(false);
  for (const int64_t id : flow.writes) {  // in place: every name of that memory
    for (const int64_t other : names_[root_of(id)]) {
      Reach& reach = reach_.at(other);
      join(reach.computed_from, written.computed_from);
      join(reach.moves_with, written.moves_with);
    }
  }
}

int64_t Exercise::root_of(int64_t id) const {
  const auto root = flow_.root.find(id);
  return root == flow_.root.end() ? id : root->second;
}

void Exercise::reached(size_t boundary, int64_t id) {
  if (const Reach* reach = find(id)) at_[boundary] = *reach;
}

void Exercise::compared(size_t boundary) {
  const auto reach = at_.find(boundary);
  if (reach == at_.end()) return;
  join(used_, reach->second.computed_from);
  join(exercised_, reach->second.moves_with);
}

std::vector<std::string> Exercise::hidden() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < used_.size(); ++i) {
    const Leaf& leaf = program_.leaves[i];
    if (used_[i] && !exercised_[i] && is_float(leaf.value.dtype) && !leaf.names.empty())
      names.push_back(leaf.names.front());
  }
  return names;
}

std::optional<OpResult> Exercise::hidden_row() const {
  const std::vector<std::string> names = hidden();
  if (names.empty()) return std::nullopt;
  const size_t shown = std::min<size_t>(names.size(), kHiddenShown);
  OpResult row = untrusted_row(
      names.front(), "coverage",
      fmt::format("no compared value moves with {}{}: nothing is shown about it (is a gate or a weight behind it "
                  "zero? give other values, or record the port between)",
                  fmt::join(names.begin(), names.begin() + static_cast<int64_t>(shown), ", "),
                  names.size() > shown ? fmt::format(" and {} more inputs or weights", names.size() - shown) : ""));
  row.index = static_cast<int64_t>(program_.boundaries.size());
  return row;
}

}  // namespace parity
