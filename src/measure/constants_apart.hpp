// Two tensors that are one but for constants: a factor, or a factor and an offset a channel.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>

namespace parity {

/// Least squares in fp64 of `reference` = factor x `candidate`, both of the same shape.
struct FactorFit {
  double factor = 0;
  double left = 1;  // relative L2 of what the factor does not explain
};
FactorFit fit_factor(const at::Tensor& reference, const at::Tensor& candidate);

/// Least squares in fp64 of `reference` = factor x `candidate` + offset, with two numbers for each index along `axis`:
/// the L2 of what is left, relative to the reference's deviation from each channel's mean; 1 where nothing deviates.
double left_by_channels(const at::Tensor& reference, const at::Tensor& candidate, int64_t axis);

}  // namespace parity
