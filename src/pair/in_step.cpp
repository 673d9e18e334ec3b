#include "pair/in_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "measure/measure.hpp"
#include "pair/families.hpp"
#include "pair/last_rows.hpp"
#include "pair/limits.hpp"
#include "pair/model_result.hpp"
#include "pair/order.hpp"
#include "pair/segments.hpp"
#include "pair/series.hpp"
#include "pair/trials.hpp"

namespace parity {
namespace {

bool by_content(const PortPair& pair) { return pair.confidence < 1; }

class InStepPairer {
 public:
  InStepPairer(PortPairing& pairing, const Dump& dump, const Program& reference,
               const std::vector<CandidateTensor>& candidate, const Prints& here, const Prints& there,
               const PairMore& more)
      : pairing_(pairing),
        dump_(dump),
        reference_(reference),
        candidate_(candidate),
        here_(here),
        there_(there),
        more_(more) {
    for (const double op : work_of_ops(reference)) work_of_a_replay_ += op;
  }

  void run() {
    const std::vector<PortPair> before = pairing_.pairs;
    drop_doubtful();
    if (!in_doubt(before)) {
      restore(before);
      return;
    }
    settle();
    work_ = kPairLimits.trial.work;
    for (int trial = 0; trial < static_cast<int>(kPairLimits.trial.most); ++trial) {
      const std::vector<PortPair> settled = pairing_.pairs;
      drop_doubtful();
      const std::vector<PortPair> found = on_trial();
      if (!all_new(found)) {  // none, or one that was dropped since
        restore(settled);
        break;
      }
      for (const PortPair& pair : found) take_back(pair.candidate), pairing_.add(pair);
      settle();
    }
    reconsider();
    drop_doubtful();
    pair_result(pairing_, reference_, candidate_, here_, there_);
    if (!pairing_.unmatched.empty() && is_wrong() && pair_series(pairing_, reference_, candidate_)) settle();
    restore(before);
    pair_result(pairing_, reference_, candidate_, here_, there_);
  }

 private:
  struct Carried {
    std::string line;      // what it was learned from
    bool counted = false;  // Families::Counterpart
  };

  // A trial that came before another may have taken what that one explains: its tensor holds another value now.
  void reconsider() {
    if (tried_.empty()) return;
    const Prints here = forced();
    const std::vector<bool> moved = computed_from(reference_, {tried_.begin(), tried_.end()});
    const size_t paired = pairing_.pairs.size();
    drop_if([&](const PortPair& pair) {
      const NamedTensor* theirs = there_.find(pair.candidate);
      if (!tried_.contains(pair.boundary) || comes_out(off_, pair.boundary) || theirs == nullptr) return false;
      const std::vector<bool> follows = computed_from(reference_, {pair.boundary});  // and holds it by that alone
      return held_elsewhere(here, *theirs, [&](size_t b) { return !pairing_.marked[b] && !follows[b] && moved[b]; });
    });
    if (pairing_.pairs.size() == paired) return;
    drop_if([&](const PortPair& pair) { return carried_.contains(pair.boundary); });
    settle();
  }

  // Learned pairs that differ, with nothing next to them that agrees, are free at first: else they cut off what holds
  // the fault, and a stretch may be a place off as a whole. If nothing is found so they are believed.
  std::vector<PortPair> on_trial() {
    const std::vector<PortPair> all = pairing_.pairs;
    const std::map<size_t, Carried> lines = carried_;
    drop_if([&](const PortPair& pair) { return carried_.contains(pair.boundary) && weak_.contains(pair.boundary); });
    if (pairing_.pairs.size() < all.size()) {
      if (auto found = best_trial(); !found.empty()) return found;
      restore(all);
      carried_ = lines;
    }
    return best_trial();
  }

  std::vector<PortPair> best_trial() {
    const Prints here = forced();
    std::set<size_t> known = tried_;
    for (const auto& [b, line] : carried_) known.insert(b);
    return pairs_on_trial({dump_, reference_, candidate_, pairing_, here, there_, off_, known}, work_);
  }

  bool all_new(const std::vector<PortPair>& found) {
    return !found.empty() &&
           std::ranges::all_of(found, [&](const PortPair& pair) { return tried_.insert(pair.boundary).second; });
  }

