#include "selftest/show.hpp"

#include <fmt/format.h>

#include "report/markup.hpp"
#include "selftest/peer_rules.hpp"

namespace parity {
namespace {

using Json = nlohmann::json;

std::string percent(std::optional<double> value) {
  return value ? fmt::format("{:.1f} %", 100 * *value) : "not measured";
}

std::string family_line(const std::string& family, const std::string& dtype, const SelftestTally& t) {
  return fmt::format("{} {} {:>6} {:>6} {:>8} {:>6} {:>7} {:>13}\n", pad_right(plain(family), 9),
                     pad_right(plain(dtype), 6), t.faults, t.found, t.located, t.named, t.honest, t.false_alarms);
}

std::string family_table(const SelftestResult& result, const SelftestTally& all) {
  std::string out = fmt::format("{:9} {:6} {:>6} {:>6} {:>8} {:>6} {:>7} {:>13}\n", "family", "dtype", "faults",
                                "found", "located", "named", "honest", "false alarms");
  for (const auto& [key, tally] : by_family(result)) out += family_line(key.first, key.second, tally);
  return out + family_line("all", "", all);
}

std::string peer_line(std::string_view name, const PeerTally& peer, const SelftestTally& all, std::string_view rule) {
  return fmt::format("{} {:>4} of {:<4} {:>4} of {:<4}  {}\n", pad_right(name, 20), peer.caught, all.faults,
                     peer.false_alarms, all.honest, rule);
}

std::string peer_table(const SelftestResult& result, const SelftestTally& all) {
  std::string out = fmt::format("{:20} {:12} {:13} {}\n", "rule", "faults", "false alarms", "on the same tensors");
  out += peer_line("parity-check", {all.found, all.false_alarms}, all, "compare, defaults");
  const auto tallies = peer_tallies(result);
  for (size_t i = 0; i < tallies.size(); ++i)
    out += peer_line(peer_rules()[i].name, tallies[i], all, peer_rules()[i].source);
  return out;
}

Json tally_json(const SelftestTally& t) {
  const SelftestShares s = shares(t);
  const auto number_or_null = [](std::optional<double> v) { return v ? Json(*v) : Json(); };
  return {{"faults", t.faults},
          {"found", t.found},
          {"located", t.located},
          {"named", t.named},
          {"honest", t.honest},
          {"false_alarms", t.false_alarms},
          {"recall", number_or_null(s.recall)},
          {"localisation", number_or_null(s.localisation)},
          {"diagnosis", number_or_null(s.diagnosis)}};
}

Json pair_json(const SelftestOutcome& o) {
  Json peers = Json::object();
  for (size_t i = 0; i < o.peers.size(); ++i) peers[std::string(peer_rules()[i].name)] = bool{o.peers[i]};
  Json divergence;
  if (o.diverged) divergence = {{"path", o.path}, {"call", o.call}, {"diagnosis", o.diagnosis}};
  Json fault;
  if (o.pair.fault) fault = {{"path", o.pair.module}, {"call", o.pair.call}, {"diagnosis", o.pair.diagnosis}};
  return {{"file", o.pair.file},
          {"reference", o.pair.reference},
          {"family", o.pair.family},
          {"dtype", o.pair.dtype},
          {"kind", o.pair.fault ? "fault" : "honest"},
          {"name", o.pair.name},
          {"expected", fault},
          {"first_divergence", divergence},
          {"found", o.found()},
          {"located", o.located()},
          {"named", o.named()},
          {"false_alarm", o.false_alarm()},
          {"counts", o.counts},
          {"peers_pass", peers}};
}

}  // namespace

std::string selftest_text(const SelftestResult& result) {
  const SelftestTally all = total(result);
  const SelftestShares s = shares(all);
  std::string out = family_table(result, all) + "\n" + peer_table(result, all) + "\n";
  std::string wrong;
  for (const auto& outcome : result.outcomes)
    if (const std::string line = complaint(outcome); !line.empty()) wrong += plain(line) + "\n";
  if (!wrong.empty()) out += wrong + "\n";
  return out + fmt::format(
                   "{}: recall {} (at least 99 %), localisation {} (97 %), diagnosis {} (80 %), false alarms {} of {} "
                   "(0); {} pairs in {:.0f} s\n",
                   good_enough(all) ? "pass" : "fail", percent(s.recall), percent(s.localisation), percent(s.diagnosis),
                   all.false_alarms, all.honest, result.outcomes.size(), result.seconds);
}

Json selftest_json(const SelftestResult& result) {
  const SelftestTally all = total(result);
  Json families = Json::array(), peers = Json::array(), pairs = Json::array();
  for (const auto& [key, tally] : by_family(result)) {
    families.push_back(tally_json(tally));
    families.back()["family"] = key.first;
    families.back()["dtype"] = key.second;
  }
  const auto tallies = peer_tallies(result);
  for (size_t i = 0; i < tallies.size(); ++i)
    peers.push_back({{"name", peer_rules()[i].name},
                     {"source", peer_rules()[i].source},
                     {"faults_caught", tallies[i].caught},
                     {"false_alarms", tallies[i].false_alarms}});
  for (const auto& outcome : result.outcomes) pairs.push_back(pair_json(outcome));
  return {{"schema", "parity-selftest/1"},
          {"seconds", result.seconds},
          {"verdict", good_enough(all) ? "pass" : "fail"},
          {"totals", tally_json(all)},
          {"families", families},
          {"peers", peers},
          {"pairs", pairs}};
}

}  // namespace parity
