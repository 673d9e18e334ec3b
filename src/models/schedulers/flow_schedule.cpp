#include "models/schedulers/flow_schedule.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "core/error.hpp"

namespace parity {
namespace {

// More noise for longer: sigma -> shift sigma / (1 + (shift - 1) sigma) (Esser et al. 2024, "Scaling Rectified Flow
// Transformers", section 5.3.2).
template <typename Number>
Number shifted(Number sigma, Number shift) {
  return shift * sigma / (1 + (shift - 1) * sigma);
}

void check_schedule(int64_t steps, double shift) {
  if (steps < 1 || steps > kTrainSteps)
    throw Error(fmt::format("[schedule] {} steps: between 1 and {} are possible", steps, kTrainSteps));
  if (!(shift > 0) || !std::isfinite(shift)) throw Error(fmt::format("[schedule] shift {} is not positive", shift));
}

// numpy.linspace: `count` numbers from `first` to `last`.
std::vector<double> evenly(double first, double last, int64_t count) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(
        i + 1 == count && i > 0
            ? last
            : static_cast<double>(i) * ((last - first) / static_cast<double>(std::max<int64_t>(1, count - 1))) + first);
  return numbers;
}

at::Tensor with_zero(const std::vector<double>& sigmas) {
  return at::cat({at::tensor(sigmas, at::kDouble).to(at::kFloat), at::zeros({1}, at::kFloat)});
}

}  // namespace

FlowSchedule euler_schedule(int64_t steps, double shift) {
  check_schedule(steps, shift);
  constexpr double kUnit = kTrainSteps;
  const float smallest = shifted(1.0F / static_cast<float>(kTrainSteps), static_cast<float>(shift));
  auto sigmas = evenly(kUnit, static_cast<double>(smallest) * kUnit, steps);
  for (double& sigma : sigmas) sigma = shifted(sigma / kUnit, shift);
  const auto all = with_zero(sigmas);
  return {all, all.narrow(0, 0, steps) * kUnit};
}

FlowSchedule unipc_schedule(int64_t steps, double shift) {
  check_schedule(steps, shift);
  constexpr double kUnit = kTrainSteps, kBelowOne = 1e-6;
  auto sigmas = evenly(1, 1 / kUnit, steps + 1);
  sigmas.pop_back();
  for (double& sigma : sigmas) sigma = shifted(sigma, shift);
  if (std::abs(sigmas[0] - 1) < kBelowOne) sigmas[0] -= kBelowOne;
  return {with_zero(sigmas), (at::tensor(sigmas, at::kDouble) * kUnit).to(at::kLong)};
}

}  // namespace parity
