// What rounding alone does to each element.
#include <cmath>
#include <limits>

#include "core/precision.hpp"
#include "measure/local.hpp"

namespace parity {
namespace {

// Of the mean variance, for elements without noise: an exact zero is not a certainty.
constexpr double kExactZero = 1e-4;

at::Tensor magnitude(const at::Tensor& t) { return at::nan_to_num(t.is_complex() ? t.abs() : t, 0, 0, 0); }

}  // namespace

at::Tensor noise_by_element(const at::Tensor& recorded, const std::vector<at::Tensor>& valid) {
  const double unit = least_roundoff(recorded.scalar_type());
  const at::Tensor wide = raised(recorded), values = magnitude(wide);
  at::Tensor variance = (unit * values).square() / 3;
  for (const at::Tensor& other : valid) {
    const at::Tensor d = magnitude(raised(other) - wide);
    const at::Tensor row = d.dim() > 0 ? d.square().mean({-1}, true) : d.square();
    variance = variance + row / static_cast<double>(valid.size());
  }
  const double typical = values.square().mean().item<double>() * unit * unit / 3;
  return variance + kExactZero * typical + std::numeric_limits<double>::min();
}

Projection stronger_projection(const Difference& difference, const Difference& direction, double reference_norm,
                               const at::Tensor& weight, int64_t parts) {
  const Projection plain = project(difference, direction, reference_norm, {}, parts);
  if (!weight.defined()) return plain;
  Projection white = project(difference, direction, reference_norm, weight, parts);
  white.size = plain.size;
  white.plain = plain.plain;
  return std::abs(white.z) > std::abs(plain.z) ? white : plain;
}

}  // namespace parity
