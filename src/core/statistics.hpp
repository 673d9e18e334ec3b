// The table of statistics of a pair of tensors: a new one is a member of Stats and one row here. JSON, summaries and
// the schema's test read it.
#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "core/stats.hpp"

namespace parity {

template <class Of>
struct Statistic {
  std::string_view name;  // as parity-report/1 and the limits call it
  std::optional<double> Of::*field;
  std::string_view definition;  // d = candidate - reference (r), o the oracle
};

/// Of the comparison of two tensors.
inline constexpr std::array kStatistics{
    Statistic<Stats>{"max_abs", &Stats::max_abs, "max |d|"},
    Statistic<Stats>{"mean_abs", &Stats::mean_abs, "mean |d|"},
    Statistic<Stats>{"rmse", &Stats::rmse, "sqrt(mean d^2)"},
    Statistic<Stats>{"rel_l2", &Stats::rel_l2, "||d|| / ||r||"},
    Statistic<Stats>{"normalized_max", &Stats::normalized_max, "max |d| / mean |r|"},
    Statistic<Stats>{"cosine", &Stats::cosine, "<candidate, r> / (||candidate|| ||r||)"},
    Statistic<Stats>{"p95_abs", &Stats::p95_abs, "95th percentile of |d|, exact, linear between ranks"},
    Statistic<Stats>{"p99_abs", &Stats::p99_abs, "99th percentile of |d|, exact, linear between ranks"},
    Statistic<Stats>{"max_ulp", &Stats::max_ulp,
                     "largest distance in units in the last place of the reference's dtype"},
    Statistic<Stats>{"bitwise_equal_share", &Stats::bitwise_equal_share, "share of elements with equal bits"},
    Statistic<Stats>{"gain", &Stats::gain, "<d, r> / <r, r>"},
};

/// Of both sides against an oracle.
inline constexpr std::array kOracleStatistics{
    Statistic<OracleStats>{"ratio", &OracleStats::ratio, "||candidate - o|| / ||r - o||"},
    Statistic<OracleStats>{"correlation", &OracleStats::correlation, "correlation of candidate - o and r - o"},
    Statistic<OracleStats>{"reference_error", &OracleStats::reference_error, "||r - o|| / ||o||"},
    Statistic<OracleStats>{"candidate_error", &OracleStats::candidate_error, "||candidate - o|| / ||o||"},
};

/// The statistic called `name`; nullopt when there is none of that name, or no such number.
template <class Of, size_t n>
std::optional<double> statistic_of(const Of& stats, const std::array<Statistic<Of>, n>& table, std::string_view name) {
  for (const Statistic<Of>& row : table)
    if (row.name == name) return stats.*row.field;
  return std::nullopt;
}

}  // namespace parity
