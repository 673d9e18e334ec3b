#include "pair/by_content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "pair/chain.hpp"
#include "pair/links.hpp"

namespace parity {
namespace {

constexpr double kLeastConfidence = 0.5, kLearnFrom = 0.8, kLearnBelow = 0.1;
constexpr double kOtherwiseFrom = 0.65;  // where content does not speak, a name must be this much alike
constexpr double kLeastWeight = 0.9;     // of a link in a chain; 0.65 is what a link has for nothing
constexpr double kTellingName = 0.5, kLookAlike = 0.06;
constexpr size_t kWindow = 64;  // reference tensors a pair without content may lie out of order

double linear(double x, double from, double to) { return std::clamp((x - from) / (to - from), 0.0, 1.0); }

// 1 up to the noise of a bf16 run, 0 where about half of it is something else.
double agreement(const Link& link) { return link.weight * linear(link.distance, 0.7, 0.05); }

class ContentPairer {
 public:
  ContentPairer(const std::vector<NamedTensor>& reference, const std::vector<NamedTensor>& candidate,
                const std::vector<std::pair<size_t, size_t>>& anchors, const std::function<bool(const Link&)>& possible)
      : reference_(reference),
        candidate_(candidate),
        anchors_(anchors),
        possible_(possible),
        names_(reference, candidate) {}

  AutoPairing run() {
    links_ = find_links(reference_, candidate_, names_);
    fix_anchors();
    for (const auto& [r, c] : anchors_) names_.learn(r, c, {});
    for (const Chosen& pair : pairs_of_chain())
      if (pair.confidence >= kLearnFrom && agreement(*pair.link) >= 0.6 && pair.link->distance < kLearnBelow)
        names_.learn(pair.link->reference, pair.link->candidate, pair.link->layout);
    renew_names(reference_, candidate_, names_, links_);
    fix_anchors();
    std::vector<Chosen> pairs = pairs_of_chain();
    std::erase_if(pairs, [](const Chosen& pair) { return !(pair.confidence >= kLeastConfidence); });
    add_out_of_order(pairs);
    return result(pairs);
  }

