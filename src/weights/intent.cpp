#include "weights/intent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "weights/numbered.hpp"
#include "weights/ordered.hpp"

namespace parity {
namespace {

constexpr double kSameNames = 0.5;  // share of names found literally on the other side that makes names authoritative
constexpr double kEnough = 0.35;    // score below which two forms are not paired
constexpr size_t kMostPairs = 1'000'000;  // of forms; beyond, only those that content or equality suggests

// Weights of the evidence. Literal names outweigh all; content outweighs likeness unless roles (q, k, …) contradict.
constexpr double kLiteral = 4, kContent = 2, kRoleShare = 0.15, kSameForm = 0.3, kLikeness = 0.6, kModule = 0.5,
                 kParent = 0.2, kRoles = 1, kSimilarVote = 0.5;

struct Interned {
  std::vector<int> of;                     // by unit
  std::vector<std::vector<size_t>> units;  // by form
};

template <class Text>
Interned intern(const std::vector<Unit>& units, Text text) {
  Interned out;
  std::unordered_map<std::string, int> known;
  for (size_t u = 0; u < units.size(); ++u) {
    const auto [at, fresh] = known.emplace(text(units[u].name), static_cast<int>(known.size()));
    if (fresh) out.units.emplace_back();
    out.of.push_back(at->second);
    out.units[at->second].push_back(u);
  }
  return out;
}

// Votes of content for pairs of forms; a pair among many equal tensors counts accordingly less.
class Votes {
 public:
  void add(int reference, int candidate, double weight) {
    pair_[{reference, candidate}] += weight;
    all_[reference] += weight;
  }
  double share(int reference, int candidate) const {
    const auto found = pair_.find({reference, candidate});
    return found == pair_.end() ? 0 : found->second / all_.at(reference);
  }
  double count(int reference, int candidate) const {
    const auto found = pair_.find({reference, candidate});
    return found == pair_.end() ? 0 : found->second;
  }
  const std::map<std::pair<int, int>, double>& pairs() const { return pair_; }

 private:
  std::map<std::pair<int, int>, double> pair_;
  std::map<int, double> all_;
};

class Intents {
 public:
  Intents(const std::vector<Unit>& reference, const std::vector<Unit>& candidate, const std::vector<UnitMatch>& held,
          const std::vector<UnitMatch>& similar)
      : reference_(reference), candidate_(candidate), held_(held), similar_(similar) {
    const auto form = [](const ParameterName& n) { return n.form; };
    const auto module = [](const ParameterName& n) { return n.module_form; };
    const auto parent = [](const ParameterName& n) { return n.parent_form; };
    for (const int side : {0, 1}) {
      const auto& units = side == 0 ? reference : candidate;
      forms_[side] = intern(units, form);
      modules_[side] = intern(units, module);
      parents_[side] = intern(units, parent);
    }
    for (size_t c = 0; c < candidate.size(); ++c) by_plain_.emplace(candidate[c].name.plain, c);
    size_t same = 0;
    for (const Unit& unit : reference) same += by_plain_.contains(unit.name.plain);
    literal_ =
        static_cast<double>(same) >= kSameNames * static_cast<double>(std::min(reference.size(), candidate.size()));
    vote();
    pair_forms();
    if (!literal_) ordered_ = ordered_places(reference, candidate, held);
  }

  std::vector<Intent> run() {
    std::vector<Intent> out;
    for (size_t r = 0; r < reference_.size(); ++r) out.push_back(intent(r));
    return out;
  }

