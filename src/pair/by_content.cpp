#include "pair/by_content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "pair/chain.hpp"
#include "pair/confidence.hpp"
#include "pair/limits.hpp"
#include "pair/links.hpp"

namespace parity {
namespace {

class ContentPairer {
 public:
  ContentPairer(const std::vector<NamedTensor>& reference, const std::vector<NamedTensor>& candidate,
                const std::vector<std::pair<size_t, size_t>>& anchors, const std::function<bool(const Link&)>& possible)
      : reference_(reference),
        candidate_(candidate),
        anchors_(anchors),
        possible_(possible),
        names_(reference, candidate),
        weigher_(reference, candidate, names_, links_, by_reference_) {}

  AutoPairing run() {
    links_ = find_links(reference_, candidate_, names_);
    fix_anchors();
    for (const auto& [r, c] : anchors_) names_.learn(r, c, {});
    for (const Chosen& pair : pairs_of_chain())
      if (pair.confidence >= limits_.learn_from && agreement(*pair.link) >= limits_.learn_agreement &&
          pair.link->distance < limits_.learn_distance)
        names_.learn(pair.link->reference, pair.link->candidate, pair.link->layout);
    renew_names(reference_, candidate_, names_, links_);
    fix_anchors();
    std::vector<Chosen> pairs = pairs_of_chain();
    std::erase_if(pairs, [&](const Chosen& pair) { return !(pair.confidence >= limits_.confidence); });
    add_out_of_order(pairs);
    return result(pairs);
  }

 private:
  struct Chosen {
    const Link* link = nullptr;
    double confidence = 0;
    std::string evidence;
    bool has_twins = false;
  };

  Chosen chosen(const Link& link, double order, double noise) const {
    Confidence confidence = weigher_.of(link, order, noise);
    return {&link, confidence.value, std::move(confidence.evidence), confidence.has_twins};
  }

  // An anchored tensor has its anchor's link alone; what cannot be has none.
  void fix_anchors() {
    std::map<size_t, size_t> by_reference, by_candidate;
    for (const auto& [r, c] : anchors_) by_reference[r] = c, by_candidate[c] = r;
    for (auto& links : links_)
      std::erase_if(links, [&](const Link& link) {
        return by_reference.count(link.reference) || by_candidate.count(link.candidate) ||
               (possible_ && !possible_(link));
      });
    for (const auto& [r, c] : anchors_) links_[c] = {Link{r, c, 0, 1, 1, true, {}}};
    by_reference_.assign(reference_.size(), {});
    for (const auto& links : links_)
      for (const Link& link : links) by_reference_[link.reference].push_back(&link);
  }

  // In powers of ten of the relative difference; names count like two of them, so content decides where it can. What
  // another tensor explains far better weighs nothing: a chain must not fill its gaps with look-alikes.
  double weight(const Link& link) const {
    double weight = limits_.of_name * link.name;
    if (agreement(link) > 0)
      weight += link.weight * -std::log10(std::max<double>(link.distance, kPairLimits.evidence.least_distance));
    weight *= weigher_.distinct(link);
    const bool same_dtype = reference_[link.reference].dtype == candidate_[link.candidate].dtype;
    weight += (names_.is_op(0, link.reference) ? 0 : limits_.of_module.value) +
              (names_.is_op(1, link.candidate) ? 0 : limits_.of_module.value) +
              (same_dtype ? limits_.of_dtype.value : 0) - (link.layout.as_it_is() ? 0 : limits_.of_layout.value);
    return weight - limits_.earlier * static_cast<double>(link.reference + link.candidate);
  }

  // A link that is second choice to both of its tensors only fills a gap.
  std::vector<const Link*> worth_chaining() {
    std::vector<double> best_of_reference(reference_.size()), best_of_candidate(candidate_.size());
    weights_.clear();
    for (const auto& links : links_)
      for (const Link& link : links) {
        const double heavy = weights_[&link] = weight(link);
        best_of_reference[link.reference] = std::max(best_of_reference[link.reference], heavy);
        best_of_candidate[link.candidate] = std::max(best_of_candidate[link.candidate], heavy);
      }
    std::vector<const Link*> worth;
    for (const auto& links : links_)
      for (const Link& link : links)
        if (const double best = std::min(best_of_reference[link.reference], best_of_candidate[link.candidate]);
            weights_[&link] >= std::max<double>(limits_.least, limits_.second_choice * best))
          worth.push_back(&link);
    return worth;
  }

  std::vector<Chosen> pairs_of_chain() {
    std::vector<ChainLink> weighed;
    std::vector<const Link*> origin;
    for (const Link* link : worth_chaining()) {
      weighed.push_back({link->candidate, link->reference, weights_.at(link)});
      origin.push_back(link);
    }
    std::vector<const Link*> chain;
    for (const size_t i : heaviest_chain(weighed, reference_.size())) chain.push_back(origin[i]);
    noise_ = noise_along(chain);
    std::vector<Chosen> pairs;
    for (size_t i = 0; i < chain.size(); ++i) {
      const double before = i == 0 ? 1 : firmness(*chain[i - 1]);
      const double after = i + 1 == chain.size() ? 1 : firmness(*chain[i + 1]);
      pairs.push_back(chosen(*chain[i], (before + after) / 2, noise_[i]));
    }
    return pairs;
  }

