#include "weights/settle.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/dtype_kind.hpp"

namespace parity {
namespace {

constexpr size_t kTried = 8;  // candidates without a name or content in common that are examined for a missing one

class Settler {
 public:
  Settler(const WeightSide& reference, const WeightSide& candidate, const AuditProgress& progress)
      : progress_(progress), all_{reference, candidate, find_units(reference, candidate, progress), {}, {}, {}, {}} {
    Units& units = all_.units;
    intents_ = intents(units.reference, units.candidate, units.held, units.similar);
    all_.holders.resize(units.reference.size()), all_.owners.resize(units.candidate.size());
    for (size_t h = 0; h < units.held.size(); ++h) {
      all_.holders[units.held[h].reference].push_back(h);
      all_.owners[units.held[h].candidate].push_back(h);
    }
    for (size_t r = 0; r < intents_.size(); ++r)
      if (intents_[r].candidate) intended_for_[*intents_[r].candidate].push_back(r);
  }

  Settlement run() {
    all_.outcomes.resize(all_.units.reference.size());
    for (size_t r = 0; r < all_.outcomes.size(); ++r) settle_by_content(r);
    for (size_t r = 0; r < all_.outcomes.size(); ++r)
      if (const UnitMatch* held = accepted(r))
        conventions_.learn(all_.mine(r), all_.theirs(held->candidate), held->content.order);
    for (size_t r = 0; r < all_.outcomes.size(); ++r) check_layout(r);
    for (size_t r = 0; r < all_.outcomes.size(); ++r) {
      if (all_.outcomes[r].settled) continue;
      progress_("examining " + all_.mine(r).name.path);
      settle_by_name(r);
    }
    for (size_t r = 0; r < all_.outcomes.size(); ++r)
      if (!all_.outcomes[r].settled) search_left_over(r);
    for (size_t r = 0; r < all_.outcomes.size(); ++r)
      if (!all_.outcomes[r].settled) settle_by_name(r, true);
    return std::move(all_);
  }

 private:
  const UnitMatch* held(size_t r, size_t c) const {
    for (const size_t h : all_.holders[r])
      if (all_.units.held[h].candidate == c) return &all_.units.held[h];
    return nullptr;
  }
  const UnitMatch* accepted(size_t r) const {
    const Outcome& out = all_.outcomes[r];
    return out.settled && out.candidate ? held(r, *out.candidate) : nullptr;
  }
  // Is `c` meant for somebody else?
  bool spoken_for(size_t c, size_t r) const {
    const auto found = intended_for_.find(c);
    return found != intended_for_.end() && (found->second.size() > 1 || found->second[0] != r);
  }

  void accept(size_t r, const UnitMatch& h, std::string evidence) {
    Outcome& out = all_.outcomes[r];
    out.candidate = h.candidate;
    out.order = h.content.order;
    out.rounding = h.content.rounding;
    out.fault = rounding_fault(h.content.rounding, all_.candidate.parameters()[all_.theirs(h.candidate).tensor].dtype);
    out.evidence = std::move(evidence);
    out.settled = true;
    all_.claimed.insert(h.candidate);
  }

  // The candidate holds it where its name says; or elsewhere, where no name objects.
  void settle_by_content(size_t r) {
    const Intent& intent = intents_[r];
    if (all_.holders[r].empty()) return;
    if (intent.candidate)
      if (const UnitMatch* h = held(r, *intent.candidate)) return accept(r, *h, intent.evidence);
    std::vector<const UnitMatch*> free, twins;
    for (const size_t h : all_.holders[r]) {
      const UnitMatch& one = all_.units.held[h];
      if (!spoken_for(one.candidate, r)) {
        free.push_back(&one);
        continue;
      }
      for (const size_t owner : intended_for_.at(one.candidate))  // held there for a tensor of the same content
        if (held(owner, one.candidate)) twins.push_back(&one);
    }
    if (intent.candidate && (intent.same_name || free.empty())) return;  // its own place holds something else
    if (!free.empty()) return accept(r, *best(r, free), "content");
    if (twins.empty() || intent.candidate) return;
    accept(r, *twins[0], "content");
    all_.outcomes[r].tied = true;
    all_.outcomes[r].note = "tied: the candidate stores it once";
  }

  const UnitMatch* best(size_t r, const std::vector<const UnitMatch*>& list) const {
    return *std::max_element(list.begin(), list.end(), [&](const UnitMatch* a, const UnitMatch* b) {
      return likeness(all_.mine(r).name, all_.theirs(a->candidate).name) <
             likeness(all_.mine(r).name, all_.theirs(b->candidate).name);
    });
  }

