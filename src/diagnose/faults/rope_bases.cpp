#include "diagnose/faults/rope_bases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/dtype_kind.hpp"
#include "diagnose/limits.hpp"

namespace parity {
namespace {

bool same_base(double a, double b) { return std::abs(a / b - 1) < kRecognition.listed; }

}  // namespace

bool is_listed(double base) {
  return std::any_of(kRopeBases.begin(), kRopeBases.end(), [base](double other) { return same_base(base, other); });
}

std::string OtherBase::words() const { return fmt::format("base {}{:g}", is_factor ? "x " : "", number); }

double OtherBase::of(double own) const {
  const double base = is_factor ? own * number : number;
  if (number == kSlightlyOther.number) return base;
  if (same_base(base, own) || (is_factor && is_listed(base)))
    throw std::runtime_error("the recorded base, or one that is tried by itself");
  return base;
}

std::vector<OtherBase> other_bases() {
  std::vector<OtherBase> bases;
  for (const double base : kRopeBases) bases.push_back({base, false});
  for (const double factor : kFactorsOfBases) bases.push_back({factor, true});
  return bases;
}

bool makes_angles(const ProgramIndex& program, int index, int steps) {
  const Op& op = program.op(index);
  if (std::find(kAngleProducts.begin(), kAngleProducts.end(), op.kind) == kAngleProducts.end()) return false;
  if (op.outputs.empty() || !op.outputs[0] || op.outputs[0]->shape.size() < 2) return false;
  return program.ahead(index, "cos", steps) >= 0 || program.ahead(index, "sin", steps) >= 0;
}

const Leaf* stored_frequencies(const ProgramIndex& program, int index, size_t position) {
  const Leaf* leaf = program.leaf_behind(program.argument(index, position), kStepsToAngles, true);
  return leaf != nullptr && at::isFloatingType(leaf->value.dtype) ? leaf : nullptr;
}

bool has_rounded_frequencies(const ProgramIndex& program, int index) {
  for (const std::string_view kind : kAngleProducts) {
    const int product = program.behind(index, kind, kStepsToAngles);
    if (product < 0 || !makes_angles(program, product, kStepsToAngles)) continue;
    for (const size_t position : {0, 1})
      if (const Leaf* leaf = stored_frequencies(program, product, position);
          leaf != nullptr && is_half(leaf->value.dtype))
        return true;
  }
  return false;
}

}  // namespace parity
