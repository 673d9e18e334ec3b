#include "pair/folded.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/precision.hpp"
#include "measure/constants_apart.hpp"
#include "measure/reordered.hpp"
#include "pair/limits.hpp"

namespace parity {
namespace {

bool enough(int64_t elements) { return static_cast<double>(elements) >= kPairLimits.moved.folded_elements; }

}  // namespace

double folded_limit(at::ScalarType dtype) {
  const MovedLimits& limits = kPairLimits.moved;
  return std::min<double>(limits.folded, limits.folded_units * unit_roundoff(dtype));
}

std::string folded_in_weights(const at::Tensor& reference, const at::Tensor& candidate) {
  const double most = folded_limit(reference.scalar_type());
  if (!enough(reference.numel())) return "";
  const FactorFit fit = fit_factor(reference, candidate);
  if (fit.left <= most) return fmt::format("the reference's divided by {:.4g}", fit.factor);
  for (const int64_t axis : {reference.dim() - 1, int64_t{1}})
    if (reference.dim() > 1 && reference.size(axis) > 1 && enough(reference.numel() / reference.size(axis)) &&
        left_by_channels(reference, candidate, axis) <= most)
      return "the reference's without a factor and an offset a channel";
  if (const auto order = reordered(reference, candidate); order && fit_factor(order->value, candidate).left <= most)
    return "the reference's with " + order->detail;
  return "";
}

}  // namespace parity