  void check_layout(size_t r) {
    const UnitMatch* h = accepted(r);
    if (h == nullptr || all_.outcomes[r].tied) return;
    Outcome& out = all_.outcomes[r];
    const std::string text = order_text(all_.mine(r), all_.theirs(h->candidate), out.order);
    if (text == "reshaped") {
      out.fault = Fault{"reshaped",
                        "read in its own order as the reference's shape: reshaped where a permutation of axes belongs",
                        Gate::structure, Verdict::fail, out.order};
      return;
    }
    std::string why;
    const auto expected = conventions_.expected(all_.mine(r), all_.theirs(h->candidate), why);
    if (!expected) return;
    const std::string wanted = order_text(all_.mine(r), all_.theirs(h->candidate), *expected);
    if (wanted == text) return;
    const at::Tensor mine = all_.load_mine(r);
    const Rounding rounding =
        rounding_between(mine, in_reference_order(all_.load_theirs(h->candidate), *expected, mine.sizes()));
    if (rounding.found()) {  // symmetric: either order holds it
      out.order = *expected;
      return;
    }
    const auto axes = [](const std::string& order) {
      return order.empty() ? "as in the reference" : "permuted by (" + order + ")";
    };
    out.fault = Fault{"transposed",
                      fmt::format("its shape allows either: its axes are {}, {} by {}", axes(text), axes(wanted), why),
                      Gate::structure, Verdict::fail, *expected};
    out.order = *expected;
  }

  // Its place is known and does not hold it (or it is constant, and content cannot say).
  void settle_by_name(size_t r, bool shared = false) {
    const Intent& intent = intents_[r];
    if (!intent.candidate) return;
    if (all_.mine(r).constant && !shared && all_.claimed.contains(*intent.candidate))
      return;  // perhaps another free one is equal
    Outcome& out = all_.outcomes[r];
    const size_t c = *intent.candidate;
    if (!intent.same_name && (unlike_scalars(r, c) || anothers_place(r, c))) return;
    out.candidate = c;
    out.evidence = intent.evidence;
    out.settled = true;
    all_.claimed.insert(c);
    if (!all_.owners[c].empty() && !all_.mine(r).constant) {
      out.fault = foreign(r, c);
      out.order = all_.units.held[all_.owners[c][0]].content.order;
      return;
    }
    const at::Tensor mine = all_.load_mine(r), theirs = all_.load_theirs(c);
    std::string why;
    const auto expected = conventions_.expected(all_.mine(r), all_.theirs(c), why);
    if (const auto content = find_content(mine, theirs, expected ? &*expected : nullptr)) {
      out.order = content->order;
      out.rounding = content->rounding;
      out.fault = rounding_fault(content->rounding, theirs.scalar_type());
      out.by_name_alone = all_.mine(r).constant;
      if (!out.fault && order_text(all_.mine(r), all_.theirs(c), content->order) ==
                            (expected ? order_text(all_.mine(r), all_.theirs(c), *expected) : ""))
        return;
      if (!out.fault && !expected) return;
    }
    out.fault = diagnose(mine, theirs, expected);
    out.order = out.fault->order;
    if (!all_.owners[c].empty())
      out.fault->detail += fmt::format("; its place holds the content of {}", path_of(all_.mine(all_.owner(c))));
    if (!all_.holders[r].empty())
      out.fault->detail +=
          fmt::format("; its content lies in {}", path_of(all_.theirs(all_.units.held[all_.holders[r][0]].candidate)));
  }

  // `c` holds another parameter that names put there too: that likeness of names says so for `r` was a guess.
  bool anothers_place(size_t r, size_t c) const {
    return std::ranges::any_of(all_.owners[c], [&](size_t h) {
      const size_t p = all_.units.held[h].reference;
      return p != r && intents_[p].candidate == c;
    });
  }

  // One number each, of another class and another value (a count of batches, an exported graph's constant): no name but
  // an equal one makes them the same parameter.
  bool unlike_scalars(size_t r, size_t c) const {
    if (all_.mine(r).count() != 1 || all_.theirs(c).count() != 1) return false;
    const at::Tensor mine = all_.load_mine(r), theirs = all_.load_theirs(c);
    if (dtype_class(mine.scalar_type()) == dtype_class(theirs.scalar_type())) return false;
    if (mine.is_complex() || theirs.is_complex()) return true;
    return mine.to(at::kDouble).item<double>() != theirs.to(at::kDouble).item<double>();
  }

