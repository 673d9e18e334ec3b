// Convolution by our own linear kernel.
#include "ops/own.hpp"

namespace parity::ops {

at::Tensor own_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::IntArrayRef stride) {
  if (weight.dim() == 4)
    return own_conv(x.unsqueeze(2), weight.unsqueeze(2), bias, {1, stride[0], stride[1]}).squeeze(2);
  auto voxels = x;
  for (int64_t axis = 0; axis < 3; ++axis) voxels = voxels.unfold(2 + axis, weight.size(2 + axis), stride[axis]);
  voxels = voxels.permute({0, 2, 3, 4, 1, 5, 6, 7});  // (batch, frames, height, width, in, kt, kh, kw)
  const auto rows = voxels.reshape({-1, weight[0].numel()});
  const auto y = own_linear(rows, weight.contiguous().flatten(1), bias);
  return y.view({voxels.size(0), voxels.size(1), voxels.size(2), voxels.size(3), -1})
      .permute({0, 4, 1, 2, 3})
      .contiguous(x.suggest_memory_format());  // as LibTorch lays it out: what comes next may add in memory's order
}

}  // namespace parity::ops