  // Median distance of the pairs around each: what rounding, or a fault before them, makes of equal tensors here.
  std::vector<double> noise_along(const std::vector<const Link*>& chain) const {
    const auto beside = static_cast<size_t>(limits_.neighbours.value);
    std::vector<double> noise;
    for (size_t i = 0; i < chain.size(); ++i) {
      std::vector<double> around;
      for (size_t k = i < beside ? 0 : i - beside; k < std::min(i + beside + 1, chain.size()); ++k)
        around.push_back(chain[k]->distance);
      std::nth_element(around.begin(), around.begin() + static_cast<ptrdiff_t>(around.size() / 2), around.end());
      noise.push_back(around[around.size() / 2]);
    }
    return noise;
  }

  // What crosses the chain: content beyond doubt, or a learned name close by.
  void add_out_of_order(std::vector<Chosen>& pairs) const {
    std::vector<bool> used_reference(reference_.size()), used_candidate(candidate_.size());
    for (const Chosen& pair : pairs) used_reference[pair.link->reference] = used_candidate[pair.link->candidate] = true;
    const std::vector<size_t> expected = expected_places(pairs);
    std::vector<Chosen> more;
    for (size_t c = 0; c < candidate_.size(); ++c) {
      if (used_candidate[c]) continue;
      for (const Link& link : links_[c]) {
        if (used_reference[link.reference]) continue;
        const Chosen pair = chosen(link, 0, noise_.empty() ? 0 : noise_[noise_.size() / 2]);
        const size_t place = expected[c],
                     off = place > link.reference ? place - link.reference : link.reference - place;
        const bool told = !pair.has_twins || link.distance < kPairLimits.program.recorded_again;  // a residual stream's
        const bool certain =
            told && agreement(link) >= limits_.certain_agreement && pair.confidence >= limits_.certain_confidence;
        if (certain || (link.learned && off <= limits_.window && pair.confidence >= limits_.confidence))
          more.push_back(pair);
      }
    }
    std::stable_sort(more.begin(), more.end(), [this](const Chosen& a, const Chosen& b) {
      return a.confidence + limits_.of_weight * weight(*a.link) > b.confidence + limits_.of_weight * weight(*b.link);
    });
    for (const Chosen& pair : more) {
      if (used_reference[pair.link->reference] || used_candidate[pair.link->candidate]) continue;
      used_reference[pair.link->reference] = used_candidate[pair.link->candidate] = true;
      pairs.push_back(pair);
    }
  }

  // The reference place that the chain suggests for each candidate: that of the pair before it.
  std::vector<size_t> expected_places(const std::vector<Chosen>& pairs) const {
    std::vector<size_t> places(candidate_.size(), 0);
    for (const Chosen& pair : pairs) places[pair.link->candidate] = pair.link->reference;
    for (size_t c = 1; c < places.size(); ++c)
      if (places[c] == 0) places[c] = places[c - 1];
    return places;
  }

  AutoPairing result(const std::vector<Chosen>& pairs) const {
    AutoPairing made;
    std::vector<bool> used_reference(reference_.size()), used_candidate(candidate_.size());
    for (const auto& [r, c] : anchors_) used_reference[r] = used_candidate[c] = true;
    for (const Chosen& pair : pairs) {
      const Link& link = *pair.link;
      if (used_reference[link.reference] || used_candidate[link.candidate]) continue;  // an anchor
      used_reference[link.reference] = used_candidate[link.candidate] = true;
      made.pairs.push_back(
          {link.reference, link.candidate, link.layout, pair.confidence, pair.evidence, link.distance});
    }
    std::sort(made.pairs.begin(), made.pairs.end(),
              [](const AutoPair& a, const AutoPair& b) { return a.reference < b.reference; });
    for (size_t r = 0; r < used_reference.size(); ++r)
      if (!used_reference[r]) made.unpaired_reference.push_back(r);
    for (size_t c = 0; c < used_candidate.size(); ++c)
      if (!used_candidate[c]) made.unpaired_candidate.push_back(c);
    note_fused(made);
    return made;
  }

  // The reference fuses what the candidate keeps apart: no layout of the candidate's part gives the whole.
  void note_fused(AutoPairing& made) const {
    std::vector<NamedTensor> reference, candidate;  // with exchanged roles
    for (const size_t c : made.unpaired_candidate) reference.push_back(candidate_[c]);
    for (const size_t r : made.unpaired_reference) candidate.push_back(reference_[r]);
    const PairingNames names(reference, candidate);
    for (const auto& links : find_links(reference, candidate, names))
      for (const Link& link : links)
        if (is_part(link) && agreement(link) > limits_.fused_part)
          made.notes.push_back(fmt::format("'{}' of the candidate is part of '{}' of the reference ({}): unpaired",
                                           reference[link.reference].path, candidate[link.candidate].path,
                                           link.layout.text()));
  }

  const ChainLimits& limits_ = kPairLimits.chain;
  const std::vector<NamedTensor>&reference_, &candidate_;
  const std::vector<std::pair<size_t, size_t>>& anchors_;
  const std::function<bool(const Link&)>& possible_;
  PairingNames names_;
  Links links_;
  std::vector<std::vector<const Link*>> by_reference_;
  LinkWeigher weigher_;  // of what stands before
  std::unordered_map<const Link*, double> weights_;
  std::vector<double> noise_;  // along the last chain
};

}  // namespace

AutoPairing pair_automatically(const std::vector<NamedTensor>& reference, const std::vector<NamedTensor>& candidate,
                               const std::vector<std::pair<size_t, size_t>>& anchors,
                               const std::function<bool(const Link&)>& possible) {
  return ContentPairer(reference, candidate, anchors, possible).run();
}

}  // namespace parity
