#include "pair/moved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "pair/folded.hpp"
#include "pair/folded_group.hpp"
#include "pair/forced_pairs.hpp"
#include "pair/inserted_ops.hpp"
#include "pair/limits.hpp"
#include "pair/without_pairs.hpp"

namespace parity {
namespace {

// "; nor are 11 more like it: a, b, c, …"
std::string others_of(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), static_cast<size_t>(kPairLimits.moved.shown) + 1);
  if (names.size() < 2) return "";
  return fmt::format("; nor {} {} more like it: {}{}", names.size() == 2 ? "is" : "are", names.size() - 1,
                     fmt::join(names.begin() + 1, names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < names.size() ? ", …" : "");
}

class MovedBoundaries {
 public:
  MovedBoundaries(PortPairing& pairing, ForcedPairs& forced, const Program& reference,
                  const std::vector<CandidateTensor>& candidate)
      : pairing_(pairing), forced_(forced), reference_(reference), candidate_(candidate) {}

  void run() {
    int in_vain = 0;
    for (size_t b = 0; b < forced_.count() && forced_.work > 0 && in_vain < limits_.most; ++b) {
      if (!forced_.off_by_far(b)) continue;
      const std::vector<size_t> next = followers(b);
      if (next.empty()) continue;
      const at::Tensor tensor = forced_.theirs(b).value();  // it fits, as it was measured
      const WithoutPairs found = without_pairs(forced_, reference_, {b}, next, tensor);
      const bool shows = std::any_of(next.begin(), next.end(), [&](size_t t) { return forced_.off_by_far(t); });
      auto place = shows ? place_of(b, tensor, found) : absorbed(b, tensor, found, next);
      if (!place && !shows) place = folded_alone(b, found);
      if (place) {
        take(b, *place);
      } else if (const auto group = folded_group(forced_, reference_, b, found);
                 group && std::ranges::none_of(group->members, [&](size_t m) { return followers(m).empty(); })) {
        for (size_t i = 0; i < group->members.size(); ++i)
          take(group->members[i], {std::nullopt, true, group->off, 0, "", group->weights[i]});
      } else {
        ++in_vain;
      }
    }
    if (!renamed_.empty()) pairing_.notes.push_back(first_renamed_ + others_of(renamed_));
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
    std::string folded = {};  // PortPair::folded
  };

  const Boundary& boundary(size_t b) const { return reference_.boundaries[b]; }

  // A port may be given the tokens that the reference's run picked: they follow from no logits of its own.
  std::vector<size_t> followers(size_t b) {
    std::vector<size_t> next = forced_.followers(forced_.marked_without({b}), b);
    const std::set<int64_t> after = values_from(reference_, {boundary(b).value.id}, /*through_picks=*/false);
    std::erase_if(next, [&](size_t t) { return !after.contains(boundary(t).value.id); });
    return next;
  }

  // `tensor`: the one that b has; `found`: the program without it.
  std::optional<Place> place_of(size_t b, const at::Tensor& tensor, const WithoutPairs& found) {
    const int healed = forced_.healed(found.off);
    std::vector<std::pair<double, size_t>> order;
    for (const auto& [w, far] : found.near) order.emplace_back(far, w);
    std::sort(order.begin(), order.end());
    const bool by_map = of_map(b);
    if (auto elsewhere = by_map ? std::nullopt : best_of(b, tensor, order, healed > 0)) return elsewhere;
    if (healed == 0) return std::nullopt;
    const std::string weights = follows_closely(reference_, found.off) ? folded_at(forced_, found, b) : "";
    if (by_map && weights.empty()) return std::nullopt;
    if (by_map) return Place{std::nullopt, true, found.off, healed, "", weights};
    std::set<size_t> pairs = found.part.needed;
    for (const auto& [t, off] : found.off) pairs.insert(t);
    if (const auto other = second_name_of(b, tensor, pairs)) return renamed(b, found.off, *other);
    Place place{std::nullopt, true, found.off, healed, "", weights};
    if (weights.empty())
      place.note = fmt::format(
          "what the port has after its {} does not follow from it but from the reference's value there: the port went "
          "on with another value than it recorded",
          name_of(b));
    return place;
  }

  // What follows agrees with b's tensor and without it: with a value behind it, when the op between them does nothing
  // the second time (a ReLU in the product before it). `next`: the paired values that are computed from b's.
  std::optional<Place> absorbed(size_t b, const at::Tensor& tensor, const WithoutPairs& found,
                                const std::vector<size_t>& next) {
    if (of_map(b) || found.off.empty() || forced_.worse(found.off)) return std::nullopt;
    for (const auto& [w, far] : found.near)
      if (w > b && is_it(b, far)) return Place{w, false, found.off, 0, note_of_place(b, w)};
    if (const auto other = second_name_of(b, tensor, {next.begin(), next.end()})) return renamed(b, found.off, *other);
    return std::nullopt;
  }

