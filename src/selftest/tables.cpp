#include "selftest/tables.hpp"

#include <fmt/format.h>

#include <utility>

#include "selftest/interval.hpp"
#include "selftest/peer_rules.hpp"

namespace parity {
namespace {

std::string interval_text(int hits, int trials) {
  const auto interval = wilson(hits, trials);
  return interval ? fmt::format("{:.1f} to {:.1f}", 100 * interval->low, 100 * interval->high) : "";
}

// "37 (90.6 to 100.0 %)"
std::string count_cell(int hits, int trials) {
  return trials > 0 ? fmt::format("{} ({} %)", hits, interval_text(hits, trials)) : "-";
}

std::string of_cell(int hits, int trials) {
  return trials > 0 ? fmt::format("{} of {} ({} %)", hits, trials, interval_text(hits, trials)) : "-";
}

std::vector<std::string> score_row(const std::string& family, const std::string& dtype, const SelftestTally& t) {
  return {family,
          dtype,
          std::to_string(t.faults),
          count_cell(t.found, t.faults),
          count_cell(t.located, t.faults),
          count_cell(t.named, t.faults),
          std::to_string(t.honest),
          count_cell(t.false_alarms, t.honest)};
}

const std::vector<std::string> kScoreHead{"family",  "dtype", "faults", "found",
                                          "located", "named", "benign", "false alarms"};

}  // namespace

Cells score_cells(const SelftestResult& result) {
  Cells cells{kScoreHead};
  for (const ScoreLine& line : score_lines(result))
    cells.push_back(
        score_row(line.family.empty() ? "all" : line.family, line.dtype.empty() ? "all" : line.dtype, line.tally));
  return cells;
}

Cells peer_cells(const SelftestResult& result) {
  const SelftestTally all = total(result);
  const auto row = [&](std::string_view name, const PeerTally& peer, std::string_view rule) {
    return std::vector<std::string>{std::string(name), of_cell(peer.caught, all.faults),
                                    of_cell(peer.false_alarms, all.honest), std::string(rule)};
  };
  Cells cells{{"rule", "faults", "false alarms", "on the same tensors"},
              row("parity-check", {all.found, all.false_alarms}, "compare, defaults")};
  const auto tallies = peer_tallies(result);
  for (size_t i = 0; i < tallies.size(); ++i)
    cells.push_back(row(peer_rules()[i].name, tallies[i], peer_rules()[i].source));
  return cells;
}

Cells out_of_sample_cells(const SelftestResult& shipped, const OutOfSample& out) {
  Cells cells{kScoreHead};
  for (const auto& [label, result] : {std::pair{"shipped", &shipped}, std::pair{"out of sample", &out.result}})
    for (const ScoreLine& line : score_lines(*result))
      if (line.dtype.empty()) cells.push_back(score_row(line.family.empty() ? "all" : line.family, label, line.tally));
  cells.front()[1] = "limits";
  return cells;
}

Cells left_out_cells(const OutOfSample& out) {
  Cells cells{{"limit", "largest share", "family", "of the others", "without it"}};
  for (const LeftOut& e : out.effects)
    cells.push_back({std::string(calibrated_limits()[e.limit].name), fmt::format("{:.2f}", e.largest), e.family,
                     fmt::format("{:.2f}", e.others),
                     e.fitted() ? fmt::format("x {:.2f}", e.others / e.largest) : "cannot be fitted: kept"});
  return cells;
}

std::string share_text(int hits, int trials) {
  if (trials <= 0) return "not measured";
  return fmt::format("{:.1f} % ({})", 100. * hits / trials, interval_text(hits, trials));
}

std::string verdict_line(const SelftestResult& result) {
  const SelftestTally all = total(result);
  return fmt::format(
      "{}: recall {}, localisation {}, diagnosis {}, false alarms {} of {}{}; at least 99 %, 97 %, 80 %, and none are "
      "accepted; in brackets Wilson's 95 % intervals; {} pairs in {:.0f} s",
      good_enough(all) ? "pass" : "fail", share_text(all.found, all.faults), share_text(all.located, all.faults),
      share_text(all.named, all.faults), all.false_alarms, all.honest,
      all.honest > 0 ? fmt::format(" ({} %)", interval_text(all.false_alarms, all.honest)) : "", result.outcomes.size(),
      result.seconds);
}

std::vector<std::string> complaints(const SelftestResult& result) {
  std::vector<std::string> lines;
  for (const auto& outcome : result.outcomes)
    if (std::string line = complaint(outcome); !line.empty()) lines.push_back(std::move(line));
  return lines;
}

std::string what_is_fitted() {
  return "Each family is judged under limits fitted without it: margin x largest share that the other families' benign "
         "pairs use, with the shipped limit's margin. Only these limits of size can be fitted on benign pairs. All "
         "others are bounds, false-alarm budgets, or were set by hand while these pairs were run, as the constants of "
         "src/pair and src/diagnose were: no rule gives them without a family, and they are the same in both rows. "
         "src/judge/calibration.json is measured on models none of which is scored here.";
}

}  // namespace parity
