#include "weights/audit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "weights/conventions.hpp"
#include "weights/faults.hpp"
#include "weights/rows.hpp"

namespace parity {
namespace {

constexpr size_t kTried = 8;  // candidates without a name or content in common that are examined for a missing one

// What became of one reference unit.
struct Outcome {
  std::optional<size_t> candidate;
  Order order;
  std::optional<Fault> fault;
  Rounding rounding;
  std::string evidence, note;
  bool tied = false, by_name_alone = false;
};

class Audit {
 public:
  Audit(const WeightSide& reference, const WeightSide& candidate, const AuditProgress& progress)
      : reference_(reference),
        candidate_(candidate),
        progress_(progress),
        units_(find_units(reference, candidate, progress)) {
    intents_ = intents(units_.reference, units_.candidate, units_.held, units_.similar);
    holders_.resize(units_.reference.size()), owners_.resize(units_.candidate.size());
    for (size_t h = 0; h < units_.held.size(); ++h) {
      holders_[units_.held[h].reference].push_back(h);
      owners_[units_.held[h].candidate].push_back(h);
    }
    for (size_t r = 0; r < intents_.size(); ++r)
      if (intents_[r].candidate) intended_for_[*intents_[r].candidate].push_back(r);
  }

  AuditResult run() {
    outcomes_.resize(units_.reference.size());
    for (size_t r = 0; r < outcomes_.size(); ++r) settle_by_content(r);
    for (size_t r = 0; r < outcomes_.size(); ++r)
      if (const Held* held = accepted(r)) conventions_.learn(unit(r), other(held->candidate), held->content.order);
    for (size_t r = 0; r < outcomes_.size(); ++r) check_layout(r);
    for (size_t r = 0; r < outcomes_.size(); ++r) {
      if (settled_[r]) continue;
      progress_("examining " + unit(r).name.path);
      settle_by_name(r);
    }
    for (size_t r = 0; r < outcomes_.size(); ++r)
      if (!settled_[r]) search_left_over(r);
    for (size_t r = 0; r < outcomes_.size(); ++r)
      if (!settled_[r]) settle_by_name(r, true);
    add_rows();
    add_extras();
    return std::move(result_);
  }

 private:
  const Unit& unit(size_t r) const { return units_.reference[r]; }
  const Unit& other(size_t c) const { return units_.candidate[c]; }
  at::Tensor load(const Unit& u, bool mine) const {
    return sliced((mine ? reference_ : candidate_).load(u.tensor), u.slice);
  }
  const Held* held(size_t r, size_t c) const {
    for (const size_t h : holders_[r])
      if (units_.held[h].candidate == c) return &units_.held[h];
    return nullptr;
  }
  const Held* accepted(size_t r) const {
    return settled_[r] && outcomes_[r].candidate ? held(r, *outcomes_[r].candidate) : nullptr;
  }
  std::string path(const Unit& u) const {
    if (!u.slice) return u.name.path;
    return fmt::format("{}[{}:{} of axis {}]", u.name.path, (*u.slice)[1], (*u.slice)[1] + (*u.slice)[2],
                       (*u.slice)[0]);
  }
  // Is `c` meant for somebody else?
  bool spoken_for(size_t c, size_t r) const {
    const auto found = intended_for_.find(c);
    return found != intended_for_.end() && (found->second.size() > 1 || found->second[0] != r);
  }

  void accept(size_t r, const Held& h, std::string evidence) {
    Outcome& out = outcomes_[r];
    out.candidate = h.candidate;
    out.order = h.content.order;
    out.rounding = h.content.rounding;
    out.fault = rounding_fault(h.content.rounding, candidate_.parameters()[other(h.candidate).tensor].dtype);
    out.evidence = std::move(evidence);
    settled_[r] = true;
    claimed_.insert(h.candidate);
  }

