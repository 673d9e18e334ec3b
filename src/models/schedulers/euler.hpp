// Flow matching by Euler's method, as diffusers' FlowMatchEulerDiscreteScheduler steps.
#pragma once
#include "models/schedulers/flow_schedule.hpp"

namespace parity {

class FlowEuler {
 public:
  explicit FlowEuler(FlowSchedule schedule) : schedule_(std::move(schedule)) {}

  /// The sample one noise level lower: sample + (sigma_next - sigma) velocity, in fp32 or, for fp64 samples, in fp64.
  /// velocity: the transformer's output for `sample`, same shape; the result has its dtype. Throws Error after the last
  /// step.
  at::Tensor step(const at::Tensor& velocity, const at::Tensor& sample);

 private:
  FlowSchedule schedule_;
  int64_t index_ = 0;
};

}  // namespace parity