 private:
  void vote() {
    std::vector<double> mine(reference_.size(), 0), theirs(candidate_.size(), 0);
    for (const UnitMatch& h : held_) ++mine[h.reference], ++theirs[h.candidate];
    std::vector<std::map<int, double>> offsets;  // by position among a name's numbers
    const auto count = [&](const UnitMatch& h, double weight) {
      const Unit &r = reference_[h.reference], &c = candidate_[h.candidate];
      form_votes_.add(forms_[0].of[h.reference], forms_[1].of[h.candidate], weight);
      if (!roles_differ(r.name, c.name)) {
        module_votes_.add(modules_[0].of[h.reference], modules_[1].of[h.candidate], weight);
        parent_votes_.add(parents_[0].of[h.reference], parents_[1].of[h.candidate], weight);
      }
      const auto &a = r.name.tokens.blocks, &b = c.name.tokens.blocks;
      if (a.size() != b.size()) return;
      if (offsets.size() < a.size()) offsets.resize(a.size());
      for (size_t i = 0; i < a.size(); ++i) offsets[i][b[i] - a[i]] += weight;
    };
    for (const UnitMatch& h : held_) count(h, 1 / (mine[h.reference] * theirs[h.candidate]));
    for (const UnitMatch& h : similar_) count(h, kSimilarVote);
    if (literal_) return;  // equal names do not count from another number
    for (const std::map<int, double>& votes : offsets) {
      double all = 0;
      for (const auto& [offset, weight] : votes) all += weight;
      offsets_.push_back(0);
      for (const auto& [offset, weight] : votes)
        if (2 * weight > all) offsets_.back() = offset;
    }
  }

  bool literal_pair(int fr, int fc) const {
    for (const size_t r : forms_[0].units[fr])
      if (const auto c = by_plain_.find(reference_[r].name.plain); c != by_plain_.end())
        if (forms_[1].of[c->second] == fc) return true;
    return false;
  }

  bool sizes_fit(int fr, int fc) const {
    for (const size_t r : forms_[0].units[fr])
      for (const size_t c : forms_[1].units[fc])
        if (reference_[r].count() == candidate_[c].count()) return true;
    return false;
  }

  double score(int fr, int fc) const {
    const size_t r = forms_[0].units[fr][0], c = forms_[1].units[fc][0];
    const ParameterName &a = reference_[r].name, &b = candidate_[c].name;
    const bool roles = roles_differ(a, b), literal = literal_ && literal_pair(fr, fc), same = a.form == b.form;
    if (!literal && !same && !sizes_fit(fr, fc)) return -9;
    double points = kContent * form_votes_.share(fr, fc) * (roles ? kRoleShare : 1);
    points += (literal ? kLiteral : 0) + (same ? kSameForm : 0) + kLikeness * likeness(a, b) - (roles ? kRoles : 0);
    if (!roles) {
      points += kModule * module_votes_.share(modules_[0].of[r], modules_[1].of[c]);
      points += kParent * parent_votes_.share(parents_[0].of[r], parents_[1].of[c]);
    }
    return points;
  }

  void pair_forms() {
    std::set<std::pair<int, int>> worth;
    for (const auto& [pair, weight] : form_votes_.pairs()) worth.insert(pair);
    const int rows = static_cast<int>(forms_[0].units.size()), columns = static_cast<int>(forms_[1].units.size());
    const bool all = static_cast<size_t>(rows) * static_cast<size_t>(columns) <= kMostPairs;
    std::unordered_map<std::string, int> by_form;
    for (int fc = 0; fc < columns; ++fc) by_form[candidate_[forms_[1].units[fc][0]].name.form] = fc;
    for (int fr = 0; fr < rows; ++fr) {
      for (int fc = 0; all && fc < columns; ++fc) worth.insert({fr, fc});
      if (const auto same = by_form.find(reference_[forms_[0].units[fr][0]].name.form); same != by_form.end())
        worth.insert({fr, same->second});
      for (const size_t r : forms_[0].units[fr])
        if (const auto c = by_plain_.find(reference_[r].name.plain); c != by_plain_.end())
          worth.insert({fr, forms_[1].of[c->second]});
    }
    std::vector<std::tuple<double, int, int>> order;
    for (const auto& [fr, fc] : worth)
      if (const double points = score(fr, fc); points >= kEnough) order.emplace_back(-points, fr, fc);
    std::sort(order.begin(), order.end());
    std::set<int> taken;
    for (const auto& [points, fr, fc] : order) {
      if (paired_.contains(fr) || taken.contains(fc)) continue;
      paired_[fr] = {fc, -points};
      taken.insert(fc);
    }
  }

