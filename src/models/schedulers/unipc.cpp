#include "models/schedulers/unipc.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace parity {

// Scalars as 0-dim tensors, so that they round where diffusers' do. lambda = log(alpha / sigma), h its step.
struct FlowUniPc::Factors {
  at::Tensor keep;           // of the sample: sigma_to / sigma_from
  at::Tensor clean;          // of the newest clean sample: -alpha_to expm1(-h)
  at::Tensor difference;     // of the correction terms: -alpha_to B(h)
  at::Tensor ratio;          // of the step before to this one, in lambda (order 2): r
  at::Tensor first, second;  // right-hand sides of the two conditions of order
};

namespace {

at::Tensor log_ratio(const at::Tensor& sigma) { return at::log(1 - sigma) - at::log(sigma); }

}  // namespace

FlowUniPc::FlowUniPc(FlowSchedule schedule, int64_t order) : schedule_(std::move(schedule)), order_(order) {
  if (order < 1 || order > 2) throw Error(fmt::format("[unipc] order {} is not written here, only 1 and 2", order));
}

FlowUniPc::Factors FlowUniPc::factors(int64_t from, int64_t to, int64_t order) const {
  const auto sigma_from = sigmas_[from], sigma_to = sigmas_[to];
  const auto start = log_ratio(sigma_from), h = log_ratio(sigma_to) - start;
  const auto step = at::expm1(-h);
  Factors f;
  f.keep = sigma_to / sigma_from;
  f.clean = (1 - sigma_to) * step;
  f.difference = (1 - sigma_to) * step;
  if (order == 2) f.ratio = (log_ratio(sigmas_[from - 1]) - start) / h;
  // phi_2(-h) and phi_3(-h) over B(h): b_k = k! h phi_{k+1} / B.
  const auto phi = step / -h - 1;
  f.first = phi / step;
  f.second = (phi / -h - 0.5) * 2 / step;
  return f;
}

at::Tensor FlowUniPc::predicted(const at::Tensor& sample) const {
  const auto f = factors(index_, index_ + 1, last_order_);
  const auto& newest = clean_.back();
  const auto base = f.keep * sample - f.clean * newest;
  if (last_order_ == 1) return base;
  const auto slope = (clean_[clean_.size() - 2] - newest) / f.ratio;
  return base - f.difference * (0.5 * slope);  // order 2: the weight is 1/2 for every h
}

at::Tensor FlowUniPc::corrected(const at::Tensor& clean) const {
  const auto f = factors(index_ - 1, index_, last_order_);
  const auto& newest = clean_.back();
  const auto base = f.keep * last_sample_ - f.clean * newest, change = clean - newest;
  if (last_order_ == 1) return base - f.difference * (0.5 * change);
  const auto slope = (clean_[clean_.size() - 2] - newest) / f.ratio;
  // [1 1; r 1] weights = (first, second)
  const auto one = at::ones_like(f.ratio);
  const auto conditions = at::stack({at::stack({one, one}), at::stack({f.ratio, one})});
  const auto weights = at::linalg_solve(conditions, at::stack({f.first, f.second}));
  return base - f.difference * (weights[0] * slope + weights[1] * change);
}

at::Tensor FlowUniPc::step(const at::Tensor& velocity, const at::Tensor& sample) {
  if (index_ >= schedule_.steps())
    throw Error(fmt::format("[unipc] the schedule has {} steps, all taken", schedule_.steps()));
  sigmas_ = schedule_.sigmas.to(sample.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const auto clean = sample - sigmas_[index_] * velocity;
  last_sample_ = index_ > 0 ? corrected(clean).to(sample.scalar_type()) : sample;
  clean_.push_back(clean);
  if (static_cast<int64_t>(clean_.size()) > order_) clean_.erase(clean_.begin());
  // The first step knows one clean sample only; the last one goes to sigma 0, where order 2 does not exist.
  last_order_ = std::min({order_, schedule_.steps() - index_, index_ + 1});
  auto next = predicted(last_sample_).to(sample.scalar_type());
  ++index_;
  return next;
}

}  // namespace parity