  // Names and content, until they add nothing.
  void settle() {
    for (int round = 0; round < static_cast<int>(limits_.rounds.value); ++round) {
      const bool changed = carry_names();
      if (!changed && round > 0) break;
      Prints here = forced();
      if (verify()) here = forced();  // without what was dropped
      const size_t paired = pairing_.pairs.size();
      more_(pairing_, here);
      if (!changed && pairing_.pairs.size() == paired) break;
    }
  }

  void drop_doubtful() {
    drop_if([&](const PortPair& pair) {
      return by_content(pair) && !carried_.contains(pair.boundary) && !tried_.contains(pair.boundary) &&
             (pair.confidence < kPairLimits.program.sure || pair.distance > kPairLimits.chain.learn_distance);
    });
  }

  // Is there anything that could be paired otherwise?
  bool in_doubt(const std::vector<PortPair>& before) const {
    const auto is_module = [&](size_t c) { return !candidate_[c].of_op; };
    return pairing_.pairs.size() < before.size() || std::ranges::any_of(pairing_.unmatched, is_module);
  }

  // A pair that was none, and with it what was learned: other pairs are learned again.
  void take_back(size_t candidate) {
    const size_t before = pairing_.pairs.size();
    drop_if([&](const PortPair& pair) { return pair.candidate == candidate; });
    if (pairing_.pairs.size() < before) drop_if([&](const PortPair& pair) { return carried_.contains(pair.boundary); });
  }

  void drop_if(const std::function<bool(const PortPair& pair)>& unwanted) {
    for (const PortPair& pair : pairing_.drop_if(unwanted)) carried_.erase(pair.boundary);
  }

  // A value that looks like an earlier layer's but lies elsewhere (a stale one) does not say where the others lie.
  Families learned_families() const {
    std::vector<std::pair<size_t, size_t>> pairs;
    for (const PortPair& pair : pairing_.pairs) pairs.emplace_back(pair.boundary, pair.candidate);
    const std::vector<size_t> late = behind_their_effects(reference_, pairs);
    Families families(reference_, candidate_);
    for (const PortPair& pair : pairing_.pairs)
      if (!carried_.contains(pair.boundary) &&
          !(by_content(pair) && std::binary_search(late.begin(), late.end(), pair.boundary)))
        families.learn(pair);
    return families;
  }

  // Learned names of what is unpaired; what a fault has exchanged is unpaired first.
  bool carry_names() {
    const Families families = learned_families();
    std::set<size_t> exchanged;
    for (const size_t i : families.exchanged(pairing_.pairs, pairing_.marked))
      if (by_content(pairing_.pairs[i])) exchanged.insert(pairing_.pairs[i].boundary);
    drop_if([&](const PortPair& pair) { return exchanged.contains(pair.boundary); });
    std::set<size_t> free(pairing_.unmatched.begin(), pairing_.unmatched.end());
    std::map<int64_t, size_t> holds;  // by value of the reference: the candidate's tensor
    for (const PortPair& pair : pairing_.pairs)
      holds.emplace(reference_.boundaries[pair.boundary].value.id, pair.candidate);
    bool added = false;
    for (size_t b = 0; b < pairing_.marked.size(); ++b) {
      const Boundary& boundary = reference_.boundaries[b];
      if (pairing_.marked[b] || !boundary.comparable) continue;
      const auto learned = families.counterpart(b);
      if (!learned || !free.contains(learned->candidate) || refused_.contains({b, learned->candidate})) continue;
      const auto same_value = holds.find(boundary.value.id);
      if (same_value != holds.end() && !equal(same_value->second, learned->candidate)) continue;
      free.erase(learned->candidate);
      carried_[b] = {learned->line, learned->counted};
      pairing_.add({b, learned->candidate, learned->layout, limits_.carried, "", 1});
      added = true;
    }
    return added || !exchanged.empty();
  }

  // What is another name of a paired value has a counterpart only where the port has that value twice, too: a block's
  // result is its last norm's, and a graph has it once.
  bool equal(size_t candidate, size_t other) const {
    const at::Tensor a = candidate_[candidate].load(), b = candidate_[other].load();
    return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && at::equal(a, b);
  }

