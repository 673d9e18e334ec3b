#include "pair/moved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "core/error.hpp"
#include "measure/measure.hpp"
#include "pair/limits.hpp"
#include "pair/part_on_pairs.hpp"
#include "pair/segments.hpp"

namespace parity {
namespace {

class MovedBoundaries {
 public:
  MovedBoundaries(PortPairing& pairing, const Dump& dump, const Program& reference,
                  const std::vector<CandidateTensor>& candidate)
      : pairing_(pairing),
        dump_(dump),
        reference_(reference),
        candidate_(candidate),
        paired_(reference.boundaries.size(), nullptr),
        work_of_ops_(work_of_ops(reference)) {
    for (PortPair& pair : pairing.pairs) paired_[pair.boundary] = &pair;
  }

  void run() {
    replay_on_pairs();
    int searched = 0;
    for (size_t b = 0; b < paired_.size() && work_ > 0 && searched < limits_.most; ++b) {
      if (!off_by_far(b) || paired_[b]->evidence.starts_with("map")) continue;
      const std::vector<size_t> next = followers(marked_without(b), b);
      if (std::none_of(next.begin(), next.end(), [&](size_t t) { return off_by_far(t); })) continue;
      ++searched;
      if (const auto place = place_of(b, next)) take(b, *place);
    }
    std::erase_if(pairing_.pairs, [&](const PortPair& pair) { return paired_[pair.boundary] != &pair; });
    std::sort(pairing_.pairs.begin(), pairing_.pairs.end(),
              [](const PortPair& a, const PortPair& b) { return a.boundary < b.boundary; });
  }

 private:
  // Where a tensor belongs, and what the values that follow are off by then.
  struct Place {
    std::optional<size_t> to;  // an unpaired boundary; none: a paired one's value, or no place is known
    bool stays = false;        // no place is known
    std::map<size_t, double> off;
    int healed = 0;  // values that agree so and were off by far
    std::string note;
  };

  const Boundary& boundary(size_t b) const { return reference_.boundaries[b]; }

  bool off_by_far(size_t b) const {
    const auto found = off_.find(b);
    return found != off_.end() && found->second > limits_.far;
  }

  std::optional<at::Tensor> theirs(const PortPair& pair, const std::vector<int64_t>& shape) const {
    const at::Tensor value = pair.layout.fit_reference(candidate_[pair.candidate].load()).tensor;
    if (!value.defined() || value.sizes() != at::IntArrayRef(shape)) return std::nullopt;
    return value;
  }
  std::optional<at::Tensor> theirs(size_t b) const { return theirs(*paired_[b], boundary(b).value.shape); }

  static double distance(const at::Tensor& here, const at::Tensor& there) {
    const double found = measure_sums(here, there).rel_l2.value_or(1);
    return std::isfinite(found) ? found : 1;
  }

  void replay_on_pairs() {
    replay(dump_, reference_, {}, [&](size_t b, const at::Tensor& value) -> std::optional<at::Tensor> {
      if (paired_[b] == nullptr || !at::isFloatingType(value.scalar_type())) return std::nullopt;
      auto own = theirs(b);
      if (own && value.sizes() == own->sizes()) off_[b] = distance(value, *own);
      return own;
    });
  }

  std::vector<bool> marked_without(size_t b) const {
    std::vector<bool> marked(paired_.size());
    for (size_t i = 0; i < marked.size(); ++i) marked[i] = i != b && paired_[i] != nullptr;
    return marked;
  }

  // The next paired values that are computed from `from`, in execution order.
  std::vector<size_t> followers(const std::vector<bool>& marked, size_t from) const {
    std::vector<bool> with = marked;
    with[from] = true;
    const auto direct = reference_.marked_ancestors(with);
    std::vector<size_t> found;
    for (size_t t = from + 1; t < direct.size() && found.size() < static_cast<size_t>(limits_.followers); ++t)
      if (marked[t] && off_.contains(t) && std::find(direct[t].begin(), direct[t].end(), from) != direct[t].end())
        found.push_back(t);
    return found;
  }

