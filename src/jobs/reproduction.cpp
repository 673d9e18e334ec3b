#include "jobs/reproduction.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "diagnose/faults/catalogue.hpp"
#include "jobs/limits.hpp"
#include "jobs/rows.hpp"
#include "measure/measure.hpp"
#include "trace/replay.hpp"

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

}  // namespace

Reproduction::Reproduction(const Dump& dump, const Program& program, const Thresholds& limits)
    : dump_(dump), program_(program), limits_(limits), half_program_(half_of(program).has_value()) {}

at::Tensor Reproduction::check(size_t boundary, const at::Tensor& computed) {
  const Value& value = program_.boundaries[boundary].value;
  if (value.key.empty() || value.nested) return {};
  const at::Tensor recorded = stored_value(dump_, value);
  if (!program_.boundaries[boundary].comparable || recorded.sizes() != computed.sizes()) return recorded;
  const std::string why =
      complaint(measure_sums(computed, recorded), program_.boundaries[boundary], half_program_, limits_);
  if (!why.empty()) {
    OpResult row = row_of(program_, boundary);
    row.verdict = Verdict::untrusted;
    row.tensor_dtype = short_dtype_name(value.dtype);
    row.diagnosis = fmt::format(
        "the reference's recorded result does not come out here: {}, on the values recorded before it; it was recorded "
        "on other kernels, edited, or by ops that cannot be replayed, and nothing can be judged by it",
        why);
    rows_.push_back(std::move(row));
  }
  return recorded;
}

std::vector<OpResult> Reproduction::rows() const {
  if (rows_.size() <= kShown) return rows_;
  std::vector<OpResult> shown(rows_.begin(), rows_.begin() + kShown);
  shown.back().diagnosis += fmt::format("; and {} more recorded results", rows_.size() - kShown);
  return shown;
}

}  // namespace parity
