#include "gate/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/precision.hpp"
#include "core/statistics.hpp"
#include "gate/limits.hpp"
#include "report/summary.hpp"

namespace parity {
namespace {

double roundoff_of(const OpResult& op) {
  for (const at::ScalarType type :
       {at::ScalarType::Double, at::ScalarType::Float, at::ScalarType::BFloat16, at::ScalarType::Half}) {
    const std::string name = short_dtype_name(type);
    if (op.tensor_dtype == name || (op.tensor_dtype.empty() && op.dtype == name)) return unit_roundoff(type);
  }
  return 0;  // integers: exact
}

double reference_error(const OpResult& op) { return op.oracle ? op.oracle->reference_error.value_or(0) : 0; }

/// Of a statistic that a limit names: the largest limit on it.
std::optional<double> limit_on(const OpResult& op, std::string_view statistic) {
  std::optional<double> found;
  for (const Limit& l : op.limits)
    if (l.statistic == statistic && !l.at_least) found = std::max(found.value_or(0), std::abs(l.value));
  return found;
}

/// What valid arithmetic may add to the distance from the reference.
double noise_of_distance(const OpResult& op) {
  const double share = kGate.share_of_limit;
  if (op.dtype == "fp64" && op.logic.limit) return share * *op.logic.limit;
  // A row that failed at the replay on this machine was not held against the recorded values any more.
  for (const char* statistic : {"rel_l2", "replay_rel_l2"})
    if (const auto limit = limit_on(op, statistic)) return share * *limit;
  // Both sides' distances from the oracle add up at most.
  if (const auto limit = limit_on(op, "candidate_error")) return share * *limit + reference_error(op);
  return reference_error(op) + roundoff_of(op);
}

double noise_of_error(const OpResult& op) {
  if (const auto limit = limit_on(op, "candidate_error")) return kGate.share_of_limit * *limit;
  return noise_of_distance(op) + reference_error(op);
}

double noise_of_free(const OpResult& op) {
  const double share = kGate.share_of_limit;
  if (const auto limit = limit_on(op, "free.rel_l2")) return share * *limit;
  if (op.dtype == "fp64" && op.logic.limit)
    return share * *op.logic.limit + kGate.inherited * op.predicted_free.value_or(0);
  const double own = share * limit_on(op, "own_inputs_rel_l2").value_or(0);
  if (op.predicted_free) return own + kGate.inherited * *op.predicted_free;
  return own + (op.free_oracle ? op.free_oracle->reference_error.value_or(0) : 0) + roundoff_of(op);
}

/// A gain is believed only where it stands out of what random signs give a projection.
double noise_of_gain(const OpResult& op) {
  if (!op.forced || op.forced->count == 0) return 0;
  return kGate.gain_sigma * op.forced->rel_l2.value_or(0) / std::sqrt(static_cast<double>(op.forced->count));
}

void add_forced(const OpResult& op, std::map<std::string, GateNumber>& out) {
  if (!op.forced) return;
  if (op.forced->rel_l2) out["forced.rel_l2"] = {*op.forced->rel_l2, noise_of_distance(op)};
  if (op.oracle && op.oracle->candidate_error)
    out["forced.candidate_error"] = {*op.oracle->candidate_error, noise_of_error(op)};
  out["forced.special_mismatch"] = {static_cast<double>(op.forced->special_mismatch), 0};
}

void add_free(const OpResult& op, std::map<std::string, GateNumber>& out) {
  if (!op.free) return;
  if (op.free->rel_l2) out["free.rel_l2"] = {*op.free->rel_l2, noise_of_free(op)};
  out["free.special_mismatch"] = {static_cast<double>(op.free->special_mismatch), 0};
  // Absent where both sides had the same inputs and bits: it has no error of its own then.
  if (op.predicted_free)
    out["free.own_error"] = {op.free_oracle ? op.free_oracle->candidate_error.value_or(0) : 0,
                             op.dtype == "fp64" ? kGate.share_of_limit * op.logic.limit.value_or(0)
                                                : kGate.share_of_limit * limit_on(op, "own_inputs_rel_l2").value_or(0)};
}

/// Name and value of a statistic that the row itself has.
std::pair<std::string, std::optional<double>> looked_up(const OpResult& op, const Limit& limit) {
  const std::string& statistic = limit.statistic;
  if (statistic == "logic.rel_l2") return {statistic, op.logic.rel_l2};
  if (statistic == "own_inputs_rel_l2")
    return {"free.own_error", op.free_oracle ? op.free_oracle->candidate_error : std::nullopt};
  if (statistic.starts_with("free."))
    return {statistic, op.free ? statistic_of(*op.free, kStatistics, statistic.substr(5)) : std::nullopt};
  std::optional<double> value;
  if (op.forced) value = statistic_of(*op.forced, kStatistics, statistic);
  if (!value && op.oracle) value = statistic_of(*op.oracle, kOracleStatistics, statistic);
  return {"forced." + statistic, value};
}

}  // namespace

std::optional<Held> held_against(const OpResult& op, const Limit& limit) {
  constexpr std::string_view kShare = "bitwise_equal_share";
  const bool is_share = limit.statistic.ends_with(kShare);
  if (limit.at_least && !is_share) return std::nullopt;
  auto [name, value] = limit.measured ? std::pair("limit." + limit.statistic, limit.measured) : looked_up(op, limit);
  if (!value) return std::nullopt;
  if (!limit.at_least) return Held{name, std::abs(*value), std::abs(limit.value)};
  name.replace(name.size() - kShare.size(), kShare.size(), "unequal_share");
  return Held{name, 1 - *value, 1 - limit.value};
}

std::map<std::string, GateNumber> numbers_of(const OpResult& op) {
  std::map<std::string, GateNumber> out;
  if (op.logic.rel_l2) out["logic.rel_l2"] = {*op.logic.rel_l2, kGate.share_of_limit * op.logic.limit.value_or(0)};
  for (const Limit& limit : op.limits)
    if (const auto held = held_against(op, limit))
      out[held->name] = {held->value,
                         kGate.share_of_limit * held->limit + (limit.statistic == "gain" ? noise_of_gain(op) : 0)};
  add_forced(op, out);
  add_free(op, out);
  return out;
}

std::string name_of(const RowKey& key) {
  OpResult row;
  row.reference = key.reference;
  row.path = key.path;
  row.call = static_cast<int>(key.call);
  return row_name(row) + (key.copy > 0 ? fmt::format(" (row {} of this name)", key.copy + 1) : "");
}

}  // namespace parity