  // What of the part's values, all unpaired, could be the tensor `b` has.
  std::vector<size_t> window(const ProgramPart& part, size_t b) const {
    std::set<int64_t> made;
    for (const size_t op : part.ops)
      for (const auto& output : reference_.ops[op].outputs)
        if (output) made.insert(output->id);
    for (size_t p = 0; p < paired_.size(); ++p)
      if (paired_[p] != nullptr) made.erase(boundary(p).value.id);
    std::vector<size_t> found;
    for (size_t w = 0; w < paired_.size(); ++w) {
      const Value& value = boundary(w).value;
      if (boundary(w).comparable && value.shape == boundary(b).value.shape && at::isFloatingType(value.dtype) &&
          made.erase(value.id) > 0)
        found.push_back(w);
    }
    return found;
  }

  // Runs a part on the candidate's values and looks at the boundaries that it visits.
  template <typename Look>
  void run_part(const PartOnPairs& part, std::map<int64_t, at::Tensor> given, const Look& look) {
    ReplayOptions options;
    options.part = part.part;
    options.given = std::move(given);
    for (const size_t a : part.needed)
      if (paired_[a] != nullptr)
        if (auto value = theirs(a)) options.given.try_emplace(boundary(a).value.id, *value);
    work_ -= part.work;
    replay(dump_, reference_, options, look);
  }

  // The followers' distances; with `near`, how far `tensor` is from the values of these boundaries.
  std::map<size_t, double> off_on(const PartOnPairs& part, std::map<int64_t, at::Tensor> given,
                                  const at::Tensor* tensor = nullptr, std::map<size_t, double>* near = nullptr) {
    std::map<size_t, double> off;
    try {
      run_part(part, std::move(given), [&](size_t t, const at::Tensor& value) -> std::optional<at::Tensor> {
        if (paired_[t] == nullptr) {
          if (near != nullptr) (*near)[t] = distance(value, *tensor);
          return std::nullopt;
        }
        auto own = theirs(t);
        if (own) off[t] = distance(value, *own);
        return own;
      });
    } catch (const Error&) {  // a part that cannot run alone says nothing
      off.clear();
    }
    return off;
  }

  // Values that were off by far and agree so, if none is worse; else 0.
  int healed(const std::map<size_t, double>& off) const {
    int count = 0;
    for (const auto& [t, now] : off) {
      const double before = off_.at(t);
      if (now > limits_.far && now > before) return 0;
      count += before > limits_.far && now <= limits_.far && now * limits_.clearly <= before;
    }
    return count;
  }

  // `next`: the paired values that are computed from b's.
  std::optional<Place> place_of(size_t b, const std::vector<size_t>& next) {
    const auto tensor = theirs(b);
    if (!tensor) return std::nullopt;
    PartOnPairs part = part_on_pairs(reference_, marked_without(b), next, work_of_ops_);
    const std::vector<size_t> around = window(*part.part, b);
    ProgramPart with_window = *part.part;
    with_window.boundaries.insert(with_window.boundaries.end(), around.begin(), around.end());
    std::sort(with_window.boundaries.begin(), with_window.boundaries.end());
    part.part = std::make_shared<ProgramPart>(std::move(with_window));
    std::map<size_t, double> near;
    Place place;
    place.off = off_on(part, {}, &*tensor, &near);
    place.healed = healed(place.off);
    std::vector<std::pair<double, size_t>> order;
    for (const auto& [w, far] : near) order.emplace_back(far, w);
    std::sort(order.begin(), order.end());
    if (auto elsewhere = best_of(b, *tensor, order, place.healed > 0)) return elsewhere;
    if (place.healed == 0) return std::nullopt;
    return beside_pairs(b, *tensor, part, place);
  }