  // One replay on the candidate's values: how far each pair is off there, and the values of everything else.
  Prints forced() {
    std::map<size_t, const PortPair*> pairs;
    for (const PortPair& pair : pairing_.pairs) pairs[pair.boundary] = &pair;
    off_.clear();
    work_ -= work_of_a_replay_;
    return reference_prints(dump_, reference_, nullptr,
                            [&](size_t b, const at::Tensor& value) -> std::optional<at::Tensor> {
                              const auto pair = pairs.find(b);
                              if (pair == pairs.end()) return std::nullopt;
                              const PortPair& with = *pair->second;
                              auto theirs = with.layout.as_shape(candidate_[with.candidate].load(), value.sizes());
                              if (theirs) off_[b] = measure_sums(value, *theirs).rel_l2.value_or(0);
                              return theirs;
                            });
  }

  // Carried pairs that neither their own content nor what follows from them vouches for are none. Are there any?
  bool verify() {
    const size_t paired = pairing_.pairs.size();
    const auto ancestors = reference_.marked_ancestors(pairing_.marked);
    std::vector<std::vector<size_t>> followers(pairing_.marked.size());
    for (const PortPair& pair : pairing_.pairs)
      if (off_.contains(pair.boundary))
        for (const size_t a : ancestors[pair.boundary]) followers[a].push_back(pair.boundary);
    std::set<size_t> vouched;
    weak_.clear();
    for (auto pair = pairing_.pairs.rbegin(); pair != pairing_.pairs.rend(); ++pair) {
      const size_t b = pair->boundary;
      const bool counted = carried_.contains(b) && carried_.at(b).counted;  // a name that says little
      const bool agrees = comes_out(off_, b), on = std::ranges::any_of(followers[b], [&](size_t follower) {
                                                return counted ? comes_out(off_, follower) : vouched.contains(follower);
                                              });
      if (agrees || on || followers[b].empty()) vouched.insert(b);
      if (!agrees && on && std::ranges::none_of(followers[b], [&](size_t f) { return comes_out(off_, f); }))
        weak_.insert(b);
      if (carried_.contains(b)) describe(*pair, agrees, on);
    }
    drop_if([&](const PortPair& pair) {
      const bool refused = carried_.contains(pair.boundary) && !vouched.contains(pair.boundary);
      if (refused) refused_.insert({pair.boundary, pair.candidate});
      return refused;
    });
    return pairing_.pairs.size() < paired;
  }

  bool is_wrong() {
    forced();
    return std::ranges::any_of(off_, [&](const auto& off) { return off.second > limits_.agrees; });
  }

  void describe(PortPair& pair, bool agrees, bool on) const {
    const double off = off_.contains(pair.boundary) ? off_.at(pair.boundary) : 1;
    pair.distance = std::min<double>(off, 1);
    pair.confidence = agrees ? limits_.carried_sure : on ? limits_.carried_on : limits_.carried;
    pair.evidence =
        fmt::format("name learned ({}), order, {} on the port's own earlier values{}", carried_.at(pair.boundary).line,
                    agrees ? fmt::format("content {:.4f}", 1 - pair.distance * pair.distance)
                           : fmt::format("content differs (relative L2 {:.2g})", off),
                    !agrees && on ? ", what follows from it agrees" : "");
  }

  // What was doubtful and found nothing better is still the best that is known.
  void restore(const std::vector<PortPair>& before) {
    std::set<size_t> free(pairing_.unmatched.begin(), pairing_.unmatched.end());
    for (const PortPair& pair : before)
      if (!pairing_.marked[pair.boundary] && free.contains(pair.candidate))
        free.erase(pair.candidate), pairing_.add(pair);
  }

  const FamilyLimits& limits_ = kPairLimits.family;
  PortPairing& pairing_;
  const Dump& dump_;
  const Program& reference_;
  const std::vector<CandidateTensor>& candidate_;
  const Prints &here_, &there_;
  const PairMore& more_;
  double work_ = 0, work_of_a_replay_ = 0;       // multiplications: left for trials, of one replay
  std::map<size_t, Carried> carried_;            // by boundary
  std::set<size_t> tried_;                       // boundaries paired on trial
  std::map<size_t, double> off_;                 // by boundary, of the last replay
  std::set<size_t> weak_;                        // boundaries: as `carried_`, and nothing that agrees follows directly
  std::set<std::pair<size_t, size_t>> refused_;  // (boundary, candidate)
};

}  // namespace

void pair_in_step(PortPairing& pairing, const Dump& dump, const Program& reference,
                  const std::vector<CandidateTensor>& candidate, const Prints& here, const Prints& there,
                  const PairMore& more) {
  InStepPairer(pairing, dump, reference, candidate, here, there, more).run();
}

}  // namespace parity
