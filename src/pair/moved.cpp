#include "pair/moved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "pair/forced_pairs.hpp"
#include "pair/limits.hpp"

namespace parity {
namespace {

class MovedBoundaries {
 public:
  MovedBoundaries(PortPairing& pairing, ForcedPairs& forced, const Program& reference,
                  const std::vector<CandidateTensor>& candidate)
      : pairing_(pairing), forced_(forced), reference_(reference), candidate_(candidate) {}

  void run() {
    int searched = 0;
    for (size_t b = 0; b < forced_.count() && forced_.work > 0 && searched < limits_.most; ++b) {
      if (!forced_.off_by_far(b) || forced_.paired(b)->evidence.starts_with("map")) continue;
      const std::vector<size_t> next = forced_.followers(forced_.marked_without(b), b);
      if (std::none_of(next.begin(), next.end(), [&](size_t t) { return forced_.off_by_far(t); })) continue;
      ++searched;
      if (const auto place = place_of(b, next)) take(b, *place);
    }
    std::erase_if(pairing_.pairs, [&](const PortPair& pair) { return forced_.paired(pair.boundary) != &pair; });
    std::sort(pairing_.pairs.begin(), pairing_.pairs.end(),
              [](const PortPair& a, const PortPair& b) { return a.boundary < b.boundary; });
  }

 private:
  // Where a tensor belongs, and what the values that follow are off by then.
  struct Place {
    std::optional<size_t> to;  // an unpaired boundary; none: a paired one's value, or no place is known
    bool stays = false;        // no place is known
    OffByBoundary off;
    int healed = 0;
    std::string note;
  };

  const Boundary& boundary(size_t b) const { return reference_.boundaries[b]; }

  // What of the part's values, all unpaired, could be the tensor `b` has.
  std::vector<size_t> window(const ProgramPart& part, size_t b) const {
    std::set<int64_t> made;
    for (const size_t op : part.ops)
      for (const auto& output : reference_.ops[op].outputs)
        if (output) made.insert(output->id);
    for (size_t p = 0; p < forced_.count(); ++p)
      if (forced_.paired(p) != nullptr) made.erase(boundary(p).value.id);
    std::vector<size_t> found;
    for (size_t w = 0; w < forced_.count(); ++w) {
      const Value& value = boundary(w).value;
      if (boundary(w).comparable && value.shape == boundary(b).value.shape && at::isFloatingType(value.dtype) &&
          made.erase(value.id) > 0)
        found.push_back(w);
    }
    return found;
  }

  // `next`: the paired values that are computed from b's.
  std::optional<Place> place_of(size_t b, const std::vector<size_t>& next) {
    const auto tensor = forced_.theirs(b);
    if (!tensor) return std::nullopt;
    PartOnPairs part = forced_.part_to(next, forced_.marked_without(b));
    const std::vector<size_t> around = window(*part.part, b);
    ProgramPart with_window = *part.part;
    with_window.boundaries.insert(with_window.boundaries.end(), around.begin(), around.end());
    std::sort(with_window.boundaries.begin(), with_window.boundaries.end());
    part.part = std::make_shared<ProgramPart>(std::move(with_window));
    OffByBoundary near;
    Place place;
    place.off = forced_.off_on(part, {}, &*tensor, &near);
    place.healed = forced_.healed(place.off);
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
      if (equal && (far > limits_.far || far * limits_.clearly > forced_.off(b))) break;
      if (++tried > limits_.places || forced_.work < 0) break;
      std::vector<bool> marked = forced_.marked_without(b);
      const std::vector<size_t> next = forced_.followers(marked, w);
      marked[w] = true;
      if (next.empty()) continue;
      Place place{w, false, forced_.off_on(forced_.part_to(next, marked), {{boundary(w).value.id, tensor}}), 0, ""};
      place.healed = forced_.healed(place.off);
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
      if (forced_.paired(p) == nullptr || boundary(p).value.id == boundary(b).value.id) continue;
      const auto other = forced_.theirs(p);
      if (!other || other->sizes() != tensor.sizes() ||
          ForcedPairs::distance(*other, tensor) * limits_.clearly > forced_.off(b) ||
          ForcedPairs::distance(*other, tensor) > limits_.far)
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
  std::string name_of(size_t b) const { return candidate_[forced_.paired(b)->candidate].path; }

  void take(size_t b, const Place& place) {
    forced_.believe(place.off);
    pairing_.notes.push_back(place.note);
    PortPair& pair = *forced_.paired(b);
    if (place.stays) {
      pair.goes_on = false;
      return;
    }
    forced_.move(b, place.to);
    pairing_.marked[b] = false;
    if (!place.to) {
      pairing_.unmatched.push_back(pair.candidate);
      return;
    }
    pair.boundary = *place.to;
    pair.moved = true;
    pair.confidence = std::min<double>(pair.confidence, kPairLimits.family.carried_on);
    pair.evidence = "name, moved: what the port has after it agrees only so";
    pairing_.marked[*place.to] = true;
  }

  const MovedLimits& limits_ = kPairLimits.moved;
  PortPairing& pairing_;
  ForcedPairs& forced_;
  const Program& reference_;
  const std::vector<CandidateTensor>& candidate_;
};

}  // namespace

void move_boundaries(PortPairing& pairing, const Dump& dump, const Program& reference,
                     const std::vector<CandidateTensor>& candidate) {
  ForcedPairs forced(pairing, dump, reference, candidate);
  exchange_siblings(forced, reference);
  MovedBoundaries(pairing, forced, reference, candidate).run();
}

}  // namespace parity
