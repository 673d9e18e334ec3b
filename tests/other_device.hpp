// A device beside the CPU, for tests of replays on a device: it owns its memory, LibTorch refuses to mix it with the
// CPU's, and its kernels are the CPU's through LibTorch's own fallback, so that bits can be compared.
#pragma once
#include <ATen/ATen.h>

namespace parity::test {

at::Device other_device();

/// Ops that it has run so far.
int64_t runs_on_other_device();

}  // namespace parity::test
