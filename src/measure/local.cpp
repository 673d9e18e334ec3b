#include "measure/local.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "measure/measure.hpp"

namespace parity {
namespace {

// Reals in fp64; complex numbers as pairs.
at::Tensor reals(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
  return whole.to(at::kDouble).reshape(-1);
}

at::Tensor finite_or_zero(const at::Tensor& tensor) { return at::nan_to_num(tensor, 0.0, 0.0, 0.0); }

double number(const at::Tensor& scalar) { return scalar.item<double>(); }

double share_unequal(const at::Tensor& a, const at::Tensor& b) {
  const Stats s = measure(a, b);
  return 1 - s.bitwise_equal_share.value_or(0);
}

}  // namespace

at::Tensor raised(const at::Tensor& tensor) { return tensor.to(redirect(tensor.scalar_type(), Precision::fp64)); }

double Projection::fisher() const {
  return std::atanh(std::clamp(correlation, -.999999, .999999)) * std::sqrt(elements);
}

double Projection::sigma() const { return std::abs(z_rows) < std::abs(z) ? z_rows : z; }

namespace {

// Student's t of n - 1 degrees of freedom as a standard normal number (Wallace 1959, Ann. Math. Stat. 30:1121).
double normal_of_t(double t, double freedom) {
  const double size = std::sqrt(freedom * std::log1p(t * t / freedom)) * (8 * freedom + 1) / (8 * freedom + 3);
  return t < 0 ? -size : size;
}

// The mean of the rows' sums over its standard error.
double z_of_rows(const std::vector<double>& rows) {
  double n = 0, sum = 0, squares = 0;
  for (const double row : rows) {
    n += row != 0;
    sum += row;
    squares += row * row;
  }
  if (n < 3) return INFINITY;  // too few to say: the elements decide
  const double spread = squares - sum * sum / n;
  if (!(spread > 0)) return INFINITY;
  return normal_of_t(sum / std::sqrt(n) / std::sqrt(spread / (n - 1)), n - 1);
}

int64_t row_width(const at::Tensor& tensor) {
  const int64_t last = tensor.dim() > 1 ? tensor.size(-1) : 1;
  return tensor.is_complex() && tensor.dim() > 1 ? 2 * last : last;
}

// d g, g^2, d^2, d^4, (d g)^2, summed.
using ProjectionSums = std::array<double, 5>;
constexpr int64_t kProjected = 1 << 16;  // elements summed in one go: the order does not depend on the threads

ProjectionSums sums_of(const double* d, const double* g, int64_t n) {
  constexpr int64_t kSums = 8;  // independent ones, for vector units
  std::array<std::array<double, kSums>, 5> sums{};
  const auto add = [&](int64_t i, int64_t lane) {
    const auto finite = [](double x) { return std::abs(x) <= std::numeric_limits<double>::max() ? x : 0.; };
    const double x = finite(d[i]), y = finite(g[i]), xy = x * y, xx = x * x;
    sums[0][lane] += xy;
    sums[1][lane] += y * y;
    sums[2][lane] += xx;
    sums[3][lane] += xx * xx;
    sums[4][lane] += xy * xy;
  };
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int64_t lane = 0; lane < kSums; ++lane) add(i + lane, lane);
  for (; i < n; ++i) add(i, 0);
  ProjectionSums all{};
  for (size_t k = 0; k < all.size(); ++k)
    for (const double part : sums[k]) all[k] += part;
  return all;
}

// In one pass, so that nothing of the tensors' size is made; `rows`: of d g, where rows are wider than one.
ProjectionSums sums_over_rows(const at::Tensor& d, const at::Tensor& g, int64_t width, std::vector<double>& rows) {
  const int64_t n = d.numel(), step = width > 1 ? width : kProjected, count = (n + step - 1) / step;
  const int64_t together = std::max<int64_t>(1, kProjected / step), blocks = (count + together - 1) / together;
  std::vector<ProjectionSums> parts(static_cast<size_t>(blocks), ProjectionSums{});
  rows.assign(width > 1 ? static_cast<size_t>(count) : 0, 0);
  const double *from = d.const_data_ptr<double>(), *along = g.const_data_ptr<double>();
  at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b)
      for (int64_t row = b * together; row < std::min(count, (b + 1) * together); ++row) {
        const ProjectionSums sums = sums_of(from + row * step, along + row * step, std::min(step, n - row * step));
        for (size_t k = 0; k < sums.size(); ++k) parts[static_cast<size_t>(b)][k] += sums[k];
        if (!rows.empty()) rows[static_cast<size_t>(row)] = sums[0];
      }
  });
  ProjectionSums all{};
  for (const ProjectionSums& part : parts)
    for (size_t k = 0; k < all.size(); ++k) all[k] += part[k];
  return all;
}

}  // namespace