  std::string evidence(size_t r, size_t c) const {
    if (reference_[r].name.path == candidate_[c].name.path) return "equal names";
    if (reference_[r].name.plain == candidate_[c].name.plain) return "names equal but for the leaf's word";
    const double votes = form_votes_.count(forms_[0].of[r], forms_[1].of[c]);
    if (votes >= 0.5) return fmt::format("content of {:.0f} tensors of these names", votes);
    return fmt::format("most similar name ({:.2f})", likeness(reference_[r].name, candidate_[c].name));
  }

  Intent intent(size_t r) const {
    const Intent by_names = intent_by_names(r);
    const auto ordered = ordered_.find(r);
    if (ordered == ordered_.end()) return by_names;
    const Place& place = ordered->second;
    if (by_names.candidate && words(*by_names.candidate) != place.words) return by_names;
    if (!place.candidate) return {};
    return {*place.candidate, false, evidence(r, *place.candidate)};
  }

  std::string words(size_t c) const { return numbered(candidate_[c].name.path).words; }

  Intent intent_by_names(size_t r) const {
    const Unit& unit = reference_[r];
    const auto chosen = [&](size_t c) {
      return Intent{c, literal_ && candidate_[c].name.plain == unit.name.plain, evidence(r, c)};
    };
    if (literal_)
      if (const auto c = by_plain_.find(unit.name.plain); c != by_plain_.end() && unique_plain(c->second))
        return chosen(c->second);
    const auto form = paired_.find(forms_[0].of[r]);
    if (form == paired_.end()) return {};
    const auto& units = forms_[1].units[form->second.first];
    const auto& siblings = forms_[0].units[form->first];
    std::vector<int> wanted = unit.name.tokens.blocks;
    const bool comparable = candidate_[units[0]].name.tokens.blocks.size() == wanted.size();
    for (size_t i = 0; i < std::min(wanted.size(), offsets_.size()); ++i) wanted[i] += offsets_[i];
    std::vector<size_t> fitting;
    for (const size_t c : units)
      if (!comparable || candidate_[c].name.tokens.blocks == wanted) fitting.push_back(c);
    for (const UnitMatch& h : held_)  // several of one name: the one that holds it
      if (fitting.size() > 1 && h.reference == r && std::count(fitting.begin(), fitting.end(), h.candidate))
        return chosen(h.candidate);
    if (fitting.empty()) return {};
    if (fitting.size() == 1) return chosen(fitting[0]);
    const size_t rank = std::find(siblings.begin(), siblings.end(), r) - siblings.begin();
    Intent by_order = chosen(fitting[std::min(rank, fitting.size() - 1)]);
    by_order.evidence = "order among equal names";
    return by_order;
  }

  bool unique_plain(size_t c) const { return !candidate_[c].slice; }

  const std::vector<Unit>& reference_;
  const std::vector<Unit>& candidate_;
  const std::vector<UnitMatch>&held_, &similar_;
  Interned forms_[2], modules_[2], parents_[2];
  std::unordered_map<std::string, size_t> by_plain_;
  Votes form_votes_, module_votes_, parent_votes_;
  std::map<int, std::pair<int, double>> paired_;  // reference form -> candidate form, score
  std::map<size_t, Place> ordered_;               // by reference unit
  bool literal_ = false;
  std::vector<int> offsets_;  // candidate's numbers of layers, outermost first, less the reference's
};

}  // namespace

int64_t Unit::count() const {
  int64_t n = 1;
  for (const int64_t length : shape) n *= length;
  return n;
}

std::vector<Intent> intents(const std::vector<Unit>& reference, const std::vector<Unit>& candidate,
                            const std::vector<UnitMatch>& held, const std::vector<UnitMatch>& similar) {
  return Intents(reference, candidate, held, similar).run();
}

}  // namespace parity
