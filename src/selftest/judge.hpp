// What was found out about the pairs, counted: recall, localisation, diagnosis, false alarms. Touches no tensor.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "selftest/calibrated.hpp"
#include "selftest/suite.hpp"

namespace parity {

/// What `compare` said about a pair, and what the peers' rules say.
struct SelftestOutcome {
  SelftestPair pair;
  bool alarm = false;           // any row fail or shape
  std::string path, diagnosis;  // of the first divergence; empty when there is none
  int call = 0;
  bool diverged = false;              // there is a first divergence
  std::map<std::string, int> counts;  // verdicts of the rows
  std::vector<bool> peers;            // by rule: passes
  LimitShares limits{};               // how much of each calibrated limit its passing rows use

  bool found() const { return pair.fault && alarm; }
  bool located() const { return found() && diverged && path == pair.module && call == pair.call; }
  bool named() const { return found() && diagnosis.starts_with(pair.diagnosis); }
  bool false_alarm() const { return !pair.fault && alarm; }
};

struct SelftestTally {
  int faults = 0, found = 0, located = 0, named = 0, honest = 0, false_alarms = 0;
  void add(const SelftestOutcome& outcome);
};

struct PeerTally {
  int caught = 0, false_alarms = 0;
};

struct SelftestResult {
  std::vector<SelftestOutcome> outcomes;
  double seconds = 0;
};

/// The same pairs again, each family under limits fitted without it.
struct OutOfSample {
  std::vector<LeftOut> effects;
  SelftestResult result;
};

SelftestTally total(const SelftestResult& result);
std::map<std::pair<std::string, std::string>, SelftestTally> by_family(const SelftestResult& result);  // family, dtype

/// A line of the table of scores; an empty family or dtype: all of them.
struct ScoreLine {
  std::string family, dtype;
  SelftestTally tally;
};
/// Each family and dtype, then each family, each dtype, and everything.
std::vector<ScoreLine> score_lines(const SelftestResult& result);

/// The largest share of each calibrated limit that a family's benign pairs use.
std::map<std::string, LimitShares> benign_shares(const SelftestResult& result);

std::vector<PeerTally> peer_tallies(const SelftestResult& result);  // in the order of `peer_rules()`

/// Shares of all faults; nullopt when there are none.
struct SelftestShares {
  std::optional<double> recall, localisation, diagnosis;
};
SelftestShares shares(const SelftestTally& tally);

/// The least accepted: recall 99 %, localisation 97 %, diagnosis 80 %, no false alarm.
bool good_enough(const SelftestTally& tally);

/// One line that says what is wrong with an outcome; empty when nothing is.
std::string complaint(const SelftestOutcome& outcome);

}  // namespace parity
