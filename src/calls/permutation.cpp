#include "calls/permutation.hpp"

#include <ATen/ops/linalg_vector_norm.h>

#include <algorithm>

#include "pair/limits.hpp"

namespace parity {
namespace {

double l2_norm(const at::Tensor& x) { return at::linalg_vector_norm(x).item<double>(); }

std::optional<size_t> index_of(const at::Tensor& value, const std::vector<at::Tensor>& others) {
  std::vector<double> far;
  for (const at::Tensor& other : others) far.push_back(l2_norm(other - value));
  const auto nearest = std::ranges::min_element(far);
  if (!(*nearest < kPairLimits.content.same * l2_norm(value))) return std::nullopt;
  for (const double& distance : far)
    if (&distance != &*nearest && !(*nearest < kPairLimits.evidence.far_better * distance)) return std::nullopt;
  return static_cast<size_t>(nearest - far.begin());
}

}  // namespace

std::optional<Permutation> permutation_by_content(const std::vector<at::Tensor>& values,
                                                  const std::vector<at::Tensor>& others) {
  Permutation order;
  for (const at::Tensor& value : values) {
    const auto index = index_of(value, others);
    if (!index || std::ranges::find(order, *index) != order.end()) return std::nullopt;
    order.push_back(*index);
  }
  return order;
}

}  // namespace parity
