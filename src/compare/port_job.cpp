#include "compare/port_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "compare/cast_path.hpp"
#include "compare/faults/catalogue.hpp"
#include "compare/findings.hpp"
#include "compare/main_job.hpp"
#include "compare/pairing.hpp"
#include "compare/pairing_layout.hpp"
#include "compare/stale.hpp"
#include "trace/lanes.hpp"

namespace parity {
namespace {

constexpr size_t kExplanations = 8;  // kept a row
constexpr int kStaleRank = 2;        // a change that gives the value from the port's own inputs says more

std::vector<ReplayOptions> lane_options() {
  std::vector<ReplayOptions> lanes(kLanes);
  lanes[kOracle].precision = lanes[kPerturbed].precision = Precision::fp64;
  lanes[kExact].arithmetic = Arithmetic::exact;
  lanes[kReordered].arithmetic = Arithmetic::reordered;
  return lanes;
}

class PortJob {
 public:
  PortJob(const Dump& dump, const Program& program, const std::vector<CandidateTensor>& candidate,
          const PortPairing& pairing, const PortJobOptions& options)
      : dump_(dump),
        program_(program),
        candidate_(candidate),
        pairing_(pairing),
        options_(options),
        segments_(segments_of(program, pairing.marked)),
        ancestors_(program.marked_ancestors(pairing.marked)),
        dtype_(recorded_dtype(program)),
        by_boundary_(program.boundaries.size(), nullptr) {
    for (const PortPair& pair : pairing.pairs) {
      by_boundary_[pair.boundary] = &pair;
      by_value_[program.boundaries[pair.boundary].value.id].push_back(pair.boundary);
    }
  }

  PortJobResult run() {
    const auto visit = [this](const Crossing& crossing) { return cross(crossing); };
    DeviationSource source;
    if (options_.diagnose) {
      catalogue_ = std::make_unique<Catalogue>(program_, kOracle, kExact);
      source = [this](int op) { return start(op); };
    }
    const auto reports = replay_in_step(dump_, program_, lane_options(), visit, source);
    for (const std::string& op : reports[kOracle].lowered) result_.warnings.push_back("not fp64 in the oracle: " + op);
    report_coverage(reports[kRecorded].opaque);
    std::stable_sort(result_.rows.begin(), result_.rows.end(),
                     [](const OpResult& a, const OpResult& b) { return a.index < b.index; });
    return std::move(result_);
  }

 private:
  std::vector<Deviation> start(int op) {
    options_.progress(static_cast<double>(op) / static_cast<double>(std::max<size_t>(1, program_.ops.size())));
    std::vector<Deviation> deviations;
    for (FaultHypothesis& hypothesis : catalogue_->at(op)) {
      deviations.push_back(std::move(hypothesis.deviation));
      hypotheses_.push_back(std::move(hypothesis));
    }
    return deviations;
  }

  Replacements cross(const Crossing& crossing) {
    const PortPair* pair = by_boundary_[crossing.boundary];
    if (pair == nullptr) {
      const Boundary& skipped = program_.boundaries[crossing.boundary];
      const bool module = skipped.path.find('/') == std::string::npos;
      if (options_.diagnose && module) stale_.remember(skipped.path, skipped.call, crossing.computed[kOwn]);
      return {};
    }
    OpResult row = describe(*pair);
    const at::Tensor value = aligned(*pair, row);
    if (value.defined()) compare(row, value, crossing);
    if (wanted(row)) result_.rows.push_back(std::move(row));
    if (!value.defined()) return {};
    Replacements replacements(kLanes, value);
    replacements[kPerturbed] = perturbed(value);
    replacements[kOwn] = std::nullopt;
    return replacements;
  }

  // The candidate's tensor in the reference's layout; undefined, and the row judged, when the shapes do not fit.
  at::Tensor aligned(const PortPair& pair, OpResult& row) const {
    const Fitted fit = pair.layout.fit_reference(candidate_[pair.candidate].load());  // a damaged file ends the run
    const at::Tensor& value = fit.tensor;
    if (value.defined() && value.sizes().vec() == row.shape) return value;
    row.diagnosis = fit.problem;
    if (value.defined())
      row.diagnosis = fmt::format("shape differs: reference {}, candidate {}{}", c10::str(at::IntArrayRef(row.shape)),
                                  c10::str(value.sizes()), advice(pair, row, value));
    row.verdict = Verdict::shape;
    row.gate = Gate::structure;
    return {};
  }

  static std::string advice(const PortPair& pair, const OpResult& row, const at::Tensor& value) {
    return pair.layout.text().empty() ? layout_advice(row.path, row.shape, row.candidate_path, value.sizes()) : "";
  }

