#include "jobs/sketch_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/dtype_kind.hpp"
#include "core/error.hpp"
#include "core/glob.hpp"
#include "core/precision.hpp"
#include "jobs/plain_job.hpp"
#include "jobs/sketch_side.hpp"
#include "judge/sketches.hpp"

namespace parity {
namespace {

// A fault's own error stands out from what other valid kernels have accumulated before it.
constexpr double kJump = 4;

class SketchJob {
 public:
  SketchJob(const Sides& sides, const std::string& layer, const GoOn& go_on)
      : sides_(sides),
        layer_(layer),
        go_on_(go_on),
        reference_(sketch_side(sides.reference)),
        candidate_(sketch_side(sides.candidate)) {}

  JobResult run() {
    pair_up();
    for (const SketchSideTensor& t : reference_)
      if (is_half(t.dtype)) inherited_ = std::max(inherited_, unit_roundoff(t.dtype));
    const std::vector<bool> covered = covered_by_later();
    for (size_t r = 0; r < reference_.size() && !result_.interrupted; ++r) {
      result_.interrupted = go_on_ && !go_on_(result_);
      if (!matches_layer(reference_[r].path, layer_)) continue;
      if (partners_.contains(r))
        result_.rows.push_back(row(r));
      else if (!is_given(reference_[r]))
        leave_out(r, covered);
    }
    for (size_t c = 0; c < candidate_.size(); ++c)
      if (!taken_.contains(c) && !is_given(candidate_[c]) && !candidate_[c].of_op)
        result_.coverage.unmatched_candidates.push_back(candidate_[c].path);
    explain();
    return std::move(result_);
  }

 private:
  using Key = std::pair<std::string, int>;
  struct Partner {
    size_t candidate;
    Layout layout;
  };

  // Inputs and weights: what the model is given.
  static bool is_given(const SketchSideTensor& t) { return t.kind == "input" || t.kind == "weight"; }

  void pair_up() {
    std::map<Key, size_t> names;
    std::vector<NameMap::Name> named;
    for (size_t c = 0; c < candidate_.size(); ++c) names.emplace(Key(candidate_[c].path, candidate_[c].call), c);
    for (size_t r = 0; r < reference_.size(); ++r) {
      const SketchSideTensor& own = reference_[r];
      named.push_back({own.path, own.call});
      const auto target = sides_.map ? sides_.map->find(own.path, own.call) : std::nullopt;
      const auto found = names.find(counterpart_of(target, own.path, own.call));
      if (found == names.end()) continue;
      const SketchSideTensor& partner = candidate_[found->second];
      // Another tensor: the same weight in another layout (a port's transposed one), a mask in numbers for booleans.
      const bool alike =
          partner.shape == reference_[r].shape && (partner.dtype == at::kBool) == (reference_[r].dtype == at::kBool);
      if (!target && is_given(partner) && !alike) continue;
      partners_[r] = {found->second, target ? target->layout : Layout{}};
      taken_.insert(found->second);
    }
    if (sides_.map) sides_.map->require_all_used(named);
  }

  // By reference tensor: is a paired one computed from it? Only a program tells.
  std::vector<bool> covered_by_later() const {
    std::vector<bool> covered(reference_.size());
    const Program& program = sides_.reference.program;
    if (program.ops.empty()) return covered;
    std::vector<bool> marked(program.boundaries.size());
    for (const auto& [r, partner] : partners_)
      if (reference_[r].boundary >= 0) marked[static_cast<size_t>(reference_[r].boundary)] = true;
    const std::vector<bool> found = program.covered_by(marked);
    for (size_t r = 0; r < reference_.size(); ++r)
      covered[r] = reference_[r].boundary >= 0 && found[static_cast<size_t>(reference_[r].boundary)];
    return covered;
  }

  OpResult head(size_t r) const {
    const SketchSideTensor& t = reference_[r];
    OpResult row;
    row.index = static_cast<int64_t>(r);
    row.path = t.path;
    row.call = t.call;
    row.kind = t.kind;
    row.dtype = row.tensor_dtype = short_dtype_name(t.dtype);
    row.shape = t.shape;
    row.source = t.source;
    row.gate = Gate::structure;
    return row;
  }

  void leave_out(size_t r, const std::vector<bool>& covered) {
    if (covered[r] || reference_[r].of_op) {
      ++result_.coverage.covered;
      return;
    }
    OpResult missing = head(r);
    missing.diagnosis = "the candidate has no counterpart";
    ++result_.coverage.uncovered;
    result_.coverage.uncovered_paths.push_back(missing.path);
    result_.rows.push_back(std::move(missing));
  }

  OpResult row(size_t r) {
    ++result_.coverage.paired;
    OpResult row = head(r);
    const Partner& partner = partners_.at(r);
    row.candidate_path = candidate_[partner.candidate].path;
    row.candidate_source = candidate_[partner.candidate].source;
    compare(row, reference_[r], candidate_[partner.candidate], partner.layout);
    inherit(row);
    return row;
  }

