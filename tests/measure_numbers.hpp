// Numbers for the tests of statistics, and statistics in plain loops.
#pragma once
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace parity::numbers {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

inline at::Tensor tensor(std::vector<double> values, at::ScalarType dtype = at::kDouble) {
  return at::tensor(values, at::TensorOptions(at::kDouble)).to(dtype);
}

inline at::Tensor random(at::IntArrayRef shape, uint64_t seed, at::ScalarType dtype = at::kDouble) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(shape, generator, at::TensorOptions(at::kDouble)).to(dtype);
}

// np.percentile(values, 100 q), method 'linear', written without the product's code.
inline double percentile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(place);
  const double share = place - static_cast<double>(low);
  return values[low] + share * (values[std::min(low + 1, values.size() - 1)] - values[low]);
}

inline std::vector<double> to_vector(const at::Tensor& t) {
  const at::Tensor d = t.to(at::kDouble).contiguous().flatten();
  return {d.const_data_ptr<double>(), d.const_data_ptr<double>() + d.numel()};
}

inline void check_close(std::optional<double> got, double want, double tolerance = 1e-12) {
  REQUIRE(got.has_value());
  CHECK(std::abs(*got - want) <= tolerance * std::abs(want));
}

}  // namespace parity::numbers