  OpResult describe(const PortPair& pair) const {
    const Boundary& boundary = program_.boundaries[pair.boundary];
    OpResult row;
    row.index = static_cast<int64_t>(pair.boundary);
    row.path = boundary.path;
    row.candidate_path = candidate_[pair.candidate].path;
    row.call = boundary.call;
    row.kind = segments_[pair.boundary].kind.empty() ? boundary.kind : segments_[pair.boundary].kind;
    row.dtype = dtype_;
    row.tensor_dtype = short_dtype_name(boundary.value.dtype);
    row.shape = boundary.value.shape;
    return row;
  }

  void compare(OpResult& row, const at::Tensor& value, const Crossing& crossing) {
    const auto& lanes = crossing.computed;
    const Evidence evidence =
        measure_local({value, lanes[kOracle], lanes[kRecorded], lanes[kExact], lanes[kReordered]});
    row.forced = evidence.forced;
    row.oracle = evidence.oracle;
    row.free = measure(lanes[kOwn], value);
    free_error_[row.index] = row.free->rel_l2.value_or(0);
    add_amplification(row, lanes);
    const std::vector<Finding> found = options_.diagnose ? findings(row, crossing, value) : std::vector<Finding>();
    judge_port(row, evidence, segments_[row.index], found, options_.limits);
    row.explanations = explanations(found);
    if (options_.paths || (row.gate == Gate::dtype_path && row.verdict == Verdict::fail))
      add_path(row, value, crossing);
  }

  // The cast placements that reach this boundary, beside the recorded one.
  void add_path(const OpResult& row, const at::Tensor& value, const Crossing& crossing) {
    const Segment& segment = segments_[row.index];
    const at::ScalarType dtype = program_.boundaries[row.index].value.dtype;
    if (!segment.arithmetic || !(at::isFloatingType(dtype) || at::isComplexType(dtype)) || !wanted(row)) return;
    DtypePath path{row.path, "port", "", {placement("as recorded", crossing.computed[kRecorded], value, dtype)}};
    for (const DeviatingValue& d : crossing.deviating) {
      const FaultHypothesis& h = hypotheses_[d.deviation];
      if (h.gate == Gate::dtype_path)
        path.candidates.push_back(placement(fmt::format("{}: {}", h.fault, h.detail), d.value, value, dtype));
    }
    conclude(path, cast_path_of(program_, segment));
    if (path.candidates.size() > kExplanations) path.candidates.resize(kExplanations);
    result_.dtype_paths.push_back(std::move(path));
  }

  std::vector<Explanation> explanations(const std::vector<Finding>& found) const {
    std::vector<Explanation> list;
    for (const Finding& f : found)
      list.push_back({f.fault, f.detail, f.gate, f.fit.amplitude, f.fit.z, f.explained(),
                      detectable_amplitude(f, options_.limits)});
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.explained > b.explained; });
    if (list.size() > kExplanations) list.resize(kExplanations);
    return list;
  }

  void add_amplification(OpResult& row, const std::vector<at::Tensor>& lanes) {
    const auto change = measure(lanes[kOracle], lanes[kPerturbed]).rel_l2;
    if (!change) return;
    row.amplification = *change / kPerturbation;
    double carried = 0;
    for (const size_t a : ancestors_[row.index])
      if (const auto found = free_error_.find(static_cast<int64_t>(a)); found != free_error_.end())
        carried = std::max(carried, found->second);
    row.predicted_free = std::hypot(*row.amplification * carried, row.forced->rel_l2.value_or(0));
  }

  // Every path under which a value is compared that this row is computed from: a module's result is also its last
  // op's and its last child's.
  std::set<std::string> names_of_inputs(const OpResult& row) const {
    std::set<std::string> names;
    for (const size_t a : ancestors_[row.index])
      for (const size_t b : by_value_.at(program_.boundaries[a].value.id))
        if (static_cast<int64_t>(b) < row.index) names.insert(program_.boundaries[b].path);
    return names;
  }

