#include "weights/audit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "measure/measure.hpp"
#include "weights/rows.hpp"
#include "weights/settle.hpp"

namespace parity {
namespace {

// The settlement as rows, pairs and warnings.
class Audit {
 public:
  explicit Audit(const Settlement& all) : all_(all) {}

  AuditResult run() {
    add_rows();
    add_extras();
    return std::move(result_);
  }

 private:
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
    for (size_t r = 0; r < all_.units.reference.size(); ++r) by_tensor[all_.mine(r).tensor].push_back(r);
    for (const auto& [tensor, parts] : by_tensor) {
      const Parameter& p = all_.reference.parameters()[tensor];
      const bool lost = std::none_of(parts.begin(), parts.end(), [&](size_t r) { return all_.outcomes[r].settled; });
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
      all_.outcomes[parts[0]].settled ? ++result_.coverage.paired : ++result_.coverage.uncovered;
      if (!all_.outcomes[parts[0]].settled) result_.coverage.uncovered_paths.push_back(p.name);
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
    const std::string where = parts > 1 ? path_of(all_.mine(r)) + ": " : "";
    if (!all_.outcomes[r].settled) return fail(row, missing(r), where);
    const Outcome& out = all_.outcomes[r];
    const Unit& c = all_.theirs(*out.candidate);
    if (!row.candidate_path.empty()) row.candidate_path += " + ";
    row.candidate_path += c.name.path;
    const std::vector<int64_t>& whole = all_.candidate.parameters()[c.tensor].shape;
    WeightPair pair{all_.mine(r).tensor, c.tensor, all_.mine(r).slice, {}, out.tied, !out.fault, out.evidence};
    if (c.count() == all_.mine(r).count()) pair.layout = layout_of(out.order, c.slice, whole, all_.mine(r).shape);
    result_.pairs.push_back(pair);
    by_name_ += out.by_name_alone;
    measure_row(row, r, parts);
    if (out.fault) return fail(row, *out.fault, where);
    add_note(row, out, pair, all_.candidate.parameters()[c.tensor]);
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
    const Outcome& out = all_.outcomes[r];
    const Unit& c = all_.theirs(*out.candidate);
    if (!out.fault) {
      row.forced = equal_stats(all_.load_mine(r), all_.candidate.parameters()[c.tensor].dtype);
      return;
    }
    const at::ScalarType theirs = all_.candidate.parameters()[c.tensor].dtype;
    if (c.count() != all_.mine(r).count() ||
        dtype_class(theirs) != dtype_class(all_.reference.parameters()[all_.mine(r).tensor].dtype))
      return;
    const at::Tensor mine = all_.load_mine(r);
    row.forced = measure(mine, in_reference_order(all_.load_theirs(*out.candidate), out.order, mine.sizes()));
  }

  Fault missing(size_t r) {
    Fault fault{"missing", "no candidate tensor holds it or is named for it", Gate::structure, Verdict::missing, {}};
    const at::Tensor mine = all_.load_mine(r);
    if (all_.mine(r).constant && mine.numel() > 0 && signature_of(mine).least == 0)
      fault.detail += "; it is all zero, so a port may do without";
    for (size_t c = 0; c < all_.units.candidate.size() && !all_.mine(r).constant && mine.dim() > 0; ++c) {
      const Unit& u = all_.theirs(c);
      if (all_.claimed.contains(c) || u.shape.size() != all_.mine(r).shape.size() || u.count() <= all_.mine(r).count())
        continue;
      if (rows_found(mine, all_.load_theirs(c)) < 0.95) continue;
      fault = {"interleaved",
               fmt::format("its rows lie scattered in {} (fused head by head?), which no map rule can say", path_of(u)),
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
    row.explanations.push_back({fault.name, fault.detail, "", fault.gate, 1, 0, 1, 0});
  }

  // Does the candidate know none of the reference's names, as the file of an exported graph does?
  bool nameless() const {
    std::set<std::string> names;
    for (const Parameter& p : all_.reference.parameters()) names.insert(p.name);
    const std::vector<Parameter>& there = all_.candidate.parameters();
    return std::none_of(there.begin(), there.end(), [&](const Parameter& p) { return names.contains(p.name); });
  }

  void warn(const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) result_.warnings.push_back(fmt::format("{}: {}", what, fmt::join(names, ", ")));
  }

  // Candidate tensors that no reference parameter was paired with. Single numbers among the constants of a graph (eps,
  // a scale) belong to its formulas: every export of a right port would stay undecided.
  void add_extras() {
    std::set<size_t> used;
    for (const WeightPair& pair : result_.pairs) used.insert(pair.candidate);
    const bool graph = nameless();
    std::vector<std::string> computed, numbers;
    for (size_t c = 0; c < all_.candidate.parameters().size(); ++c) {
      if (used.contains(c) || holds_rows_.contains(c)) continue;
      const Parameter& p = all_.candidate.parameters()[c];
      result_.coverage.unmatched_candidates.push_back(p.name);
      std::string copy;
      for (size_t u = 0; u < all_.units.candidate.size(); ++u)
        if (all_.theirs(u).tensor == c && !all_.owners[u].empty()) copy = path_of(all_.mine(all_.owner(u)));
      if (!copy.empty()) {
        result_.warnings.push_back(
            fmt::format("extra: {} is a copy of what the reference calls {} (tied)", p.name, copy));
      } else if (!is_float(p.dtype) || computed_by_name(p.name)) {
        computed.push_back(p.name);
      } else if (graph && p.count() == 1) {
        numbers.push_back(p.name);
      } else {
        OpResult row = head(p, all_.reference.parameters().size() + c);
        row.candidate_path = p.name;
        row.verdict = Verdict::inconclusive;
        row.gate = Gate::structure;
        row.diagnosis = "extra: the reference has no such parameter, under no name";
        row.explanations.push_back({"extra", "the reference has no such parameter", "", Gate::structure, 1, 0, 1, 0});
        result_.rows.push_back(std::move(row));
      }
    }
    warn("extra, computed and not trained", computed);
    warn("extra, single numbers of a graph whose names are its own, no parameters", numbers);
  }

  const Settlement& all_;
  std::set<size_t> holds_rows_;  // candidate tensors in which rows of a lost parameter were found
  std::vector<std::string> computed_;
  size_t by_name_ = 0;
  AuditResult result_;
};

}  // namespace

AuditResult audit_weights(const WeightSide& reference, const WeightSide& candidate, const AuditProgress& progress) {
  return Audit(settle(reference, candidate, progress)).run();
}

}  // namespace parity
