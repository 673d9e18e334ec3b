#include "models/wan/step_cache.hpp"

namespace parity {

std::vector<double> step_cache_polynomial(const WanConfig& config) {
  if (config.image()) return {1, 0};  // published for two sizes of the picture, which a configuration does not tell
  if (config.dim == 1536 && config.layers == 30)
    return {-5.21862437e+04, 9.23041404e+03, -5.28275948e+02, 1.36987616e+01, -4.99875664e-02};
  if (config.dim == 5120 && config.layers == 40)
    return {-3.03318725e+05, 4.90537029e+04, -2.65530556e+03, 5.87365115e+01, -3.15583525e-01};
  return {1, 0};
}

bool StepCache::reuses(const at::Tensor& embedding, bool always) {
  const at::Tensor wide = embedding.to(at::kDouble);
  if (last_.defined()) {
    const double far = ((wide - last_).abs().mean() / last_.abs().mean()).item<double>();
    double value = 0;
    for (const double coefficient : options_.polynomial) value = value * far + coefficient;
    distance_ += value;
  }
  last_ = wide;
  reused_ = added_.defined() && !always && distance_ < options_.threshold;
  if (!reused_) distance_ = 0;
  return reused_;
}

}  // namespace parity
