// The sampler that a scheduler_config.json asks for.
#pragma once
#include <nlohmann/json.hpp>
#include <variant>

#include "models/schedulers/euler.hpp"
#include "models/schedulers/unipc.hpp"

namespace parity {

class Sampler {
 public:
  /// FlowMatchEulerDiscreteScheduler or UniPCMultistepScheduler as the Wan pipelines configure them. Throws Error for
  /// another class, and for a setting that would change the steps and is not written here.
  Sampler(const nlohmann::json& config, int64_t steps);

  /// (steps): what the transformer is told.
  const at::Tensor& timesteps() const { return timesteps_; }
  /// As FlowEuler::step, FlowUniPc::step.
  at::Tensor step(const at::Tensor& velocity, const at::Tensor& sample);

 private:
  std::variant<std::monostate, FlowEuler, FlowUniPc> way_;
  at::Tensor timesteps_;
};

}  // namespace parity
