// The self test's result as text and as JSON. Computes nothing.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "selftest/judge.hpp"

namespace parity {

/// Table per family and dtype, ours beside the peers' rules, one line for each pair that went wrong, the totals.
std::string selftest_text(const SelftestResult& result);

/// parity-selftest/1: totals, families, peers, pairs. A share of no faults is null.
nlohmann::json selftest_json(const SelftestResult& result);

}  // namespace parity