  // What follows is not off by far (attention whose scores are small), but agrees only without b's factor.
  std::optional<Place> folded_alone(size_t b, const WithoutPairs& found) const {
    const auto heals = [&](const auto& at) {
      const double before = forced_.off(at.first);
      return before > folded_limit(boundary(at.first).value.dtype) && at.second * limits_.clearly <= before;
    };
    if (!follows_closely(reference_, found.off) || std::ranges::none_of(found.off, heals)) return std::nullopt;
    const std::string weights = folded_at(forced_, found, b);
    return weights.empty() ? std::nullopt : std::optional(Place{std::nullopt, true, found.off, 0, "", weights});
  }

  // The tensor in the place of each of these values, the nearest first; `equal`: it must be that value.
  std::optional<Place> best_of(size_t b, const at::Tensor& tensor, const std::vector<std::pair<double, size_t>>& order,
                               bool equal) {
    std::optional<Place> best;
    int tried = 0;
    for (const auto& [far, w] : order) {
      if (equal && !is_it(b, far)) break;
      if (++tried > limits_.places || forced_.work < 0) break;
      std::vector<bool> marked = forced_.marked_without({b});
      const std::vector<size_t> next = forced_.followers(marked, w);
      marked[w] = true;
      if (next.empty()) continue;
      Place place{w, false, forced_.off_on(forced_.part_to(next, marked), {{boundary(w).value.id, tensor}}), 0, ""};
      place.healed = forced_.healed(place.off);
      if (place.healed > (best ? best->healed : 0)) best = std::move(place);
      if (equal && best) break;
    }
    if (best) best->note = note_of_place(b, *best->to);
    return best;
  }

  // Is a value so far from b's tensor what it is, and not b's?
  bool is_it(size_t b, double far) const { return far <= limits_.far && far * limits_.clearly <= forced_.off(b); }

  // Which of these pairs has b's tensor, too.
  std::optional<size_t> second_name_of(size_t b, const at::Tensor& tensor, const std::set<size_t>& pairs) const {
    for (const size_t p : pairs) {
      if (forced_.paired(p) == nullptr || boundary(p).value.id == boundary(b).value.id) continue;
      const auto other = forced_.theirs(p);
      if (other && other->sizes() == tensor.sizes() && is_it(b, ForcedPairs::distance(*other, tensor))) return p;
    }
    return std::nullopt;
  }

  // The pair is no pair. Ports do this layer by layer: the first is said in full, the others by name.
  Place renamed(size_t b, const OffByBoundary& off, size_t other) {
    if (renamed_.empty())
      first_renamed_ = fmt::format(
          "the port's {} is the value of its {}, not that of the reference's {}, and what the port has after it does "
          "not follow from it: it is not compared",
          name_of(b), name_of(other), shown(b));
    renamed_.push_back(name_of(b));
    return {std::nullopt, false, off, 0, ""};
  }

  std::string note_of_place(size_t b, size_t to) const {
    return fmt::format(
        "the port's {} is another value than the reference's {}: what the port has after it follows only when it is "
        "read as the map rule `{} = {}` would",
        name_of(b), shown(b), shown(to), name_of(b));
  }

  std::string shown(size_t b) const { return boundary(b).path.empty() ? "(result)" : boundary(b).path; }
  bool of_map(size_t b) const { return forced_.paired(b)->evidence.starts_with("map"); }
  std::string name_of(size_t b) const { return candidate_[forced_.paired(b)->candidate].path; }

  void take(size_t b, const Place& place) {
    const std::vector<size_t> names = forced_.names_of(b);
    forced_.believe(place.off);
    if (!place.note.empty()) pairing_.notes.push_back(place.note);
    for (const size_t name : names) {
      PortPair& pair = *forced_.paired(name);
      if (place.stays) {
        pair.goes_on = false;
        pair.folded = place.folded;
      } else {
        give(pair, name == b ? place.to : std::nullopt);
      }
    }
  }

  // A pair's tensor to another boundary, or to none.
  void give(PortPair& pair, std::optional<size_t> to) {
    pairing_.marked[pair.boundary] = false;
    forced_.move(pair.boundary, to);
    if (!to) {
      pairing_.unmatched.push_back(pair.candidate);
      return;
    }
    pair.boundary = *to;
    pair.moved = true;
    pair.confidence = std::min<double>(pair.confidence, kPairLimits.family.carried_on);
    pair.evidence = "name, moved: what the port has after it agrees only so";
    pairing_.marked[*to] = true;
  }

  const MovedLimits& limits_ = kPairLimits.moved;
  PortPairing& pairing_;
  ForcedPairs& forced_;
  const Program& reference_;
  const std::vector<CandidateTensor>& candidate_;
  std::vector<std::string> renamed_;  // values that are not compared, in the order in which they were found
  std::string first_renamed_;         // what is said of the first
};

}  // namespace

void move_boundaries(PortPairing& pairing, const Dump& dump, const Program& reference,
                     const std::vector<CandidateTensor>& candidate) {
  ForcedPairs forced(pairing, dump, reference, candidate);
  exchange_siblings(forced, reference);
  MovedBoundaries(pairing, forced, reference, candidate).run();
}

}  // namespace parity
