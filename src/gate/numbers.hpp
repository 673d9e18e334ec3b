// The numbers of a row that may not get worse, and how far each may move while nothing is wrong (README.md).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "core/result.hpp"

namespace parity {

/// One number, smaller is better, in the unit of its noise: what valid arithmetic may add to it, as the null that the
/// report's own limits were made from has it.
struct GateNumber {
  double value = 0, noise = 0;
};

/// By name: "forced.rel_l2", "forced.unequal_share", "limit.candidate_error", "free.own_error", …; those that this row
/// has.
std::map<std::string, GateNumber> numbers_of(const OpResult& op);

/// What was held against a limit of `op`, and that limit, both so that smaller is better; nothing where the report does
/// not say.
struct Held {
  std::string name;
  double value = 0, limit = 0;
};
std::optional<Held> held_against(const OpResult& op, const Limit& limit);

/// A row's name in a report. `copy` tells apart those that share everything else.
struct RowKey {
  std::string reference, path, dtype;
  int64_t call = 0, copy = 0;
  auto operator<=>(const RowKey&) const = default;
};

/// "wan-t2v.bf16: blocks.0.attn2 call 1", as the report's sinks have it, without the dtype.
std::string name_of(const RowKey& key);

}  // namespace parity
