#include "other_device.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace parity::test {
namespace {

constexpr c10::DispatchKeySet kOtherKey(c10::DispatchKey::PrivateUse1);
std::atomic<int64_t> runs{0};

struct OtherMemory final : at::Allocator {
  at::DataPtr allocate(size_t bytes) override {
    void* memory =
        std::aligned_alloc(64, (bytes / 64 + 1) * 64);  // MKL's sums depend on where within a line they begin
    return {memory, memory, &std::free, other_device()};
  }
  at::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};
OtherMemory memory;

at::Tensor empty_there(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                       std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::Tensor(at::detail::empty_generic(size, &memory, kOtherKey, c10::dtype_or_default(dtype), format));
}

at::Tensor empty_strided_there(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                               std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::Tensor(at::detail::empty_strided_generic(size, stride, &memory, kOtherKey, c10::dtype_or_default(dtype)));
}

// The same memory as the CPU sees it.
at::Tensor as_cpu(const at::Tensor& t) {
  return t.is_cpu() ? t : at::from_blob(t.data_ptr(), t.sizes(), t.strides(), t.options().device(at::kCPU));
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool) {
  as_cpu(dst).copy_(as_cpu(self));
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

// The one op that a device must bring itself.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                       bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  ++runs;
  const std::optional<at::Tensor> on_cpu = bias && bias->defined() ? std::optional(as_cpu(*bias)) : std::nullopt;
  return at::convolution_symint(as_cpu(input), as_cpu(weight), on_cpu, stride, padding, dilation, transposed,
                                output_padding, groups)
      .to(other_device());
}

// That a view falls back to a copy is said at each call.
struct Silent final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  ++runs;
  Silent silent;
  const c10::WarningUtils::WarningHandlerGuard guard(&silent);
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty_there);
  m.impl("empty_strided", &empty_strided_there);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("convolution_overrideable", &convolution);
  m.impl("resize_", &at::native::resize_);
  m.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1>);

}  // namespace

at::Device other_device() { return {at::kPrivateUse1, 0}; }

int64_t runs_on_other_device() { return runs; }

}  // namespace parity::test
