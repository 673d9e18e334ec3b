// The noise levels that a flow-matching sampler steps through, as the schedulers of the Wan pipelines lay them out.
#pragma once
#include <ATen/ATen.h>

namespace parity {

struct FlowSchedule {
  at::Tensor sigmas;     // (steps + 1) fp32, falling, the last 0: the share of noise in the sample
  at::Tensor timesteps;  // (steps): what the transformer is told; fp32 (Euler) or int64 (UniPC)

  int64_t steps() const { return timesteps.size(0); }
};

/// Training steps between clean and noise; the unit of the time steps.
inline constexpr int64_t kTrainSteps = 1000;

/// diffusers' FlowMatchEulerDiscreteScheduler(shift).set_timesteps(steps): evenly from 1 to its smallest sigma, which
/// is shifted already, then shifted. Throws Error for fewer than one step or a shift that is not positive.
FlowSchedule euler_schedule(int64_t steps, double shift);

/// diffusers' UniPCMultistepScheduler(use_flow_sigmas, flow_shift).set_timesteps(steps): evenly from 1 towards 1 /
/// 1000, which is left out, then shifted; the first lies 1e-6 below 1, where the logarithm of the clean share exists;
/// time steps are cut off to whole numbers.
FlowSchedule unipc_schedule(int64_t steps, double shift);

}  // namespace parity