  // The tensor in the place of each of these values, the nearest first; `equal`: it must be that value.
  std::optional<Place> best_of(size_t b, const at::Tensor& tensor, const std::vector<std::pair<double, size_t>>& order,
                               bool equal) {
    std::optional<Place> best;
    int tried = 0;
    for (const auto& [far, w] : order) {
      if (equal && (far > limits_.far || far * limits_.clearly > off_.at(b))) break;
      if (++tried > limits_.places || work_ < 0) break;
      std::vector<bool> marked = marked_without(b);
      const std::vector<size_t> next = followers(marked, w);
      marked[w] = true;
      if (next.empty()) continue;
      Place place{w, false,
                  off_on(part_on_pairs(reference_, marked, next, work_of_ops_), {{boundary(w).value.id, tensor}}), 0,
                  ""};
      place.healed = healed(place.off);
      if (place.healed > (best ? best->healed : 0)) best = std::move(place);
      if (equal && best) break;
    }
    if (best)
      best->note = fmt::format(
          "the port's {} is another value than the reference's {}: what the port has after it follows only when it is "
          "read as the map rule `{} = {}` would",
          name_of(b), shown(b), shown(*best->to), name_of(b));
    return best;
  }

  // It may be the value of a pair before or behind it, under a second name.
  Place beside_pairs(size_t b, const at::Tensor& tensor, const PartOnPairs& part, Place place) const {
    std::set<size_t> pairs = part.needed;
    for (const auto& [t, off] : place.off) pairs.insert(t);
    for (const size_t p : pairs) {
      if (paired_[p] == nullptr || boundary(p).value.id == boundary(b).value.id) continue;
      const auto other = theirs(p);
      if (!other || other->sizes() != tensor.sizes() || distance(*other, tensor) * limits_.clearly > off_.at(b) ||
          distance(*other, tensor) > limits_.far)
        continue;
      place.note = fmt::format(
          "the port's {} is the value of its {}, not that of the reference's {}, and what the port has after it does "
          "not follow from it: it is not compared",
          name_of(b), name_of(p), shown(b));
      return place;
    }
    place.stays = true;
    place.note = fmt::format(
        "what the port has after its {} does not follow from it but from the reference's value there: the port went on "
        "with another value than it recorded",
        name_of(b));
    return place;
  }

  std::string shown(size_t b) const { return boundary(b).path.empty() ? "(result)" : boundary(b).path; }
  std::string name_of(size_t b) const { return candidate_[paired_[b]->candidate].path; }

  // paired_ no longer points to a pair that is none.
  void take(size_t b, const Place& place) {
    for (const auto& [t, off] : place.off) off_[t] = off;
    pairing_.notes.push_back(place.note);
    PortPair& pair = *paired_[b];
    if (place.stays) {
      pair.goes_on = false;
      return;
    }
    paired_[b] = nullptr;
    off_.erase(b);
    pairing_.marked[b] = false;
    if (!place.to) {
      pairing_.unmatched.push_back(pair.candidate);
      return;
    }
    pair.boundary = *place.to;
    pair.moved = true;
    pair.confidence = std::min<double>(pair.confidence, kPairLimits.family.carried_on);
    pair.evidence = "name, moved: what the port has after it agrees only so";
    paired_[*place.to] = &pair;
    pairing_.marked[*place.to] = true;
  }

  const MovedLimits& limits_ = kPairLimits.moved;
  PortPairing& pairing_;
  const Dump& dump_;
  const Program& reference_;
  const std::vector<CandidateTensor>& candidate_;
  std::vector<PortPair*> paired_;  // by boundary
  const std::vector<double> work_of_ops_;
  std::map<size_t, double> off_;  // by paired boundary: relative L2 on the port's own earlier values
  double work_ = kPairLimits.moved.work;
};

}  // namespace

void move_boundaries(PortPairing& pairing, const Dump& dump, const Program& reference,
                     const std::vector<CandidateTensor>& candidate) {
  MovedBoundaries(pairing, dump, reference, candidate).run();
}

}  // namespace parity
