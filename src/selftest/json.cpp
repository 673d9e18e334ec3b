// parity-selftest/1.
#include "report/json_values.hpp"
#include "selftest/interval.hpp"
#include "selftest/peer_rules.hpp"
#include "selftest/show.hpp"

namespace parity {
namespace {

using Json = nlohmann::json;

Json interval_json(int hits, int trials) {
  const auto interval = wilson(hits, trials);
  return interval ? Json{interval->low, interval->high} : Json();
}

Json tally_json(const SelftestTally& t) {
  const SelftestShares s = shares(t);
  return {{"faults", t.faults},
          {"found", t.found},
          {"located", t.located},
          {"named", t.named},
          {"honest", t.honest},
          {"false_alarms", t.false_alarms},
          {"recall", value(s.recall)},
          {"localisation", value(s.localisation)},
          {"diagnosis", value(s.diagnosis)},
          {"recall_interval", interval_json(t.found, t.faults)},
          {"localisation_interval", interval_json(t.located, t.faults)},
          {"diagnosis_interval", interval_json(t.named, t.faults)},
          {"false_alarm_interval", interval_json(t.false_alarms, t.honest)}};
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

// The lines that have a family, a dtype, or both.
Json lines_json(const SelftestResult& result, bool family, bool dtype) {
  Json lines = Json::array();
  for (const ScoreLine& line : score_lines(result)) {
    if (line.family.empty() == family || line.dtype.empty() == dtype) continue;
    lines.push_back(tally_json(line.tally));
    if (family) lines.back()["family"] = line.family;
    if (dtype) lines.back()["dtype"] = line.dtype;
  }
  return lines;
}

Json peers_json(const SelftestResult& result, const SelftestTally& all) {
  Json peers = Json::array();
  const auto tallies = peer_tallies(result);
  for (size_t i = 0; i < tallies.size(); ++i)
    peers.push_back({{"name", peer_rules()[i].name},
                     {"source", peer_rules()[i].source},
                     {"faults_caught", tallies[i].caught},
                     {"faults_caught_interval", interval_json(tallies[i].caught, all.faults)},
                     {"false_alarms", tallies[i].false_alarms},
                     {"false_alarm_interval", interval_json(tallies[i].false_alarms, all.honest)}});
  return peers;
}

Json out_of_sample_json(const OutOfSample& out) {
  Json limits = Json::array();
  for (const LeftOut& e : out.effects)
    limits.push_back({{"limit", calibrated_limits()[e.limit].name},
                      {"family", e.family},
                      {"largest_share", e.largest},
                      {"largest_of_others", e.others},
                      {"factor", e.fitted() ? Json(e.others / e.largest) : Json()}});
  return {{"totals", tally_json(total(out.result))},
          {"families", lines_json(out.result, true, false)},
          {"limits", limits},
          {"seconds", out.result.seconds}};
}

}  // namespace

Json selftest_json(const SelftestResult& result, const OutOfSample* out) {
  const SelftestTally all = total(result);
  Json pairs = Json::array();
  for (const auto& outcome : result.outcomes) pairs.push_back(pair_json(outcome));
  Json json = {{"schema", "parity-selftest/1"},
               {"seconds", result.seconds},
               {"verdict", good_enough(all) ? "pass" : "fail"},
               {"totals", tally_json(all)},
               {"families", lines_json(result, true, true)},
               {"family_totals", lines_json(result, true, false)},
               {"dtype_totals", lines_json(result, false, true)},
               {"peers", peers_json(result, all)},
               {"pairs", pairs}};
  if (out != nullptr) json["out_of_sample"] = out_of_sample_json(*out);
  return json;
}

}  // namespace parity
