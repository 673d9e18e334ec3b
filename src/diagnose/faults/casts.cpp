// Cast placements: a rounding that the recorded program has left out, or one that it has not put in.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "core/dtype_kind.hpp"
#include "diagnose/faults/catalogue.hpp"
#include "trace/device.hpp"
#include "trace/operator.hpp"

namespace parity {

namespace {

bool computes_floats(const Op& op) {
  return !op.view && (op.opaque.empty() || is_uninitialised(op.kind)) && !op.outputs.empty() && op.outputs[0] &&
         is_float(op.outputs[0]->dtype);
}

bool writes_in_place(const Op& op) { return op.kind.ends_with('_'); }

at::Tensor rounded(const at::Tensor& value, at::ScalarType half) {
  if (value.is_complex()) {
    const at::Tensor pairs = at::view_as_real(value.resolve_conj());
    return at::view_as_complex(pairs.to(half).to(pairs.scalar_type()));
  }
  return value.to(half).to(value.scalar_type());
}

Rewrite not_rounded() {
  return [](OpCall& call) { return call.unrounded(call.arguments); };
}

Rewrite rounded_too(at::ScalarType half) {
  return [half](OpCall& call) {
    Results results = call.run_again();
    for (auto& result : results)
      if (result && is_float(result->scalar_type())) result = rounded(*result, half);
    return results;
  };
}

void add(Hypotheses& to, std::string fault, std::string what, std::string place, std::map<int, Rewrite> rewrites) {
  FaultHypothesis h{std::move(fault), std::move(what), std::move(place), Gate::dtype_path};
  h.deviation.rewrites = std::move(rewrites);
  h.joint = true;
  to.push_back(std::move(h));
}

// Towards zero instead of to the nearest.
Rewrite truncated() {
  return [](OpCall& call) {
    Results results = call.unrounded(call.arguments);
    for (size_t j = 0; j < results.size() && j < call.op.outputs.size(); ++j) {
      if (!results[j] || !call.op.outputs[j] || !is_half(call.op.outputs[j]->dtype)) continue;
      const at::ScalarType half = call.op.outputs[j]->dtype;
      const at::Tensor near = results[j]->to(half);
      const at::Tensor bits = near.contiguous().view(at::kShort);
      const at::Tensor beyond = near.to(at::kDouble).abs().gt(results[j]->abs());
      results[j] = (bits - beyond.to(at::kShort)).view(half);  // one step towards zero, either sign
    }
    return results;
  };
}

bool moves(const Op& op) { return op.view || only_moves(op.kind); }

bool elementwise(const Op& op) {
  static constexpr std::array<std::string_view, 12> kKinds{"mul",  "add",     "sub",  "div",  "neg",   "pow",
                                                           "tanh", "sigmoid", "silu", "gelu", "rsqrt", "exp"};
  return std::find(kKinds.begin(), kKinds.end(), op.kind) != kKinds.end();
}

bool elementwise_or_moved(const Op& op) { return op.kind == "_to_copy" || moves(op) || elementwise(op); }

// Do elementwise ops of the same module call, and they alone, compute with the result of op `i`, moved or not?
bool computed_on(const ProgramIndex& program, int i) {
  const Op& op = program.op(i);
  if (op.outputs.size() != 1 || !op.outputs[0] || program.consumers(op.outputs[0]->id).empty()) return false;
  const auto& readers = program.consumers(op.outputs[0]->id);
  return std::all_of(readers.begin(), readers.end(), [&](int reader) {
    const Op& next = program.op(reader);
    if (reader <= i || next.module_call != op.module_call) return false;
    return moves(next) ? computed_on(program, reader) : elementwise(next);
  });
}

// The half results of elementwise ops that are read by elementwise ops of the same module call alone: a port that
// fuses them rounds at the end only. From `index` on.
std::map<int, Rewrite> fused_chain(const ProgramIndex& program, int index) {
  std::map<int, Rewrite> wide;
  std::vector<int> todo{index};
  std::set<int> seen;
  while (!todo.empty() && seen.size() < 48) {
    const int i = todo.back();
    todo.pop_back();
    const Op& op = program.op(i);
    if (!seen.insert(i).second || !(elementwise(op) || moves(op)) || !computed_on(program, i)) continue;
    if (!op.view) wide[i] = not_rounded();
    for (const int reader : program.consumers(op.outputs[0]->id)) {
      todo.push_back(reader);
      // Its other operands come from the same chain: x cos + rotated(x) sin.
      for (const int64_t id : program.reads(reader))
        if (const int made = program.producer(id); made >= 0 && made > index - 8 && made < reader) todo.push_back(made);
    }
  }
  return wide;
}

// A half buffer that is filled piece by piece (`out[..., 0::2] = …`), kept wide.
std::map<int, Rewrite> wide_buffer(const ProgramIndex& program, int index) {
  std::map<int, Rewrite> ops;
  std::vector<int64_t> todo{program.op(index).outputs[0]->id};
  while (!todo.empty() && ops.size() < 24) {
    const int64_t id = todo.back();
    todo.pop_back();
    for (const int reader : program.consumers(id)) {
      const Op& op = program.op(reader);
      if (reader <= index || ops.contains(reader) || program.argument(reader, 0) != id) continue;
      if (!op.view && op.kind != "copy_") continue;
      ops[reader] = [](OpCall& call) { return call.run_again(); };
      if (op.view && !op.outputs.empty() && op.outputs[0]) todo.push_back(op.outputs[0]->id);
    }
  }
  if (ops.empty()) return {};
  ops[index] = [](OpCall& call) {
    return Results{at::zeros(call.op.outputs[0]->shape, at::TensorOptions(replay_device()).dtype(at::kFloat))};
  };
  return ops;
}

// Stored numbers (weights, timesteps) that a half program keeps wide, rounded before they are used.
void rounded_leaves(const ProgramIndex& program, int index, at::ScalarType half, Hypotheses& to) {
  const Op& op = program.op(index);
  std::vector<size_t> weights;
  for (size_t position = 0; position < op.args.size() && position < 4; ++position) {
    const int64_t id = program.argument(index, position);
    const Value* value = program.value(id);
    if (program.leaf_behind(id, 4, true) != nullptr && value != nullptr &&
        (value->dtype == at::kFloat || value->dtype == at::kDouble))
      weights.push_back(position);
  }
  if (weights.empty() || op.view) return;
  add(to, "extra rounding", fmt::format("stored numbers rounded to {}", c10::toString(half)), program.place(index),
      {{index, [weights, half](OpCall& call) {
          for (const size_t position : weights)
            if (call.arguments.at(position).isTensor())
              call.arguments[position] = rounded(call.arguments[position].toTensor(), half);
          return call.run_again();
        }}});
}

// Ops of one module call from `index` on whose results are wide, up to the next rounding: an island of fp32.
std::vector<int> island(const ProgramIndex& program, int index) {
  std::vector<int> ops;
  const int call = program.op(index).module_call;
  for (int i = index; i < program.size() && program.op(i).module_call == call && ops.size() < 24; ++i) {
    if (!computes_floats(program.op(i))) continue;
    if (is_half(program.op(i).outputs[0]->dtype)) break;
    ops.push_back(i);
  }
  return ops;
}

// A half result kept wide, alone or with others up to a rounding; or truncated.
void half_result(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (op.kind.starts_with("empty") || op.kind.starts_with("zeros")) {
    if (auto all = wide_buffer(program, index); !all.empty())
      add(to, "missing rounding", "buffer kept wide", program.place(index), std::move(all));
    return;
  }
  if (writes_in_place(op)) return;  // rounded because its buffer is: see there
  add(to, "missing rounding", op.kind + " kept wide", program.place(index), {{index, not_rounded()}});
  to.back().wide_op = index;
  add(to, "truncation", "rounded towards zero", program.place(index), {{index, truncated()}});
  if (elementwise(op))
    if (auto chain = fused_chain(program, index); chain.size() > 1 && chain.begin()->first == index)
      add(to, "missing rounding", "a chain of elementwise ops rounded at its end only", program.place(index),
          std::move(chain));
  // The whole module call in fp32, rounded at its end only.
  std::map<int, Rewrite> all;
  for (int i = index; i < program.size() && program.op(i).module_call == op.module_call && all.size() < 24; ++i)
    if (computes_floats(program.op(i)) && !writes_in_place(program.op(i)) && is_half(program.op(i).outputs[0]->dtype))
      all[i] = not_rounded();
  if (all.size() < 3) return;
  all.erase(std::prev(all.end()));
  add(to, "missing rounding", program.place(index) + " to the end of its module kept wide", "", std::move(all));
}

// A wide result rounded, alone or with those after it.
void wide_result(const ProgramIndex& program, int index, at::ScalarType half, Hypotheses& to) {
  add(to, "extra rounding", fmt::format("rounded to {}", c10::toString(half)), program.place(index),
      {{index, rounded_too(half)}});
  const std::vector<int> ops = island(program, index);
  // Runs of ops from this one on: a port casts back at any of them.
  std::map<int, Rewrite> all{{ops.empty() ? index : ops.front(), rounded_too(half)}};
  for (size_t last = 1; last < ops.size(); ++last) {
    all[ops[last]] = rounded_too(half);
    if (last > 6 && last + 1 < ops.size()) continue;
    add(to, "extra rounding", fmt::format("{} each rounded to {}", last + 1, c10::toString(half)), program.place(index),
        std::map<int, Rewrite>(all));
  }
}

// Of the readers of op `index`, moved or not; rewritten ones are looked at by themselves.
bool read_by_elementwise(const ProgramIndex& program, int index, const std::map<int, Rewrite>& rewritten) {
  for (const auto& output : program.op(index).outputs)
    for (const int reader : output ? program.consumers(output->id) : std::vector<int>()) {
      if (rewritten.contains(reader)) continue;
      if (!elementwise_or_moved(program.op(reader))) return false;
      if (reader > index && moves(program.op(reader)) && !read_by_elementwise(program, reader, rewritten)) return false;
    }
  return true;
}

}  // namespace

bool changes_no_sum(const ProgramIndex& program, const FaultHypothesis& h) {
  const auto& rewrites = h.deviation.rewrites;
  return std::all_of(rewrites.begin(), rewrites.end(), [&](const auto& rewrite) {
    return elementwise_or_moved(program.op(rewrite.first)) &&
           (h.gate != Gate::dtype_path || read_by_elementwise(program, rewrite.first, rewrites));
  });
}

void cast_placements(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (!computes_floats(op)) return;
  // In fp64 inside a run of floats (a sinusoid, a RoPE table) the next rounding is to fp32.
  const bool wide = at::toRealValueType(op.outputs[0]->dtype) == at::kDouble;
  const auto half = wide ? at::kFloat : program.half();
  if (!half) return;  // nothing is rounded here
  rounded_leaves(program, index, *half, to);
  if (is_half(op.outputs[0]->dtype))
    half_result(program, index, to);
  else
    wide_result(program, index, *half, to);
}

}  // namespace parity
