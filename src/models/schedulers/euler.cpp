#include "models/schedulers/euler.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace parity {

at::Tensor FlowEuler::step(const at::Tensor& velocity, const at::Tensor& sample) {
  if (index_ >= schedule_.steps())
    throw Error(fmt::format("[euler] the schedule has {} steps, all taken", schedule_.steps()));
  const auto compute = sample.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto sigmas = schedule_.sigmas.to(compute);
  const auto dt = sigmas[index_ + 1] - sigmas[index_];
  ++index_;
  return (sample.to(compute) + dt * velocity).to(velocity.scalar_type());
}

}  // namespace parity
