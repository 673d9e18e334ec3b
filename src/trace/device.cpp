#include "trace/device.hpp"

#include <ATen/Context.h>
#include <fmt/format.h>

#include "core/error.hpp"

namespace parity {
namespace {

at::Device& current_device() {
  static at::Device device(at::kCPU);
  return device;
}

at::Device parsed_device(const std::string& name) {
  try {
    return at::Device(name);
  } catch (const c10::Error&) {
    throw Error(fmt::format("--device {}: is no device; give cpu, cuda or cuda:N", name));
  }
}

}  // namespace

at::Device replay_device() { return current_device(); }

ReplayDevice::ReplayDevice(at::Device device) : before_(current_device()) { current_device() = device; }

ReplayDevice::~ReplayDevice() { current_device() = before_; }

at::Device usable_device(const std::string& name) {
  const at::Device device = parsed_device(name);
  if (device.is_cpu()) return at::kCPU;
  if (!device.is_cuda()) throw Error(fmt::format("--device {}: give cpu, cuda or cuda:N", name));
  if (!at::hasCUDA())
    throw Error(
        fmt::format("--device {}: this LibTorch is the CPU build, or finds no GPU; configure with CMAKE_PREFIX_PATH at "
                    "one with CUDA, or leave --device out",
                    name));
  const int64_t count = at::detail::getCUDAHooks().deviceCount();
  const int index = device.has_index() ? device.index() : 0;
  if (index >= count)
    throw Error(
        fmt::format("--device {}: LibTorch finds {} CUDA device{}; see parity-check doctor, or leave --device out",
                    name, count, count == 1 ? "" : "s"));
  return {at::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

at::Tensor on_replay_device(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.device() == replay_device() ? tensor.to(dtype) : tensor.to(replay_device(), dtype);
}

at::Tensor on_replay_device(const at::Tensor& tensor) { return on_replay_device(tensor, tensor.scalar_type()); }

at::Tensor on_host(const at::Tensor& tensor) { return tensor.is_cpu() || tensor.is_meta() ? tensor : tensor.cpu(); }

}  // namespace parity
