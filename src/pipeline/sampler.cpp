#include "pipeline/sampler.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/config_keys.hpp"

namespace parity {
namespace {

constexpr ConfigKeys kKeys{"scheduler", "a flow-matching scheduler's"};

// Settings that would make other steps, and the value that leaves them as they are written here.
void refuse_others(const nlohmann::json& config, const nlohmann::json& neutral) {
  for (const auto& [key, value] : neutral.items())
    if (const auto found = config.find(key); found != config.end() && !found->is_null() && *found != value)
      throw Error(fmt::format("[scheduler] {} is {}; only {} is written here", key, found->dump(), value.dump()));
}

FlowEuler euler(const nlohmann::json& config, int64_t steps, at::Tensor& timesteps) {
  refuse_others(config, {{"use_dynamic_shifting", false},
                         {"num_train_timesteps", kTrainSteps},
                         {"invert_sigmas", false},
                         {"use_karras_sigmas", false},
                         {"use_exponential_sigmas", false},
                         {"use_beta_sigmas", false},
                         {"stochastic_sampling", false}});
  auto schedule = euler_schedule(steps, kKeys.take<double>(config, "shift", 1.0));
  timesteps = schedule.timesteps;
  return FlowEuler(std::move(schedule));
}

FlowUniPc unipc(const nlohmann::json& config, int64_t steps, at::Tensor& timesteps) {
  if (!kKeys.take<bool>(config, "use_flow_sigmas", false))
    throw Error("[scheduler] use_flow_sigmas is false: not the flow matching that Wan was trained for");
  refuse_others(config, {{"prediction_type", "flow_prediction"},
                         {"predict_x0", true},
                         {"solver_type", "bh2"},
                         {"num_train_timesteps", kTrainSteps},
                         {"use_dynamic_shifting", false},
                         {"thresholding", false},
                         {"lower_order_final", true},
                         {"disable_corrector", nlohmann::json::array()},
                         {"final_sigmas_type", "zero"}});
  auto schedule = unipc_schedule(steps, kKeys.take<double>(config, "flow_shift", 1.0));
  timesteps = schedule.timesteps;
  return FlowUniPc(std::move(schedule), kKeys.take<int64_t>(config, "solver_order", 2));
}

}  // namespace

Sampler::Sampler(const nlohmann::json& config, int64_t steps) {
  const auto type = kKeys.take<std::string>(config, "_class_name");
  if (type == "FlowMatchEulerDiscreteScheduler")
    way_ = euler(config, steps, timesteps_);
  else if (type == "UniPCMultistepScheduler")
    way_ = unipc(config, steps, timesteps_);
  else
    throw Error(fmt::format(
        "[scheduler] {} is not written here; FlowMatchEulerDiscreteScheduler and UniPCMultistepScheduler are", type));
}

at::Tensor Sampler::step(const at::Tensor& velocity, const at::Tensor& sample) {
  if (auto* way = std::get_if<FlowEuler>(&way_)) return way->step(velocity, sample);
  return std::get<FlowUniPc>(way_).step(velocity, sample);
}

}  // namespace parity
