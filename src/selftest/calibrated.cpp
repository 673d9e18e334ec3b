#include "selftest/calibrated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace parity {
namespace {

enum { kHalf, kHalfAttention, kSingle, kFlips, kGain };

// Which of calibrated_limits() a row's limit is; nullopt: none of them.
std::optional<size_t> which(const OpResult& row, const Limit& limit) {
  const bool half = row.tensor_dtype == "bf16" || row.tensor_dtype == "fp16";
  if (limit.statistic == "candidate_error") return !half ? kSingle : row.kind == "attention" ? kHalfAttention : kHalf;
  if (limit.statistic == "bitwise_equal_share" && half) return kFlips;
  if (limit.statistic == "gain") return kGain;
  return std::nullopt;
}

double share_of(const Limit& limit) {
  if (!limit.measured) return 0;
  const double used = limit.at_least ? 1 - *limit.measured : *limit.measured;
  const double most = limit.at_least ? 1 - limit.value : limit.value;
  return most > 0 ? used / most : 0;
}

}  // namespace

const std::array<CalibratedLimit, kCalibratedLimits>& calibrated_limits() {
  using T = Thresholds;
  static const std::array<CalibratedLimit, kCalibratedLimits> kLimits{
      {{"error in half width", {&T::half_ratio}},
       {"error of attention in half width", {&T::half_attention_ratio}},
       {"error in fp32", {&T::fp32_null_factor, &T::fp32_sum_factor}},
       {"elements rounded otherwise", {&T::half_unequal_share, &T::half_null_unequal_factor}},
       {"gain", {&T::gain_in_u, &T::null_gain_factor, &T::fp32_gain_in_u}}}};
  return kLimits;
}

LimitShares limit_shares(const std::vector<OpResult>& rows) {
  LimitShares shares{};
  for (const OpResult& row : rows)
    for (const Limit& limit : row.limits)
      if (const auto i = which(row, limit); i && row.verdict == Verdict::pass)
        if (const double used = share_of(limit); used <= 1)  // above, significance and not size let it pass
          shares[*i] = std::max(shares[*i], used);
  return shares;
}

std::vector<LeftOut> leave_out(const std::map<std::string, LimitShares>& by_family) {
  std::vector<LeftOut> effects;
  for (size_t i = 0; i < kCalibratedLimits; ++i) {
    LeftOut effect{i, "", 0, 0};
    for (const auto& [family, shares] : by_family) {
      if (shares[i] > effect.largest)
        effect = {i, family, shares[i], effect.largest};
      else
        effect.others = std::max(effect.others, shares[i]);
    }
    if (effect.largest > 0) effects.push_back(effect);
  }
  return effects;
}

bool depends_on(const std::string& family, const std::vector<LeftOut>& effects) {
  return std::any_of(effects.begin(), effects.end(),
                     [&](const LeftOut& e) { return e.family == family && e.fitted() && e.others < e.largest; });
}

Thresholds limits_without(const std::string& family, const std::vector<LeftOut>& effects, const Thresholds& shipped) {
  Thresholds limits = shipped;
  for (const LeftOut& effect : effects) {
    if (effect.family != family || !effect.fitted()) continue;
    const double factor = effect.others / effect.largest;
    for (const auto member : calibrated_limits()[effect.limit].factors)
      limits.*member = {(limits.*member).value * factor,
                        fmt::format("{:.3g} times the shipped limit: fitted without {}", factor, family)};
  }
  return limits;
}

}  // namespace parity
