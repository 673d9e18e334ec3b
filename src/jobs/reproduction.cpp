#include "jobs/reproduction.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "diagnose/faults/catalogue.hpp"
#include "jobs/limits.hpp"
#include "jobs/rows.hpp"
#include "measure/measure.hpp"
#include "trace/machine.hpp"
#include "trace/replay.hpp"
#include "trace/settings.hpp"

namespace parity {
namespace {

constexpr size_t kShown = 3;  // rows; one broken result usually breaks many

// How far another machine's kernels may move a result on the same inputs.
double reproduction_limit(const Boundary& boundary, bool half_program, const Thresholds& limits) {
  const Value& value = boundary.value;
  const double unit = unit_roundoff(value.dtype);
  if (is_half(value.dtype)) return limits.reproduced_half.value * unit;
  const double width = value.shape.empty() ? 1 : static_cast<double>(value.shape.back());
  const double sum =
      limits.reproduced_sum.value * std::sqrt(std::max<double>(width, kReproduction.shortest_sum)) * unit;
  const bool logarithms = half_program && boundary.kind.find("attention") != std::string::npos;
  return logarithms ? std::max(sum, limits.reproduced_exponential.value) : sum;
}

std::string complaint(const Stats& s, const Boundary& boundary, bool half_program, const Thresholds& limits) {
  if (s.special_mismatch > 0)
    return fmt::format("NaN or Inf at {} elements where its program computes other values", s.special_mismatch);
  if (!is_float(boundary.value.dtype))
    return s.bitwise_equal_share.value_or(1) < 1 ? "other integers than its program computes" : "";
  const double error = s.reference_norm > 0 ? s.difference_norm / s.reference_norm : s.difference_norm;
  const double limit = reproduction_limit(boundary, half_program, limits);
  return error <= limit ? ""
                        : fmt::format("relative L2 {:.2g} from what its program computes (limit {:.2g})", error, limit);
}

/// Where it was made, as far as its kernels are not those of this process: " (device: cuda:0 there, cpu here; ...)".
std::string recorded_elsewhere(const nlohmann::json& provenance) {
  const std::string kernels = other_kernels(provenance);
  if (kernels.empty()) return "";
  const std::string operands = tf32_of(provenance);
  return fmt::format(" ({}{}{})", kernels, operands.empty() ? "" : "; TF32 there in ", operands);
}

// Does `recorded` sort as `computed` does, but for the order of equal values? `sorted`: what both give, along `axis`.
bool sorts_as_well(const at::Tensor& recorded, const at::Tensor& computed, const at::Tensor& sorted, int64_t axis) {
  const at::Tensor places = at::arange(recorded.size(axis), recorded.options());
  if (!at::equal(std::get<0>(recorded.sort(axis)).transpose(axis, -1), places.expand_as(recorded.transpose(axis, -1))))
    return false;
  const at::Tensor input = at::empty_like(sorted).scatter(axis, computed, sorted);
  return at::equal(input.gather(axis, recorded), sorted);
}

}  // namespace

Reproduction::Reproduction(const Dump& dump, const Program& program, const Thresholds& limits)
    : dump_(dump),
      program_(program),
      limits_(limits),
      half_program_(half_of(program).has_value()),
      elsewhere_(recorded_elsewhere(dump.provenance())) {}

at::Tensor Reproduction::check(size_t boundary, const at::Tensor& computed) {
  const Value& value = program_.boundaries[boundary].value;
  if (value.key.empty() || value.nested) return {};
  const at::Tensor recorded = stored_value(dump_, value);
  if (!program_.boundaries[boundary].comparable || recorded.sizes() != computed.sizes()) return recorded;
  const std::string why =
      complaint(measure_sums(computed, recorded), program_.boundaries[boundary], half_program_, limits_);
  if (!why.empty() && !differs_in_ties(boundary, recorded, computed)) {
    OpResult row = row_of(program_, boundary);
    row.verdict = Verdict::untrusted;
    row.tensor_dtype = short_dtype_name(value.dtype);
    row.diagnosis = fmt::format(
        "the reference's recorded result does not come out here: {}, on the values recorded before it; it was recorded "
        "on other kernels{}, edited, or by ops that cannot be replayed, and nothing can be judged by it",
        why, elsewhere_);
    rows_.push_back(std::move(row));
  }
  return recorded;
}

// An unstable sort leaves equal values in any order, and another device's in another one.
bool Reproduction::differs_in_ties(size_t boundary, const at::Tensor& recorded, const at::Tensor& computed) const {
  const int position = program_.boundaries[boundary].position;
  const Op* op = position < 1 ? nullptr : &program_.ops[static_cast<size_t>(position) - 1];
  if (op == nullptr || op->kind != "sort" || op->outputs.size() != 2 || !op->outputs[0] || !op->outputs[1] ||
      op->outputs[1]->id != program_.boundaries[boundary].value.id || op->outputs[0]->key.empty())
    return false;
  if (recorded.dim() == 0 || recorded.numel() == 0) return false;
  const at::Tensor sorted = stored_value(dump_, *op->outputs[0]);
  for (int64_t axis = 0; axis < recorded.dim(); ++axis)
    if (sorts_as_well(recorded, computed, sorted, axis)) return true;
  return false;
}

std::vector<OpResult> Reproduction::rows() const {
  if (rows_.size() <= kShown) return rows_;
  std::vector<OpResult> shown(rows_.begin(), rows_.begin() + kShown);
  shown.back().diagnosis += fmt::format("; and {} more recorded results", rows_.size() - kShown);
  return shown;
}

}  // namespace parity
