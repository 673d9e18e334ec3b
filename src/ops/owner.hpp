// May an op write into its argument?
#pragma once
#include <ATen/ATen.h>

namespace parity::ops {

/// True when nobody else can see `x`'s memory: one reference to the tensor, one to its storage, and the storage is
/// LibTorch's own (a tensor over a mapped file or over somebody's buffer is not). A probe that keeps a value thereby
/// protects it.
bool sole_owner(const at::Tensor& x);

}  // namespace parity::ops