  // A tensor that is not much further off than one before it may have all of that from there.
  void inherit(OpResult& row) {
    const double error = row.free && row.free->rel_l2 ? *row.free->rel_l2 : 0;
    if (row.verdict == Verdict::fail && row.gate == Gate::logic && error > 0 && error < kJump * before_) {
      row.gate = Gate::propagation;
      row.diagnosis += fmt::format("; a tensor before it is {:.2g} off", before_);
    }
    before_ = std::max(before_, error);
  }

  static void structure(OpResult& row, std::string text) {
    row.verdict = Verdict::shape;
    row.diagnosis = std::move(text);
  }

  // Whole tensors take the layout; a sketch cannot change its own, so the other side takes on its.
  void compare(OpResult& row, const SketchSideTensor& reference, const SketchSideTensor& candidate,
               const Layout& layout) {
    at::Tensor expected = reference.load ? reference.load() : at::Tensor();
    at::Tensor value = candidate.load ? candidate.load() : at::Tensor();
    std::vector<int64_t> shape = candidate.shape;
    if (value.defined()) {
      const Fitted fit = layout.fit_reference(value);
      if (!fit.tensor.defined()) return structure(row, fit.problem);
      value = fit.tensor;
      shape = value.sizes().vec();
    } else if (!layout.as_it_is()) {
      if (!expected.defined())
        return untrusted(row,
                         "neither side of this rule is whole, and a sketch cannot change its layout: record one "
                         "side in the other's");
      const Fitted fit = layout.fit_candidate(expected, candidate.shape);
      if (!fit.tensor.defined()) return structure(row, fit.problem);
      expected = fit.tensor;
      row.shape = expected.sizes().vec();
    }
    if (row.shape != shape)
      return structure(row, fmt::format("shape differs: reference {}, candidate {}",
                                        c10::str(at::IntArrayRef(row.shape)), c10::str(at::IntArrayRef(shape))));
    if (dtype_class(reference.dtype) != dtype_class(candidate.dtype))
      return structure(row, fmt::format("dtype class differs: reference {}, candidate {}", dtype_name(reference.dtype),
                                        dtype_name(candidate.dtype)));
    if (expected.defined() && value.defined()) return compare_whole(row, expected, value);
    judge(row, reference, candidate, expected, value);
  }

  void judge(OpResult& row, const SketchSideTensor& reference, const SketchSideTensor& candidate,
             const at::Tensor& expected, const at::Tensor& value) {
    SketchedTensor r{reference.read ? reference.read() : Sketch{}, reference.dtype};
    SketchedTensor c{candidate.read ? candidate.read() : Sketch{}, candidate.dtype};
    if (!reference.read) r.sketch = sketch_of(expected, static_cast<int64_t>(c.sketch.buckets.size()));
    if (!candidate.read) c.sketch = sketch_of(value, static_cast<int64_t>(r.sketch.buckets.size()));
    judge_sketches(row, r, c, inherited_);
    const size_t buckets = std::min(r.sketch.buckets.size(), c.sketch.buckets.size());
    fewest_ = std::min(fewest_, buckets);
    most_ = std::max(most_, buckets);
    ++sketched_;
  }

  static void untrusted(OpResult& row, std::string text) {
    row.verdict = Verdict::untrusted;
    row.gate = Gate::none;
    row.diagnosis = std::move(text);
  }

  // What a sketch can and cannot tell, once for the report.
  void explain() {
    if (sketched_ == 0) {
      result_.warnings.emplace_back("compared without replay: own and inherited errors cannot be told apart");
      return;
    }
    const auto error = [](size_t buckets) { return 100 / std::sqrt(2 * static_cast<double>(buckets)); };
    const std::string sizes =
        fewest_ == most_
            ? fmt::format("{} buckets a tensor (standard error of a relative L2 {:.2g} %)", most_, error(most_))
            : fmt::format("{} to {} buckets a tensor (standard error of a relative L2 {:.2g} to {:.2g} %)", fewest_,
                          most_, error(most_), error(fewest_));
    result_.warnings.push_back(fmt::format(
        "{} of {} comparisons are estimates from sketches of {}. A sketch tells: how far a tensor is off as a "
        "whole, order of its elements included; shape, dtype, NaN and Inf, range; a changed sign, gain or offset. It "
        "cannot tell: where in the tensor (unless few elements differ), percentiles, ULPs, bitwise equality, and whose "
        "error it is, because nothing can be replayed on it: inherited and own errors come together, and the first "
        "divergence is the first tensor that is off much further than all before it. Every row says "
        "from which relative L2 on it finds a difference",
        sketched_, result_.rows.size(), sizes));
  }

  const Sides& sides_;
  const std::string& layer_;
  const GoOn& go_on_;
  const std::vector<SketchSideTensor> reference_, candidate_;
  std::map<size_t, Partner> partners_;  // by reference tensor
  std::set<size_t> taken_;
  double before_ = 0;     // largest relative L2 so far
  double inherited_ = 0;  // unit roundoff of the half dtype in the model, 0: none
  size_t fewest_ = SIZE_MAX, most_ = 0, sketched_ = 0;
  JobResult result_;
};

}  // namespace

JobResult run_sketch_job(const Sides& sides, const std::string& layer, const GoOn& go_on) {
  return SketchJob(sides, layer, go_on).run();
}

}  // namespace parity