  // Candidate `c` should hold `r` and holds another parameter.
  Fault foreign(size_t r, size_t c) const {
    const size_t p = all_.owner(c);
    const ParameterName &mine = all_.mine(r).name, &held_name = all_.mine(p).name;
    const std::string content = fmt::format("holds the content of {}", path_of(all_.mine(p)));
    Fault fault{"misplaced", content, Gate::logic, Verdict::fail, {}};
    const bool layers = mine.form == held_name.form && mine.tokens.blocks != held_name.tokens.blocks;
    if (all_.holders[r].empty()) {
      fault.name = layers ? "wrong layer" : "duplicated";
      fault.detail = fmt::format("{} (stored twice); its own is nowhere in the candidate", content);
      const bool twice = intents_[p].candidate && held(p, *intents_[p].candidate) != nullptr;
      if (!twice) fault.detail = fmt::format("{}; its own is nowhere in the candidate", content);
      if (!twice && !layers) fault.name = "misplaced";
      return fault;
    }
    const size_t place = all_.units.held[all_.holders[r][0]].candidate;
    const bool swapped = intents_[p].candidate && held(r, *intents_[p].candidate) != nullptr;
    if (!swapped) {
      if (layers) fault.name = "wrong layer";
      fault.detail = fmt::format("{}; its own lies in {}", content, path_of(all_.theirs(place)));
      return fault;
    }
    fault.name = layers ? "wrong layer" : "swapped";
    const std::string a = role_of(mine), b = role_of(held_name);
    const std::string what = layers ? fmt::format("layers {} and {} swapped", fmt::join(mine.tokens.blocks, "."),
                                                  fmt::join(held_name.tokens.blocks, "."))
                             : a != b && !a.empty() && !b.empty() ? fmt::format("{} and {}", a, b)
                                                                  : "two parameters";
    fault.detail = fmt::format("{}: {}, whose place ({}) holds this one's", what, content,
                               path_of(all_.theirs(*intents_[p].candidate)));
    return fault;
  }

  // No name and no content says where: is it, changed in a way that has a name, in a tensor that nobody claims?
  void search_left_over(size_t r) {
    std::vector<std::pair<double, size_t>> tried;
    for (size_t c = 0; c < all_.units.candidate.size(); ++c)
      if (!all_.claimed.contains(c) && all_.owners[c].empty() && !intended_for_.contains(c) &&
          all_.theirs(c).count() == all_.mine(r).count() && !roles_differ(all_.mine(r).name, all_.theirs(c).name))
        tried.emplace_back(-likeness(all_.mine(r).name, all_.theirs(c).name), c);
    std::sort(tried.begin(), tried.end());
    if (tried.size() > kTried) tried.resize(kTried);
    if (tried.empty()) return;
    const at::Tensor mine = all_.load_mine(r);
    for (const auto& [unlike, c] : tried) {
      if (unlike_scalars(r, c)) continue;
      const at::Tensor theirs = all_.load_theirs(c);
      Outcome out;
      out.settled = true, out.candidate = c;
      out.evidence = fmt::format("left over on both sides (name {:.2f})", -unlike);
      if (const auto content = find_content(mine, theirs)) {
        out.order = content->order, out.rounding = content->rounding;
        out.fault = rounding_fault(content->rounding, theirs.scalar_type());
        out.by_name_alone = true;
      } else {
        out.fault = diagnose(mine, theirs, std::nullopt);
        const std::string& name = out.fault->name;
        if (name == "values differ" || name == "shuffled" || name == "zero" || name == "constant" || name == "nan")
          continue;
        out.order = out.fault->order;
      }
      all_.outcomes[r] = out;
      all_.claimed.insert(c);
      return;
    }
  }

  const AuditProgress& progress_;
  Settlement all_;
  std::vector<Intent> intents_;
  std::map<size_t, std::vector<size_t>> intended_for_;  // candidate unit -> reference units
  Conventions conventions_;
};

}  // namespace

std::string path_of(const Unit& unit) {
  if (!unit.slice) return unit.name.path;
  const auto [axis, begin, length] = *unit.slice;
  return fmt::format("{}[{}:{} of axis {}]", unit.name.path, begin, begin + length, axis);
}

Settlement settle(const WeightSide& reference, const WeightSide& candidate, const AuditProgress& progress) {
  return Settler(reference, candidate, progress).run();
}

}  // namespace parity
