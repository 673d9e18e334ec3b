// The self test's result as text, Markdown and JSON. `out`: what run_out_of_sample gave; null when it was not run.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "selftest/judge.hpp"

namespace parity {

/// Table per family and dtype, ours beside the peers' rules, one line for each pair that went wrong, the totals.
std::string selftest_text(const SelftestResult& result, const OutOfSample* out = nullptr);

/// The same as tables.
std::string selftest_markdown(const SelftestResult& result, const OutOfSample* out = nullptr);

/// parity-selftest/1: totals, families, dtypes, peers, pairs. A share or an interval of no pairs is null.
nlohmann::json selftest_json(const SelftestResult& result, const OutOfSample* out = nullptr);

}  // namespace parity