  // What explains the candidate's value, an older value that it repeats among it.
  std::vector<Finding> findings(const OpResult& row, const Crossing& crossing, const at::Tensor& value) {
    std::vector<Finding> found =
        match_hypotheses(crossing, value, hypotheses_, final_op(program_.boundaries[row.index].value.id));
    const std::set<std::string> inputs = names_of_inputs(row);
    const at::Tensor& own = crossing.computed[kOwn];
    std::string older = stale_.seen_before(row.path, row.call, value, own, inputs),
                as = "bitwise what the candidate has at ";
    if (older.empty()) {
      older = stale_.like_reference(row.path, row.call, value, crossing.computed[kRecorded]);
      as = "but for rounding what the reference has at ";
      if (inputs.contains(older)) older.clear();
    }
    stale_.remember(row.path, row.call, own);
    directions_ += static_cast<int64_t>(found.size());
    if (!older.empty() && row.forced->bitwise_equal_share.value_or(1) < 1) {
      Finding f{"stale value", as + older, Gate::logic, true, {}, 0};
      f.fit = {1, 99, 1, 1, 1};
      f.rank = kStaleRank;
      found.push_back(std::move(f));
    }
    return found;
  }

  // The op that computed a value, through views and copies of it; -1 for leaves.
  int final_op(int64_t id) const {
    const ProgramIndex& index = catalogue_->index();
    int op = index.producer(id);
    while (op >= 0 && program_.ops[op].view && index.argument(op, 0) >= 0 &&
           index.producer(index.argument(op, 0)) < op && index.producer(index.argument(op, 0)) >= 0)
      op = index.producer(index.argument(op, 0));
    return op;
  }

  static at::Tensor perturbed(const at::Tensor& value) {
    if (!at::isFloatingType(value.scalar_type()) && !at::isComplexType(value.scalar_type())) return value;
    const at::Tensor wide = raised(value);
    return wide * (1 + kPerturbation * at::randn_like(wide));
  }

  bool wanted(const OpResult& row) const {
    return matches_layer(row.path, options_.layer) || matches_layer(row.candidate_path, options_.layer);
  }

  // A candidate with fewer tensors is judged by longer stretches of the reference's program.
  std::string granularity() const {
    std::vector<size_t> lengths;
    const PortPair* longest = nullptr;
    for (const PortPair& pair : pairing_.pairs) {
      const size_t ops = segments_[pair.boundary].ops.size();
      if (ops == 0) continue;
      if (longest == nullptr || ops > segments_[longest->boundary].ops.size()) longest = &pair;
      lengths.push_back(ops);
    }
    if (longest == nullptr) return "";
    std::nth_element(lengths.begin(), lengths.begin() + lengths.size() / 2, lengths.end());
    const size_t most = segments_[longest->boundary].ops.size(), median = lengths[lengths.size() / 2];
    if (most == 1) return "";
    const std::string& path = program_.boundaries[longest->boundary].path;
    return fmt::format(
        "{} compared points for {} ops: a verdict covers the ops since the compared points before it, {} at "
        "the median, {} at most (before {})",
        lengths.size(), program_.ops.size(), median, most, path.empty() ? "the model's result" : path);
  }

  void report_coverage(const std::vector<std::string>& opaque) {
    Pairing marked;
    marked.marked = pairing_.marked;
    for (const size_t c : pairing_.unmatched) marked.unmatched.push_back(candidate_[c].path);
    std::vector<size_t> uncovered;
    result_.coverage = coverage_of(program_, marked, uncovered);
    result_.coverage.opaque = opaque;
    result_.coverage.granularity = granularity();
    result_.coverage.directions = directions_;
    for (const size_t b : uncovered) {
      const Boundary& boundary = program_.boundaries[b];
      OpResult row;
      row.index = static_cast<int64_t>(b);
      row.path = boundary.path;
      row.call = boundary.call;
      row.kind = boundary.kind;
      row.dtype = dtype_;
      row.shape = boundary.value.shape;
      row.gate = Gate::structure;
      row.diagnosis = "the candidate has no counterpart, and none of its later tensors is computed from it";
      if (wanted(row)) result_.rows.push_back(std::move(row));
    }
  }

  const Dump& dump_;
  const Program& program_;
  const std::vector<CandidateTensor>& candidate_;
  const PortPairing& pairing_;
  const PortJobOptions& options_;
  const std::vector<Segment> segments_;
  const std::vector<std::vector<size_t>> ancestors_;
  const std::string dtype_;
  std::vector<const PortPair*> by_boundary_;
  std::unordered_map<int64_t, std::vector<size_t>> by_value_;  // paired boundaries by value id
  std::unique_ptr<Catalogue> catalogue_;
  std::vector<FaultHypothesis> hypotheses_;  // by deviation number
  StaleRegistry stale_;
  std::map<int64_t, double> free_error_;
  int64_t directions_ = 0;
  PortJobResult result_;
};

}  // namespace

PortJobResult run_port_job(const Dump& dump, const Program& program, const std::vector<CandidateTensor>& candidate,
                           const PortPairing& pairing, const PortJobOptions& options) {
  return PortJob(dump, program, candidate, pairing, options).run();
}

}  // namespace parity
