// The device on which recorded programs are replayed. Weights, inputs and whatever a recorded op makes (its `device`
// argument, whatever it was) lie there; what a boundary hands out lies on the host.
#pragma once
#include <ATen/ATen.h>

#include <string>

namespace parity {

/// The CPU unless a ReplayDevice says otherwise.
at::Device replay_device();

/// Replays of this process run on `device` while this lives. One at a time; not while a replay is running.
class ReplayDevice {
 public:
  explicit ReplayDevice(at::Device device);
  ~ReplayDevice();
  ReplayDevice(const ReplayDevice&) = delete;
  ReplayDevice& operator=(const ReplayDevice&) = delete;

 private:
  at::Device before_;
};

/// "cpu", "cuda", "cuda:1" -> a device that this LibTorch can compute on. Throws Error, in one line that says what to
/// install or which devices there are, for any other.
at::Device usable_device(const std::string& name);

/// `tensor` in `dtype` on the replay's device; itself where it is that already.
at::Tensor on_replay_device(const at::Tensor& tensor, at::ScalarType dtype);
at::Tensor on_replay_device(const at::Tensor& tensor);

/// `tensor` on the host, where measuring and judging read it; shapes alone (device `meta`) stay what they are.
at::Tensor on_host(const at::Tensor& tensor);

}  // namespace parity