 private:
  struct Chosen {
    const Link* link = nullptr;
    double confidence = 0;
    std::string evidence;
  };

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
    double weight = 2 * link.name;
    if (agreement(link) > 0) weight += link.weight * -std::log10(std::max(link.distance, 1e-6));
    weight *= rivals_of(link).distinct;
    const bool same_dtype = reference_[link.reference].dtype == candidate_[link.candidate].dtype;
    weight += (names_.is_op(0, link.reference) ? 0 : 0.3) + (names_.is_op(1, link.candidate) ? 0 : 0.3) +
              (same_dtype ? 0.05 : 0) - (link.layout.text().empty() ? 0 : 0.5);
    return weight - 1e-7 * static_cast<double>(link.reference + link.candidate);
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
            weights_[&link] >= std::max(kLeastWeight, 0.95 * best))
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
      pairs.push_back(judge(*chain[i], (before + after) / 2, noise_[i]));
    }
    return pairs;
  }

  static double firmness(const Link& link) { return std::max(agreement(link), linear(link.name, 0.5, 0.8)); }

  // Median distance of the nine pairs around each: what rounding, or a fault before them, makes of equal tensors here.
  static std::vector<double> noise_along(const std::vector<const Link*>& chain) {
    std::vector<double> noise;
    for (size_t i = 0; i < chain.size(); ++i) {
      std::vector<double> around;
      for (size_t k = i < 4 ? 0 : i - 4; k < std::min(i + 5, chain.size()); ++k) around.push_back(chain[k]->distance);
      std::nth_element(around.begin(), around.begin() + static_cast<ptrdiff_t>(around.size() / 2), around.end());
      noise.push_back(around[around.size() / 2]);
    }
    return noise;
  }

  // Distance of the contents of two tensors of one list, whatever their layouts.
  static double between(const NamedTensor& a, const NamedTensor& b) {
    double least = 1;
    for (const auto& [x, y] : {std::pair{&a, &b}, std::pair{&b, &a}})
      for (const Reading& reading : y->print.readings)
        if (!x->print.readings.empty() && reading.whole())
          least = std::min(least, content_distance(x->print.readings[0], reading));
    return least;
  }

  static bool is_part(const Link& link) { return link.layout.split || link.layout.slice; }

  struct Rivals {
    double distinct = 1;  // 0: another tensor, of other content, fits as well
    size_t equal = 0;     // reference tensors that content cannot tell from this one
    bool named = true;    // this one has the likest name of them
  };

  Rivals rivals_of(const Link& link) const {
    Rivals rivals;
    const double own = std::max(link.distance, 1e-6);
    const auto against = [&](const Link& other, double apart) {
      if (apart <= 1.5 * std::min(own, other.distance) + 1e-6) return false;  // not to be told apart
      rivals.distinct = std::min(rivals.distinct, linear(own / std::max(other.distance, 1e-6), 1, 0.3));
      return true;
    };
    for (const Link& other : links_[link.candidate]) {
      if (other.reference == link.reference || agreement(other) == 0) continue;
      if (is_part(other) && !is_part(link)) continue;  // the reference has the parts as well
      if (against(other, between(reference_[link.reference], reference_[other.reference]))) continue;
      ++rivals.equal;
      if (other.name > link.name - 0.05) rivals.named = false;
    }
    for (const Link* other : by_reference_[link.reference])
      if (other->candidate != link.candidate && agreement(*other) > 0 && is_part(*other) <= is_part(link))
        against(*other, between(candidate_[link.candidate], candidate_[other->candidate]));
    return rivals;
  }

  // Content, name and order as independent witnesses, each with a chance to be wrong.
  Chosen judge(const Link& link, double order, double noise) const {
    const Rivals rivals = rivals_of(link);
    const double agrees = agreement(link), equals = rivals.equal == 0 || rivals.named ? 1 : 0.85;
    const double content = agrees * rivals.distinct * equals;
    // An error does not heal downstream: far from its neighbours' noise it is no counterpart, unless its name says so;
    // and where a fault has blurred everything, look-alikes abound.
    const bool doubtful =
        link.name < kTellingName && (link.distance > 10 * std::max(noise, 1e-3) || link.distance > kLookAlike);
    double name = link.name, in_order = order;
    // the n-th op of a kind in one program is not the n-th in another
    if (!link.learned && link.distance > 0.1 && (names_.is_op(0, link.reference) || names_.is_op(1, link.candidate)))
      name = std::min(name, 0.45);
    if (content < 0.5 && name < kTellingName) in_order = 0;
    if (content < 0.5 && name < kOtherwiseFrom) name *= 0.5;
    double confidence = 1 - (1 - 0.95 * content) * (1 - 0.5 * name) * (1 - 0.35 * in_order);
    if (doubtful || (agrees < 0.3 && !link.learned && name_is_ambiguous(link))) confidence = std::min(confidence, 0.45);
    if (agrees < 0.3) confidence = std::min(confidence, link.learned ? 0.85 : 0.7);
    return {&link, confidence, evidence(link, order, rivals)};
  }

  // Is another name of either list as like, and of a shape that fits?
  bool name_is_ambiguous(const Link& link) const {
    const auto rival = [&link](const Link& other) {
      return (other.reference != link.reference || other.candidate != link.candidate) && !is_part(other) &&
             other.name > link.name - 0.1;
    };
    const auto& of_reference = by_reference_[link.reference];
    return std::any_of(links_[link.candidate].begin(), links_[link.candidate].end(), rival) ||
           std::any_of(of_reference.begin(), of_reference.end(), [&](const Link* other) { return rival(*other); });
  }

  static std::string evidence(const Link& link, double order, const Rivals& rivals) {
    const double concordance = 1 - link.distance * link.distance;
    std::string text = link.weight < 0.3       ? std::string("content says nothing")
                       : agreement(link) > 0.3 ? fmt::format("content {:.4f}", std::min(concordance, 1.0))
                                               : fmt::format("content differs ({:.2f})", std::max(concordance, 0.0));
    if (rivals.equal) text += fmt::format(" (as in {} other{})", rivals.equal, rivals.equal > 1 ? "s" : "");
    text += order >= 0.5 ? ", order" : ", out of order";
    if (link.learned)
      text += ", name learned";
    else if (link.name >= 0.4)
      text += fmt::format(", name {:.2f}", link.name);
    return text;
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
        const Chosen pair = judge(link, 0, noise_.empty() ? 0 : noise_[noise_.size() / 2]);
        const size_t place = expected[c],
                     off = place > link.reference ? place - link.reference : link.reference - place;
        const bool certain = agreement(link) >= 0.8 && pair.confidence >= 0.6;
        if (certain || (link.learned && off <= kWindow && pair.confidence >= kLeastConfidence)) more.push_back(pair);
      }
    }
    std::stable_sort(more.begin(), more.end(), [this](const Chosen& a, const Chosen& b) {
      return a.confidence + 0.01 * weight(*a.link) > b.confidence + 0.01 * weight(*b.link);
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
      made.pairs.push_back({link.reference, link.candidate, link.layout, pair.confidence, pair.evidence});
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
        if (is_part(link) && agreement(link) > 0.8)
          made.notes.push_back(fmt::format("'{}' of the candidate is part of '{}' of the reference ({}): unpaired",
                                           reference[link.reference].path, candidate[link.candidate].path,
                                           link.layout.text()));
  }

  const std::vector<NamedTensor>&reference_, &candidate_;
  const std::vector<std::pair<size_t, size_t>>& anchors_;
  const std::function<bool(const Link&)>& possible_;
  PairingNames names_;
  Links links_;
  std::vector<std::vector<const Link*>> by_reference_;
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