Projection project(const at::Tensor& difference, const at::Tensor& direction, double reference_norm) {
  std::vector<double> rows;
  const auto [dg, gg, dd, fourth, products] =
      sums_over_rows(reals(difference).contiguous(), reals(direction).contiguous(), row_width(difference), rows);
  Projection p;
  if (!(gg > 0)) return p;
  p.amplitude = dg / gg;
  p.elements = fourth > 0 ? dd * dd / fourth : 0;
  p.z = products > 0 ? dg / std::sqrt(products) : 0;
  p.z_rows = rows.empty() ? INFINITY : z_of_rows(rows);
  p.explained = dd > 0 ? (2 * dg - gg) / dd : 0;
  p.correlation = dd > 0 ? dg / std::sqrt(dd * gg) : 0;
  p.size = reference_norm > 0 ? std::sqrt(gg) / reference_norm : 0;
  return p;
}

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

void set_errors(Evidence& e, const LocalValues& v) {
  e.oracle = measure_against_oracle(v.oracle, v.recorded, v.candidate);
  e.scale = e.oracle.scale;
  e.error = error(e.oracle.candidate_distance, e.scale);
  e.recorded_error = e.null_error = error(e.oracle.reference_distance, e.scale);
  for (const at::Tensor& other : v.valid) {
    const OracleStats null = measure_against_oracle(v.oracle, other, other);
    e.null_error = std::max(e.null_error, error(null.reference_distance, null.scale));
  }
}

void measure_null(Evidence& e, const LocalValues& v, const at::Tensor& recorded, double norm) {
  e.unequal = 1 - e.forced.bitwise_equal_share.value_or(0);
  for (const at::Tensor& other : v.valid) {
    if (e.unequal > 0) e.unequal = std::min(e.unequal, share_unequal(other, v.candidate));
    e.null_unequal = std::max(e.null_unequal, share_unequal(v.recorded, other));
    const Projection gain = project(reals(other) - recorded, recorded, norm);
    if (std::abs(gain.amplitude) > std::abs(e.null_gain.amplitude)) e.null_gain = gain;
  }
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
  set_errors(e, v);
  const at::Tensor recorded = reals(v.recorded), difference = reals(v.candidate) - recorded;
  const double norm = number(finite_or_zero(recorded).norm());
  e.gain = project(raised(v.candidate) - raised(v.recorded), v.recorded, norm);
  measure_null(e, v, recorded, norm);
  const at::Tensor differs = difference.ne(0), smaller = reals(v.candidate).abs().lt(recorded.abs());
  const double changed = number(differs.sum().to(at::kDouble));
  e.towards_zero = changed > 0 ? number(differs.logical_and(smaller).sum().to(at::kDouble)) / changed : 0;
  return e;
}

at::ScalarType effective_dtype(const at::Tensor& values, at::ScalarType narrow) {
  const at::ScalarType dtype = values.scalar_type();
  const bool narrower = (is_half(narrow) && (dtype == at::kFloat || dtype == at::kDouble)) ||
                        (narrow == at::kFloat && dtype == at::kDouble);
  if (!narrower) return dtype;
  const at::Tensor finite = finite_or_zero(values);
  return at::equal(finite.to(narrow).to(dtype), finite) ? narrow : dtype;
}

}  // namespace parity
