#include "measure/local.hpp"

#include <algorithm>
#include <cmath>

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

Projection project(const at::Tensor& difference, const at::Tensor& direction, double reference_norm) {
  const at::Tensor d = finite_or_zero(reals(difference)), g = finite_or_zero(reals(direction)), product = d * g;
  const double dg = number(product.sum()), gg = number(at::dot(g, g)), dd = number(at::dot(d, d));
  Projection p;
  if (!(gg > 0)) return p;
  p.amplitude = dg / gg;
  const double fourth = number(d.square().square().sum());
  p.elements = fourth > 0 ? dd * dd / fourth : 0;
  const double spread = std::sqrt(number(at::dot(product, product)));
  p.z = spread > 0 ? dg / spread : 0;
  p.explained = dd > 0 ? (2 * dg - gg) / dd : 0;
  p.correlation = dd > 0 ? dg / std::sqrt(dd * gg) : 0;
  p.size = reference_norm > 0 ? std::sqrt(gg) / reference_norm : 0;
  return p;
}

Evidence measure_local(const LocalValues& v) {
  Evidence e;
  e.reference_dtype = v.recorded.scalar_type();
  e.candidate_dtype = effective_dtype(v.candidate, e.reference_dtype);
  e.forced = measure(v.recorded, v.candidate);
  if (!at::isFloatingType(e.reference_dtype) && !at::isComplexType(e.reference_dtype)) return e;
  e.oracle = measure_against_oracle(v.oracle, v.recorded, v.candidate);
  e.null_error = e.oracle.reference_error.value_or(0);
  e.unequal = std::min(1 - e.forced.bitwise_equal_share.value_or(0), share_unequal(v.exact, v.candidate));
  const at::Tensor recorded = reals(v.recorded), difference = reals(v.candidate) - recorded;
  const double norm = number(finite_or_zero(recorded).norm());
  e.gain = project(difference, recorded, norm);
  for (const at::Tensor& other : {v.exact, v.reordered}) {
    e.null_error =
        std::max(e.null_error, measure_against_oracle(v.oracle, v.recorded, other).candidate_error.value_or(0));
    e.null_unequal = std::max(e.null_unequal, share_unequal(v.recorded, other));
    const Projection gain = project(reals(other) - recorded, recorded, norm);
    if (std::abs(gain.amplitude) > std::abs(e.null_gain.amplitude)) e.null_gain = gain;
  }
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
