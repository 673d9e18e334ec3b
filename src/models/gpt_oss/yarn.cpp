#include "models/gpt_oss/yarn.hpp"

#include <algorithm>
#include <cmath>

namespace parity {

// transformers, modeling_rope_utils.py, _compute_yarn_parameters
at::Tensor yarn_frequencies(const Yarn& y, int64_t head_dim) {
  const double dim = static_cast<double>(head_dim);
  const auto dimension_of = [&](double turns) {  // where a frequency turns that often within the trained positions
    return dim * std::log(static_cast<double>(y.original_positions) / (turns * 2 * M_PI)) / (2 * std::log(y.theta));
  };
  double low = dimension_of(y.beta_fast), high = dimension_of(y.beta_slow);
  if (y.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  const auto out = at::empty({head_dim / 2}, at::kDouble);
  auto* frequency = out.mutable_data_ptr<double>();
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const double trained = std::pow(y.theta, -2.0 * static_cast<double>(i) / dim);
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequency[i] = trained / y.factor * stretched + trained * (1 - stretched);
  }
  return out;
}

double yarn_attention_factor(const Yarn& y) { return y.factor <= 1 ? 1 : 0.1 * std::log(y.factor) + 1; }

at::Tensor yarn_table(const at::Tensor& computed, const at::Tensor& recorded) {
  constexpr double kSame = 1e-6;
  const bool same = recorded.defined() && recorded.sizes() == computed.sizes() &&
                    ((recorded.to(at::kDouble) - computed).abs() <= kSame * computed).all().item<bool>();
  return same ? recorded : computed.to(at::kFloat);
}

}  // namespace parity
