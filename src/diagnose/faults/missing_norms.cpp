// Norms left out altogether: what came in goes on. Fused ones, and those written out: x rsqrt(mean(x^2) + eps), or over
// a root, with or without mean, gain and bias.
#include <fmt/format.h>

#include <string_view>

#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

constexpr const char* kMissing = "norm missing";

// A weight with one number a feature: itself, seen otherwise, or with 1 added.
bool is_gain_or_bias(const ProgramIndex& program, int64_t id, const Value& normed) {
  constexpr int kSteps = 3;
  const Value* value = program.value(id);
  if (value == nullptr || value->elements() >= normed.elements()) return false;
  for (int step = 0; step <= kSteps && id >= 0; ++step) {
    if (program.leaf(id) != nullptr) return true;
    const int made = program.producer(id);
    if (made < 0) return false;
    const Op& op = program.op(made);
    if (!op.view && op.kind != "_to_copy" && !(op.kind == "add" && program.number(made, 1))) return false;
    id = program.argument(made, 0);
  }
  return false;
}

// One number for what `x` is normed over: of its shape, but for 1 there.
bool is_statistic_of(const ProgramIndex& program, int64_t id, const Value& x) {
  const Value* value = program.value(id);
  if (value == nullptr || value->shape.size() != x.shape.size() || value->shape == x.shape) return false;
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (value->shape[i] != x.shape[i] && value->shape[i] != 1) return false;
  return true;
}

// Which argument of op `index` is normed by the other, a reciprocal root or a root; nullptr: no norm.
const char* normed_argument(const ProgramIndex& program, int index) {
  constexpr int kSteps = 3;  // eps, a limit, expanded
  const Op& op = program.op(index);
  const int64_t left = program.argument(index, 0), right = program.argument(index, 1);
  const Value *one = program.value(left), *other = program.value(right);
  if (one == nullptr || other == nullptr) return nullptr;
  const auto made_by = [&](int64_t id, std::string_view kind, int steps) {
    const int made = program.producer(id);
    return made >= 0 && program.behind(made, kind, steps) >= 0;
  };
  if (op.kind == "mul") {
    if (is_statistic_of(program, right, *one) && made_by(right, "rsqrt", 1)) return "self";
    if (is_statistic_of(program, left, *other) && made_by(left, "rsqrt", 1)) return "other";
  }
  if (op.kind == "div" && is_statistic_of(program, right, *one) &&
      (made_by(right, "sqrt", kSteps) || made_by(right, "std", kSteps)))
    return "self";
  return nullptr;
}

Rewrite passed(const char* argument) {
  return [argument](OpCall& call) { return Results{call.tensor(argument).clone()}; };
}

// Gain and bias behind the norm's product, which fall away with it.
void without_gain_and_bias(const ProgramIndex& program, int norm, std::map<int, Rewrite>& rewrites) {
  constexpr int kSteps = 4;  // cast, gain, cast, bias
  int last = norm;
  for (int step = 0; step < kSteps; ++step) {
    const auto& output = program.op(last).outputs[0];
    if (!output || program.consumers(output->id).size() != 1) return;
    const int next = program.consumers(output->id).front();
    const Op& op = program.op(next);
    if (op.outputs.empty() || !op.outputs[0]) return;
    if (op.kind == "mul" || op.kind == "add") {
      const bool first = program.argument(next, 0) == output->id;
      if (!is_gain_or_bias(program, program.argument(next, first ? 1 : 0), *output)) return;
      rewrites[next] = passed(first ? "self" : "other");
    } else if (op.kind != "_to_copy") {
      return;
    }
    last = next;
  }
}

void add_missing(const ProgramIndex& program, int first, std::map<int, Rewrite> rewrites, Hypotheses& to) {
  FaultHypothesis h{kMissing, "its input goes on", program.place(first)};
  h.deviation.rewrites = std::move(rewrites);
  h.gross = true;
  to.push_back(std::move(h));
}

// x - mean(x): the op of the norm that is the first to change.
bool centres(const ProgramIndex& program, int index) {
  const Value* x = program.value(program.argument(index, 0));
  const int64_t mean = program.argument(index, 1);
  if (program.op(index).kind != "sub" || x == nullptr || mean < 0 || !is_statistic_of(program, mean, *x)) return false;
  const int made = program.producer(mean);
  return made >= 0 && program.op(made).kind == "mean";
}

void written_out_norm(const ProgramIndex& program, int index, int first, Hypotheses& to) {
  const char* normed = normed_argument(program, index);
  if (normed == nullptr) return;
  std::map<int, Rewrite> rewrites{{index, passed(normed)}};
  if (first != index) rewrites[first] = passed("self");
  without_gain_and_bias(program, index, rewrites);
  add_missing(program, first, std::move(rewrites), to);
}

}  // namespace

void missing_norm_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (op.outputs.empty() || !op.outputs[0]) return;
  const bool fused = op.name.find("layer_norm") != std::string::npos || op.name.find("rms_norm") != std::string::npos ||
                     op.name.find("group_norm") != std::string::npos || op.name.find("batch_norm") != std::string::npos;
  if (fused && op.name.find("backward") == std::string::npos)
    return add_missing(program, index,
                       {{index,
                         [](OpCall& call) {
                           Results results = call.run_again();
                           results[0] = call.tensor("input").clone();
                           return results;
                         }}},
                       to);
  if (centres(program, index)) {
    for (const int reader : program.consumers(op.outputs[0]->id))
      if (program.op(reader).kind == "mul" || program.op(reader).kind == "div")
        written_out_norm(program, reader, index, to);
    return;
  }
  if (op.kind != "mul" && op.kind != "div") return;
  const char* normed = normed_argument(program, index);
  if (normed == nullptr) return;
  const int made = program.producer(program.argument(index, std::string_view(normed) == "self" ? 0 : 1));
  if (made < 0 || !centres(program, made)) written_out_norm(program, index, index, to);
}

}  // namespace parity
