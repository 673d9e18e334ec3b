#include "measure/local.hpp"

#include <algorithm>
#include <cmath>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "measure/measure.hpp"

namespace parity {
namespace {

double share_unequal(const at::Tensor& a, const at::Tensor& b) { return 1 - equal_share(measure_sums(a, b)); }

double fullest_row(const at::Tensor& recorded, const at::Tensor& candidate) {
  const at::Tensor both_nan = candidate.isnan().logical_and(recorded.isnan()),
                   unequal = candidate.ne(recorded).logical_and(both_nan.logical_not());
  const at::Tensor of_rows = unequal.dim() == 0 ? unequal : unequal.sum(-1);
  return of_rows.max().item().toDouble() / static_cast<double>(unequal.numel());
}

}  // namespace

at::Tensor finite_or_zero(const at::Tensor& tensor) { return at::nan_to_num(tensor, 0.0, 0.0, 0.0); }

at::Tensor raised(const at::Tensor& tensor) { return tensor.to(redirect(tensor.scalar_type(), Precision::fp64)); }

namespace {

// Rows that are decided otherwise than under any valid arithmetic, though these agree: sets, so the order of equally
// large ones does not count.
int64_t rows_decided_otherwise(const LocalValues& v) {
  const auto sorted = [](const at::Tensor& t) {
    const at::Tensor whole = t.dim() == 0 ? t.reshape({1}) : t;
    return std::get<0>((whole.scalar_type() == at::kBool ? whole.to(at::kByte) : whole).sort(-1));
  };
  const at::Tensor recorded = sorted(v.recorded);
  const at::Tensor candidate = sorted(v.candidate.to(v.recorded.scalar_type()));
  at::Tensor otherwise = candidate.ne(recorded).any(-1);
  for (const at::Tensor& other : v.valid) otherwise = otherwise.logical_and(sorted(other).eq(recorded).all(-1));
  return otherwise.sum().item<int64_t>();
}

// Over the oracle's norm, absolute where that is zero.
double error(double distance, double scale) { return scale > 0 ? distance / scale : distance; }

Errors errors_of(const LocalValues& v, const OracleStats& oracle) {
  Errors e;
  e.scale = oracle.scale;
  e.error = error(oracle.candidate_distance, e.scale);
  e.recorded_error = e.null_error = error(oracle.reference_distance, e.scale);
  for (const at::Tensor& other : v.valid) {
    const OracleStats null = measure_against_oracle(v.oracle, other, other);
    e.null_error = std::max(e.null_error, error(null.reference_distance, null.scale));
  }
  return e;
}

constexpr double kFar = 32;  // roundings from the oracle: more than a sum's own

// The matched filter is worth its cost where the plain projection leans at all.
constexpr double kLeans = 2;

void measure_gain(Evidence& e, const LocalValues& v) {
  at::Tensor weight;
  const auto of = [&](const at::Tensor& value) {
    return stronger_projection({value, v.recorded}, v.recorded, e.forced.reference_norm, weight);
  };
  e.gain = of(v.candidate);
  if (is_half(e.reference_dtype) && std::abs(e.gain.z) > kLeans) {
    weight = noise_by_element(v.recorded, v.valid).rsqrt();
    e.gain = of(v.candidate);
  }
  for (const at::Tensor& other : v.valid) {
    const Projection gain = of(other);
    if (std::abs(gain.amplitude) > std::abs(e.null_gain.amplitude)) e.null_gain = gain;
  }
}

void measure_null(Evidence& e, const LocalValues& v) {
  const bool far = e.null_error > kFar * unit_roundoff(e.reference_dtype);
  e.unequal = 1 - equal_share(e.forced);
  if (e.unequal > 0 && is_half(e.reference_dtype)) e.fullest_row = fullest_row(v.recorded, v.candidate);
  for (const at::Tensor& other : v.valid) {
    if (e.unequal > 0) e.unequal = std::min(e.unequal, share_unequal(other, v.candidate));
    e.null_unequal = std::max(e.null_unequal, share_unequal(v.recorded, other));
    if (far) e.null_apart = std::max(e.null_apart, measure_sums(v.recorded, other).rel_l2.value_or(INFINITY));
  }
}

// A row is unsettled where a valid arithmetic is kFar times as far from the oracle as from half of the rows, and as a
// rounding; at most a quarter of them, which leaves less than a tenth of the error.
constexpr double kMostUnsettled = .25, kWorth = .1;

at::Tensor in_rows(const at::Tensor& t) { return t.reshape({-1, t.size(-1)}); }

// By row: how far a valid arithmetic is from the oracle, over the row's norm or that of all on average, whichever is
// larger: a row of nearly nothing is not far off by itself.
at::Tensor far_off(const LocalValues& v) {
  const at::Tensor oracle = finite_or_zero(in_rows(v.oracle)), size = oracle.norm(2, -1);
  at::Tensor apart = at::zeros_like(size);
  const auto look_at = [&](const at::Tensor& t) {
    apart = at::maximum(apart, (finite_or_zero(in_rows(t).to(oracle.scalar_type())) - oracle).norm(2, -1));
  };
  look_at(v.recorded);
  for (const at::Tensor& other : v.valid) look_at(other);
  return apart / at::maximum(size, size.square().mean().sqrt());
}

std::optional<SettledRows> settled_rows(const LocalValues& v, const Errors& whole) {
  const double far = kFar * unit_roundoff(v.recorded.scalar_type());
  if (v.oracle.is_complex() || v.oracle.dim() < 2 || v.oracle.numel() == 0 || !(whole.null_error > far)) return {};
  const at::Tensor off = far_off(v);
  const at::Tensor rows = off.le(std::max(far, kFar * off.median().item<double>())).nonzero().squeeze(-1);
  SettledRows settled;
  settled.share = static_cast<double>(rows.numel()) / static_cast<double>(off.numel());
  if (settled.share == 1 || settled.share < 1 - kMostUnsettled) return {};
  const auto of = [&](const at::Tensor& t) { return in_rows(t).index_select(0, rows); };
  LocalValues some{of(v.candidate), of(v.oracle), of(v.recorded), {}};
  for (const at::Tensor& other : v.valid) some.valid.push_back(of(other));
  static_cast<Errors&>(settled) = errors_of(some, measure_against_oracle(some.oracle, some.recorded, some.candidate));
  return settled.null_error < kWorth * whole.null_error ? std::optional(settled) : std::nullopt;
}

}  // namespace

Evidence measure_local(const LocalValues& v) {
  Evidence e;
  e.reference_dtype = v.recorded.scalar_type();
  e.candidate_dtype = effective_dtype(v.candidate, e.reference_dtype);
  e.forced = measure(v.recorded, v.candidate);
  if (!at::isFloatingType(e.reference_dtype) && !at::isComplexType(e.reference_dtype)) {
    if (!at::isFloatingType(v.candidate.scalar_type()) && v.recorded.numel() > 0)
      e.decided_otherwise = rows_decided_otherwise(v);
    return e;
  }
  e.oracle = measure_against_oracle(v.oracle, v.recorded, v.candidate);
  static_cast<Errors&>(e) = errors_of(v, e.oracle);
  e.settled = settled_rows(v, e);
  if (e.reference_dtype == at::kFloat && e.candidate_dtype == at::kFloat)
    e.narrower = held_by_half(v.recorded, v.candidate);
  measure_gain(e, v);
  measure_null(e, v);
  e.towards_zero = share_towards_zero(v.recorded, v.candidate);
  return e;
}

at::ScalarType effective_dtype(const at::Tensor& values, at::ScalarType narrow) {
  const at::ScalarType dtype = values.scalar_type();
  const bool narrower = (is_half(narrow) && (dtype == at::kFloat || dtype == at::kDouble)) ||
                        (narrow == at::kFloat && dtype == at::kDouble);
  return narrower && all_held_by(values, narrow) ? narrow : dtype;
}

}  // namespace parity
