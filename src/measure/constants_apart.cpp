#include "measure/constants_apart.hpp"

#include <algorithm>
#include <cmath>

namespace parity {
namespace {

double total(const at::Tensor& values) { return values.sum().item<double>(); }

double share(double left, double whole) { return whole > 0 ? std::sqrt(std::max(0., left) / whole) : 1; }

}  // namespace

FactorFit fit_factor(const at::Tensor& reference, const at::Tensor& candidate) {
  const at::Tensor r = reference.to(at::kDouble), c = candidate.to(at::kDouble);
  const double squares = total(c * c);
  if (!(squares > 0)) return {};
  const double factor = total(r * c) / squares;
  return {factor, share(total((r - factor * c).square()), total(r * r))};
}

double left_by_channels(const at::Tensor& reference, const at::Tensor& candidate, int64_t axis) {
  const auto centred = [&](const at::Tensor& values) {
    const at::Tensor rows = values.to(at::kDouble).movedim(axis, 0).flatten(1);  // [channels, elements of each]
    return rows - rows.mean(1, true);
  };
  const at::Tensor r = centred(reference), c = centred(candidate);
  const at::Tensor squares = (c * c).sum(1, true), factors = (r * c).sum(1, true) / squares.clamp_min(1e-300);
  return share(total((r - factors * c).square()), total(r * r));
}

}  // namespace parity
