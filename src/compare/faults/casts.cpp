// Cast placements: a rounding that the recorded program has left out, or one that it has not put in.
#include <fmt/format.h>

#include "compare/faults/catalogue.hpp"

namespace parity {
namespace {

bool is_half(at::ScalarType dtype) { return dtype == at::kBFloat16 || dtype == at::kHalf; }

at::ScalarType half_of(const Program& program) {
  for (const Boundary& b : program.boundaries)
    if (is_half(b.value.dtype)) return b.value.dtype;
  return at::kBFloat16;
}

bool computes_floats(const Op& op) {
  return !op.view && op.opaque.empty() && !op.outputs.empty() && op.outputs[0] &&
         (at::isFloatingType(op.outputs[0]->dtype) || at::isComplexType(op.outputs[0]->dtype));
}

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
      if (result && (result->is_floating_point() || result->is_complex())) result = rounded(*result, half);
    return results;
  };
}

void add(Hypotheses& to, std::string fault, std::string detail, std::map<int, Rewrite> rewrites) {
  Hypothesis h{std::move(fault), std::move(detail), Gate::dtype_path, true, {}};
  h.deviation.rewrites = std::move(rewrites);
  to.push_back(std::move(h));
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

}  // namespace

void cast_placements(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (!computes_floats(op)) return;
  const at::ScalarType half = half_of(program.program());
  if (is_half(op.outputs[0]->dtype)) {
    add(to, "missing rounding", fmt::format("{} kept wide", op.path), {{index, not_rounded()}});
    // The whole module call in fp32, rounded at its end only.
    std::map<int, Rewrite> all;
    for (int i = index; i < program.size() && program.op(i).module_call == op.module_call && all.size() < 24; ++i)
      if (computes_floats(program.op(i)) && is_half(program.op(i).outputs[0]->dtype)) all[i] = not_rounded();
    if (all.size() > 1) {
      all.erase(std::prev(all.end()));
      if (all.size() > 1)
        add(to, "missing rounding", fmt::format("{} to the end of its module kept wide", op.path), std::move(all));
    }
    return;
  }
  add(to, "extra rounding", fmt::format("{} rounded to {}", op.path, c10::toString(half)),
      {{index, rounded_too(half)}});
  const std::vector<int> ops = island(program, index);
  if (ops.size() < 2) return;
  std::map<int, Rewrite> all;
  for (const int i : ops) all[i] = rounded_too(half);
  add(to, "extra rounding",
      fmt::format("{} … {} each rounded to {}", op.path, program.path(ops.back()), c10::toString(half)),
      std::move(all));
}

}  // namespace parity