  // The candidate holds it where its name says; or elsewhere, where no name objects.
  void settle_by_content(size_t r) {
    settled_.resize(units_.reference.size());
    const Intent& intent = intents_[r];
    if (holders_[r].empty()) return;
    if (intent.candidate)
      if (const Held* h = held(r, *intent.candidate)) return accept(r, *h, intent.evidence);
    std::vector<const Held*> free, twins;
    for (const size_t h : holders_[r]) {
      const Held& one = units_.held[h];
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
    outcomes_[r].tied = true;
    outcomes_[r].note = "tied: the candidate stores it once";
  }

  const Held* best(size_t r, const std::vector<const Held*>& list) const {
    return *std::max_element(list.begin(), list.end(), [&](const Held* a, const Held* b) {
      return likeness(unit(r).name, other(a->candidate).name) < likeness(unit(r).name, other(b->candidate).name);
    });
  }

  void check_layout(size_t r) {
    const Held* h = accepted(r);
    if (h == nullptr || outcomes_[r].tied) return;
    Outcome& out = outcomes_[r];
    const std::string text = order_text(unit(r), other(h->candidate), out.order);
    if (text == "reshaped") {
      out.fault = Fault{"reshaped",
                        "read in its own order as the reference's shape: reshaped where a permutation of axes belongs",
                        Gate::structure, Verdict::fail, out.order};
      return;
    }
    std::string why;
    const auto expected = conventions_.expected(unit(r), other(h->candidate), why);
    if (!expected) return;
    const std::string wanted = order_text(unit(r), other(h->candidate), *expected);
    if (wanted == text) return;
    const at::Tensor mine = load(unit(r), true);
    const Rounding rounding =
        rounding_between(mine, in_reference_order(load(other(h->candidate), false), *expected, mine.sizes()));
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
    if (unit(r).constant && !shared && claimed_.contains(*intent.candidate))
      return;  // perhaps another free one is equal
    Outcome& out = outcomes_[r];
    const size_t c = *intent.candidate;
    out.candidate = c;
    out.evidence = intent.evidence;
    settled_[r] = true;
    claimed_.insert(c);
    if (!owners_[c].empty() && !unit(r).constant) {
      out.fault = foreign(r, c);
      out.order = units_.held[owners_[c][0]].content.order;
      return;
    }
    const at::Tensor mine = load(unit(r), true), theirs = load(other(c), false);
    std::string why;
    const auto expected = conventions_.expected(unit(r), other(c), why);
    if (const auto content = find_content(mine, theirs, expected ? &*expected : nullptr)) {
      out.order = content->order;
      out.rounding = content->rounding;
      out.fault = rounding_fault(content->rounding, theirs.scalar_type());
      out.by_name_alone = unit(r).constant;
      if (!out.fault &&
          order_text(unit(r), other(c), content->order) == (expected ? order_text(unit(r), other(c), *expected) : ""))
        return;
      if (!out.fault && !expected) return;
    }
    out.fault = diagnose(mine, theirs, expected);
    out.order = out.fault->order;
    if (!owners_[c].empty())
      out.fault->detail += fmt::format("; its place holds the content of {}", path(unit(owner(c))));
    if (!holders_[r].empty())
      out.fault->detail += fmt::format("; its content lies in {}", path(other(units_.held[holders_[r][0]].candidate)));
  }

  size_t owner(size_t c) const { return units_.held[owners_[c][0]].reference; }

  // Candidate `c` should hold `r` and holds another parameter.
  Fault foreign(size_t r, size_t c) const {
    const size_t p = owner(c);
    const ParameterName &mine = unit(r).name, &held_name = unit(p).name;
    const std::string content = fmt::format("holds the content of {}", path(unit(p)));
    Fault fault{"misplaced", content, Gate::logic, Verdict::fail, {}};
    const bool layers = mine.form == held_name.form && mine.tokens.blocks != held_name.tokens.blocks;
    if (holders_[r].empty()) {
      fault.name = layers ? "wrong layer" : "duplicated";
      fault.detail = fmt::format("{} (stored twice); its own is nowhere in the candidate", content);
      const bool twice = intents_[p].candidate && held(p, *intents_[p].candidate) != nullptr;
      if (!twice) fault.detail = fmt::format("{}; its own is nowhere in the candidate", content);
      if (!twice && !layers) fault.name = "misplaced";
      return fault;
    }
    const size_t place = units_.held[holders_[r][0]].candidate;
    const bool swapped = intents_[p].candidate && held(r, *intents_[p].candidate) != nullptr;
    if (!swapped) {
      if (layers) fault.name = "wrong layer";
      fault.detail = fmt::format("{}; its own lies in {}", content, path(other(place)));
      return fault;
    }
    fault.name = layers ? "wrong layer" : "swapped";
    const std::string a = role_of(mine), b = role_of(held_name);
    const std::string what = layers ? fmt::format("layers {} and {} swapped", fmt::join(mine.tokens.blocks, "."),
                                                  fmt::join(held_name.tokens.blocks, "."))
                             : a != b && !a.empty() && !b.empty() ? fmt::format("{} and {}", a, b)
                                                                  : "two parameters";
    fault.detail =
        fmt::format("{}: {}, whose place ({}) holds this one's", what, content, path(other(*intents_[p].candidate)));
    return fault;
  }

  // No name and no content says where: is it, changed in a way that has a name, in a tensor that nobody claims?
  void search_left_over(size_t r) {
    std::vector<std::pair<double, size_t>> tried;
    for (size_t c = 0; c < units_.candidate.size(); ++c)
      if (!claimed_.contains(c) && owners_[c].empty() && !intended_for_.contains(c) &&
          other(c).count() == unit(r).count() && !roles_differ(unit(r).name, other(c).name))
        tried.emplace_back(-likeness(unit(r).name, other(c).name), c);
    std::sort(tried.begin(), tried.end());
    if (tried.size() > kTried) tried.resize(kTried);
    if (tried.empty()) return;
    const at::Tensor mine = load(unit(r), true);
    for (const auto& [unlike, c] : tried) {
      const at::Tensor theirs = load(other(c), false);
      Outcome out{c,  {},    std::nullopt, {}, fmt::format("left over on both sides (name {:.2f})", -unlike),
                  "", false, false};
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
      outcomes_[r] = out;
      settled_[r] = true;
      claimed_.insert(c);
      return;
    }
  }

  // ---- rows -----------------------------------------------------------------------------------------------------
  OpResult head(const Parameter& p, size_t index) const {
    OpResult row;
    row.index = static_cast<int64_t>(index);
    row.path = p.name;
    row.kind = "weight";
    row.dtype = row.tensor_dtype = short_dtype_name(p.dtype);
    row.shape = p.shape;
    return row;
  }

  void add_rows() {
    std::map<size_t, std::vector<size_t>> by_tensor;
    for (size_t r = 0; r < units_.reference.size(); ++r) by_tensor[unit(r).tensor].push_back(r);
    for (const auto& [tensor, parts] : by_tensor) {
      const Parameter& p = reference_.parameters()[tensor];
      const bool lost = std::none_of(parts.begin(), parts.end(), [&](size_t r) { return settled_[r]; });
      if (lost && (!is_float(p.dtype) || computed_by_name(p.name))) {
        computed_.push_back(p.name);
        ++result_.coverage.unused;
        result_.coverage.unused_paths.push_back(p.name);
        continue;
      }
      OpResult row = head(p, tensor);
      row.limits.push_back({"bitwise_equal_share", 1, true, "weights are copied, or rounded once, and not computed"});
      row.verdict = Verdict::pass;
      for (const size_t r : parts) add_part(row, r, parts.size());
      settled_[parts[0]] ? ++result_.coverage.paired : ++result_.coverage.uncovered;
      if (!settled_[parts[0]]) result_.coverage.uncovered_paths.push_back(p.name);
      result_.rows.push_back(std::move(row));
    }
    if (!computed_.empty())
      result_.warnings.push_back(
          fmt::format("computed, not trained, and without counterpart: {}", fmt::join(computed_, ", ")));
    if (by_name_ > 0)
      result_.warnings.push_back(
          fmt::format("{} parameters are constant (norms of ones, biases of zeros): their content says nothing, they "
                      "were paired by "
                      "name; whichever was meant, the values are equal",
                      by_name_));
  }

  void add_part(OpResult& row, size_t r, size_t parts) {
    const std::string where = parts > 1 ? path(unit(r)) + ": " : "";
    if (!settled_[r]) return fail(row, missing(r), where);
    const Outcome& out = outcomes_[r];
    const Unit& c = other(*out.candidate);
    if (!row.candidate_path.empty()) row.candidate_path += " + ";
    row.candidate_path += c.name.path;
    const std::vector<int64_t>& whole = candidate_.parameters()[c.tensor].shape;
    WeightPair pair{unit(r).tensor, c.tensor, unit(r).slice, {}, out.tied, !out.fault, out.evidence};
    if (c.count() == unit(r).count()) pair.layout = layout_of(out.order, c.slice, whole, unit(r).shape);
    result_.pairs.push_back(pair);
    by_name_ += out.by_name_alone;
    measure_row(row, r, parts);
    if (out.fault) return fail(row, *out.fault, where);
    add_note(row, out, pair, candidate_.parameters()[c.tensor]);
  }

  static void add_note(OpResult& row, const Outcome& out, const WeightPair& pair, const Parameter& theirs) {
    std::vector<std::string> notes;
    if (const std::string layout = pair.layout.text(); !layout.empty()) notes.push_back(layout);
    if (row.tensor_dtype != short_dtype_name(theirs.dtype))
      notes.push_back("stored as " + short_dtype_name(theirs.dtype));
    if (out.by_name_alone) notes.push_back("constant: paired by " + out.evidence);
    if (!out.note.empty()) notes.push_back(out.note);
    if (row.verdict == Verdict::pass && !notes.empty())
      row.diagnosis += fmt::format("{}{}", row.diagnosis.empty() ? "" : "; ", fmt::join(notes, ", "));
  }

  void measure_row(OpResult& row, size_t r, size_t parts) const {
    if (parts > 1) return;
    const Outcome& out = outcomes_[r];
    const Unit& c = other(*out.candidate);
    if (!out.fault) {
      row.forced = equal_stats(load(unit(r), true), candidate_.parameters()[c.tensor].dtype);
      return;
    }
    const at::ScalarType theirs = candidate_.parameters()[c.tensor].dtype;
    if (c.count() != unit(r).count() ||
        dtype_class(theirs) != dtype_class(reference_.parameters()[unit(r).tensor].dtype))
      return;
    const at::Tensor mine = load(unit(r), true);
    row.forced = measure(mine, in_reference_order(load(c, false), out.order, mine.sizes()));
  }

  Fault missing(size_t r) {
    Fault fault{"missing", "no candidate tensor holds it or is named for it", Gate::structure, Verdict::missing, {}};
    const at::Tensor mine = load(unit(r), true);
    if (unit(r).constant && mine.numel() > 0 && signature_of(mine).least == 0)
      fault.detail += "; it is all zero, so a port may do without";
    for (size_t c = 0; c < units_.candidate.size() && !unit(r).constant && mine.dim() > 0; ++c) {
      const Unit& u = other(c);
      if (claimed_.contains(c) || u.shape.size() != unit(r).shape.size() || u.count() <= unit(r).count()) continue;
      if (rows_found(mine, load(u, false)) < 0.95) continue;
      fault = {"interleaved",
               fmt::format("its rows lie scattered in {} (fused head by head?), which no map rule can say", path(u)),
               Gate::structure,
               Verdict::inconclusive,
               {}};
      holds_rows_.insert(u.tensor);
      break;
    }
    return fault;
  }

  static void fail(OpResult& row, const Fault& fault, const std::string& where) {
    const auto weight = [](Verdict v) {
      return v == Verdict::shape ? 3 : v == Verdict::fail ? 2 : v != Verdict::pass ? 1 : 0;
    };
    if (weight(fault.verdict) > weight(row.verdict)) row.verdict = fault.verdict, row.gate = fault.gate;
    if (row.explanations.empty()) row.diagnosis.clear();
    row.diagnosis += fmt::format("{}{}{}: {}", row.explanations.empty() ? "" : "; ", where, fault.name, fault.detail);
    row.explanations.push_back({fault.name, fault.detail, fault.gate, 1, 0, 1, 0});
  }

  // Candidate tensors that no reference parameter was paired with.
  void add_extras() {
    std::set<size_t> used;
    for (const WeightPair& pair : result_.pairs) used.insert(pair.candidate);
    std::vector<std::string> computed;
    for (size_t c = 0; c < candidate_.parameters().size(); ++c) {
      if (used.contains(c) || holds_rows_.contains(c)) continue;
      const Parameter& p = candidate_.parameters()[c];
      result_.coverage.unmatched_candidates.push_back(p.name);
      std::string copy;
      for (size_t u = 0; u < units_.candidate.size(); ++u)
        if (other(u).tensor == c && !owners_[u].empty()) copy = path(unit(owner(u)));
      if (!copy.empty()) {
        result_.warnings.push_back(
            fmt::format("extra: {} is a copy of what the reference calls {} (tied)", p.name, copy));
      } else if (!is_float(p.dtype) || computed_by_name(p.name)) {
        computed.push_back(p.name);
      } else {
        OpResult row = head(p, reference_.parameters().size() + c);
        row.candidate_path = p.name;
        row.verdict = Verdict::inconclusive;
        row.gate = Gate::structure;
        row.diagnosis = "extra: the reference has no such parameter, under no name";
        row.explanations.push_back({"extra", "the reference has no such parameter", Gate::structure, 1, 0, 1, 0});
        result_.rows.push_back(std::move(row));
      }
    }
    if (!computed.empty())
      result_.warnings.push_back(fmt::format("extra, computed and not trained: {}", fmt::join(computed, ", ")));
  }

  const WeightSide &reference_, &candidate_;
  const AuditProgress& progress_;
  const Units units_;
  std::vector<Intent> intents_;
  std::vector<std::vector<size_t>> holders_, owners_;  // indices into units_.held, by reference and by candidate unit
  std::map<size_t, std::vector<size_t>> intended_for_;
  std::vector<Outcome> outcomes_;
  std::vector<bool> settled_;
  std::set<size_t> claimed_;
  std::set<size_t> holds_rows_;  // candidate tensors in which rows of a lost parameter were found
  Conventions conventions_;
  std::vector<std::string> computed_;
  size_t by_name_ = 0;
  AuditResult result_;
};

}  // namespace

AuditResult audit_weights(const WeightSide& reference, const WeightSide& candidate, const AuditProgress& progress) {
  return Audit(reference, candidate, progress).run();
}

}  // namespace parity
