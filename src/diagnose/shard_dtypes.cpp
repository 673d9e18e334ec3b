#include "diagnose/shard_dtypes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/precision.hpp"
#include "measure/local.hpp"

namespace parity {
namespace {

constexpr std::array kNarrower{at::kFloat8_e5m2, at::kFloat8_e4m3fn, at::kBFloat16, at::kHalf, at::kFloat};

// The ranks whose values fit `dtype`, when they say something and others do not fit; "" otherwise.
std::string ranks_that_fit(const ShardedTensor& tensor, const std::vector<at::Tensor>& values, at::ScalarType dtype) {
  std::vector<std::string> fitting;
  for (size_t i = 0; i < values.size(); ++i)
    if (all_held_by(values[i], dtype)) {
      if (!values[i].count_nonzero().is_nonzero()) return "";
      fitting.push_back(tensor.name(i));
    }
  const bool some = !fitting.empty() && fitting.size() < values.size();
  return some ? fmt::format("{}", fmt::join(fitting, " and ")) : "";
}

std::optional<ShardFault> narrower_values(const ShardedTensor& tensor, const std::vector<at::Tensor>& values,
                                          std::string_view what) {
  const at::ScalarType dtype = values.front().scalar_type();
  const bool alike = std::all_of(values.begin(), values.end(), [&](const at::Tensor& v) {
    return v.scalar_type() == dtype && at::isFloatingType(dtype) && v.numel() > 0;
  });
  if (!alike) return std::nullopt;
  for (const at::ScalarType small : kNarrower) {
    if (c10::elementSize(small) >= c10::elementSize(dtype)) continue;
    const std::string ranks = ranks_that_fit(tensor, values, small);
    if (!ranks.empty())
      return ShardFault{"shard dtype",
                        fmt::format("{} of {} fit {}, those of the other ranks have the width of {}", what, ranks,
                                    short_dtype_name(small), short_dtype_name(dtype)),
                        Gate::dtype_path};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ShardFault> other_dtype(const ShardedTensor& tensor) {
  std::map<at::ScalarType, std::vector<std::string>> ranks;
  for (size_t i = 0; i < tensor.dtypes.size(); ++i) ranks[tensor.dtypes[i]].push_back(tensor.name(i));
  if (ranks.size() == 1) return std::nullopt;
  std::vector<std::string> texts;
  for (const auto& [dtype, names] : ranks)
    texts.push_back(fmt::format("{} on {}", short_dtype_name(dtype), fmt::join(names, " and ")));
  return ShardFault{"shard dtype", fmt::format("{}", fmt::join(texts, ", ")), Gate::dtype_path};
}

std::optional<ShardFault> narrower_part(const ShardedTensor& tensor) {
  if (auto fault = narrower_values(tensor, tensor.parts(), "the values")) return fault;
  std::vector<at::Tensor> weights;
  for (const auto& weight : tensor.weight) weights.push_back(weight());
  const bool there =
      std::all_of(weights.begin(), weights.end(), [](const at::Tensor& weight) { return weight.defined(); });
  return there && !weights.empty() ? narrower_values(tensor, weights, "the weights") : std::nullopt;
}

}  // namespace parity
