#include "selftest/judge.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "selftest/peer_rules.hpp"

namespace parity {
namespace {

constexpr SelftestShares kLeast{.99, .97, .80};

// "norm eps (1e-05 -> 1e-06 at …; explains …): …" -> "norm eps"; the JSON has the whole.
std::string head(const std::string& diagnosis) { return diagnosis.substr(0, diagnosis.find(" (")); }

std::string place(const std::string& path, int call) {
  return fmt::format("{}{}", path.empty() ? "(result)" : path, call > 0 ? fmt::format(" call {}", call) : "");
}

}  // namespace

void SelftestTally::add(const SelftestOutcome& o) {
  (o.pair.fault ? faults : honest) += 1;
  found += o.found();
  located += o.located();
  named += o.named();
  false_alarms += o.false_alarm();
}

SelftestTally total(const SelftestResult& result) {
  SelftestTally tally;
  for (const auto& outcome : result.outcomes) tally.add(outcome);
  return tally;
}

std::map<std::pair<std::string, std::string>, SelftestTally> by_family(const SelftestResult& result) {
  std::map<std::pair<std::string, std::string>, SelftestTally> families;
  for (const auto& outcome : result.outcomes) families[{outcome.pair.family, outcome.pair.dtype}].add(outcome);
  return families;
}

std::vector<ScoreLine> score_lines(const SelftestResult& result) {
  std::map<std::string, SelftestTally> families, dtypes;
  std::vector<ScoreLine> lines;
  for (const auto& [key, tally] : by_family(result)) lines.push_back({key.first, key.second, tally});
  for (const auto& outcome : result.outcomes) {
    families[outcome.pair.family].add(outcome);
    dtypes[outcome.pair.dtype].add(outcome);
  }
  for (const auto& [family, tally] : families) lines.push_back({family, "", tally});
  for (const auto& [dtype, tally] : dtypes) lines.push_back({"", dtype, tally});
  lines.push_back({"", "", total(result)});
  return lines;
}

std::map<std::string, LimitShares> benign_shares(const SelftestResult& result) {
  std::map<std::string, LimitShares> shares;
  for (const auto& outcome : result.outcomes)
    if (!outcome.pair.fault)
      for (size_t i = 0; i < kCalibratedLimits; ++i) {
        double& largest = shares[outcome.pair.family][i];
        largest = std::max(largest, outcome.limits[i]);
      }
  return shares;
}

std::vector<PeerTally> peer_tallies(const SelftestResult& result) {
  std::vector<PeerTally> tallies(peer_rules().size());
  for (const auto& outcome : result.outcomes)
    for (size_t i = 0; i < tallies.size(); ++i)
      if (!outcome.peers.at(i)) (outcome.pair.fault ? tallies[i].caught : tallies[i].false_alarms) += 1;
  return tallies;
}

SelftestShares shares(const SelftestTally& t) {
  if (t.faults == 0) return {};
  const auto share = [&](int n) { return static_cast<double>(n) / t.faults; };
  return {share(t.found), share(t.located), share(t.named)};
}

bool good_enough(const SelftestTally& tally) {
  const SelftestShares s = shares(tally);
  const auto reached = [](std::optional<double> value, std::optional<double> least) {
    return !value || *value >= *least;
  };
  return tally.false_alarms == 0 && reached(s.recall, kLeast.recall) && reached(s.localisation, kLeast.localisation) &&
         reached(s.diagnosis, kLeast.diagnosis);
}

std::string complaint(const SelftestOutcome& o) {
  const SelftestPair& p = o.pair;
  const std::string said = fmt::format("{} ({})", place(o.path, o.call), head(o.diagnosis));
  if (o.false_alarm()) return fmt::format("false alarm  {}: {}", p.file, said);
  if (!p.fault || (o.located() && o.named())) return "";
  const std::string expected = fmt::format("{} ({})", place(p.module, p.call), p.diagnosis);
  if (!o.found()) return fmt::format("missed       {}: {}", p.file, expected);
  return fmt::format("{}  {}: {}, not {}", o.located() ? "misnamed   " : "misplaced  ", p.file, said, expected);
}

}  // namespace parity
