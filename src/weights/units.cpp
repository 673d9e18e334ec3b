#include "weights/units.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "weights/fused.hpp"

namespace parity {
namespace {

constexpr int64_t kUnitSamples = 128, kLeastSimilar = 32;  // elements
constexpr double kSimilar = 0.9;  // correlation; that of 32 unrelated samples exceeds it once in 1e12

Unit whole(const KnownSide& known, size_t tensor) {
  return {tensor, std::nullopt, known.parameter(tensor).shape, known.signatures[tensor].constant(),
          known.names[tensor]};
}

class Search {
 public:
  Search(const WeightSide& reference, const WeightSide& candidate, const AuditProgress& progress)
      : r_(look_at(reference, progress)), c_(look_at(candidate, progress)), progress_(progress) {}

  Units run() {
    match_whole();
    match_similar();
    find_parts(r_, c_, progress_);
    find_parts(c_, r_, progress_);
    for (KnownSide* known : {&r_, &c_}) spread_parts(*known), add_units(*known);
    for (const auto& [r, c, content] : whole_)
      units_.held.push_back({first_unit_[0].at(r), first_unit_[1].at(c), content});
    for (const auto& [r, c, content] : similar_)
      if (!r_.slices.contains(r) && !c_.slices.contains(c))
        units_.similar.push_back({first_unit_[0].at(r), first_unit_[1].at(c), content});
    match_parts();
    return std::move(units_);
  }

 private:
  struct Whole {
    size_t reference, candidate;
    Content content;
  };

  void match_whole() {
    std::vector<std::pair<double, size_t>> by_square;
    for (size_t c = 0; c < c_.count(); ++c) by_square.emplace_back(c_.signatures[c].power[1], c);
    std::sort(by_square.begin(), by_square.end());
    for (size_t r = 0; r < r_.count(); ++r) {
      progress_("comparing " + r_.parameter(r).name);
      const Signature& mine = r_.signatures[r];
      if (mine.constant()) continue;
      const double reach = 2 * most_square_change(mine);
      auto at = std::lower_bound(by_square.begin(), by_square.end(), std::pair(mine.power[1] - reach, size_t{0}));
      at::Tensor value;
      for (; at != by_square.end() && at->first <= mine.power[1] + reach; ++at) {
        const size_t c = at->second;
        if (!may_hold_the_same(mine, c_.signatures[c])) continue;
        if (!value.defined()) value = r_.side.load(r);
        const auto content = find_content(value, c_.side.load(c));
        if (!content) continue;
        whole_.push_back({r, c, *content});
        r_.matched[r] = c_.matched[c] = true;
      }
    }
  }

  // Of tensors that no content pairs, those whose samples are correlated beyond chance: the best one for each.
  void match_similar() {
    std::map<std::pair<size_t, std::vector<int64_t>>, std::vector<double>> known;
    for (size_t r = 0; r < r_.count(); ++r) {
      const Parameter& mine = r_.parameter(r);
      if (!r_.open(r) || r_.signatures[r].constant() || mine.count() < kLeastSimilar) continue;
      progress_("samples of " + mine.name);
      const auto places = sample_places(mine.count(), kUnitSamples);
      std::map<std::vector<int64_t>, std::vector<double>> own;
      double most = kSimilar;
      std::optional<Whole> best;
      for (size_t c = 0; c < c_.count(); ++c) {
        const Parameter& theirs = c_.parameter(c);
        if (!c_.open(c) || c_.signatures[c].constant() || theirs.count() != mine.count()) continue;
        for (const Order& order : orders_between(theirs.shape, mine.shape)) {
          std::vector<double>&a = own[order.reference], &b = known[{c, order.candidate}];
          if (a.empty()) a = sample(r_.side.load(r), order.reference, places);
          if (b.empty()) b = sample(c_.side.load(c), order.candidate, places);
          if (const double x = std::abs(correlation(a, b)); x > most) most = x, best = Whole{r, c, {order, {}}};
        }
      }
      if (!best) continue;
      similar_.push_back(*best);
      r_.similar[r] = c_.similar[best->candidate] = true;
    }
  }

  static double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const auto n = static_cast<double>(a.size());
    double sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
    for (size_t i = 0; i < a.size(); ++i)
      sa += a[i], sb += b[i], saa += a[i] * a[i], sbb += b[i] * b[i], sab += a[i] * b[i];
    const double spread = (saa - sa * sa / n) * (sbb - sb * sb / n);
    return spread > 0 ? (sab - sa * sb / n) / std::sqrt(spread) : 0;
  }

  void add_units(const KnownSide& known) {
    const int side = &known == &c_;
    std::vector<Unit>& units = side == 0 ? units_.reference : units_.candidate;
    for (size_t i = 0; i < known.count(); ++i) {
      first_unit_[side][i] = units.size();
      const auto fused = known.slices.find(i);
      if (fused == known.slices.end()) {
        units.push_back(whole(known, i));
        continue;
      }
      const at::Tensor value = known.side.load(i);
      for (size_t part = 0; part < fused->second.size(); ++part) {
        Unit unit = whole(known, i);
        unit.slice = fused->second[part];
        unit.shape = sliced(unit.shape, unit.slice);
        unit.constant = signature_of(sliced(value, unit.slice)).constant();
        name_part(unit, part, fused->second.size());
        units.push_back(std::move(unit));
      }
    }
  }

  void match_parts() {
    std::vector<Signature> mine = signatures(units_.reference, r_), theirs = signatures(units_.candidate, c_);
    for (size_t r = 0; r < units_.reference.size(); ++r)
      for (size_t c = 0; c < units_.candidate.size(); ++c) {
        const Unit &a = units_.reference[r], &b = units_.candidate[c];
        if ((!a.slice && !b.slice) || a.constant || b.constant || !may_hold_the_same(mine[r], theirs[c])) continue;
        const auto content =
            find_content(sliced(r_.side.load(a.tensor), a.slice), sliced(c_.side.load(b.tensor), b.slice));
        if (content) units_.held.push_back({r, c, *content});
      }
  }

  static std::vector<Signature> signatures(const std::vector<Unit>& units, const KnownSide& known) {
    std::vector<Signature> out;
    for (const Unit& unit : units)
      out.push_back(unit.slice ? signature_of(sliced(known.side.load(unit.tensor), unit.slice))
                               : known.signatures[unit.tensor]);
    return out;
  }

  KnownSide r_, c_;
  const AuditProgress& progress_;
  std::vector<Whole> whole_, similar_;
  std::map<size_t, size_t> first_unit_[2];
  Units units_;
};

}  // namespace

Units find_units(const WeightSide& reference, const WeightSide& candidate, const AuditProgress& progress) {
  return Search(reference, candidate, progress).run();
}

}  // namespace parity
