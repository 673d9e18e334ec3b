// UniPC for flow matching (Zhao et al. 2023, "UniPC: A Unified Predictor-Corrector Framework", B(h) = expm1(h)), as
// diffusers' UniPCMultistepScheduler steps in the Wan pipelines: order 2, data prediction, a correction before every
// prediction but the first.
#pragma once
#include <vector>

#include "models/schedulers/flow_schedule.hpp"

namespace parity {

class FlowUniPc {
 public:
  /// `order`: 1 or 2. Throws Error for others.
  explicit FlowUniPc(FlowSchedule schedule, int64_t order = 2);

  /// The sample one noise level lower. velocity: the transformer's output for `sample`, same shape, one dtype. Factors
  /// are computed in fp32, for fp64 samples in fp64. Throws Error after the last step.
  at::Tensor step(const at::Tensor& velocity, const at::Tensor& sample);

 private:
  struct Factors;  // of one step between two noise levels
  Factors factors(int64_t from, int64_t to, int64_t order) const;
  at::Tensor predicted(const at::Tensor& sample) const;
  at::Tensor corrected(const at::Tensor& clean) const;

  FlowSchedule schedule_;
  int64_t order_;
  at::Tensor sigmas_;  // in the dtype of the factors
  int64_t index_ = 0, last_order_ = 0;
  std::vector<at::Tensor> clean_;  // the predicted clean samples, newest last; `order` of them
  at::Tensor last_sample_;         // what the last prediction began from
};

}  // namespace parity
