#include "jobs/port_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "core/error.hpp"
#include "core/glob.hpp"
#include "core/segment.hpp"
#include "diagnose/cast_path.hpp"
#include "diagnose/faults/catalogue.hpp"
#include "diagnose/finding.hpp"
#include "diagnose/findings.hpp"
#include "diagnose/stale.hpp"
#include "jobs/exercise.hpp"
#include "jobs/model_job.hpp"
#include "jobs/port_coverage.hpp"
#include "jobs/reproduction.hpp"
#include "jobs/rows.hpp"
#include "judge/naming.hpp"
#include "judge/port.hpp"
#include "measure/local.hpp"
#include "measure/measure.hpp"
#include "pair/layout_advice.hpp"
#include "pair/model_pairing.hpp"
#include "pair/segments.hpp"
#include "trace/lanes.hpp"

namespace parity {
namespace {

constexpr size_t kExplanations = 8;  // kept a row
constexpr size_t kHiddenShown = 5;   // inputs and weights named that nothing compared moves with
constexpr double kCertain = 99;      // sigma of a bitwise repetition
constexpr int kStaleRank = 2;        // a change that gives the value from the port's own inputs says more

std::vector<ReplayOptions> lane_options() {
  std::vector<ReplayOptions> lanes(kLanes);
  lanes[kOracle].precision = lanes[kPerturbed].precision = Precision::fp64;
  for (size_t lane = kRecorded; lane <= kLastValid; ++lane)
    lanes[lane].arithmetic = static_cast<Arithmetic>(lane - kRecorded);
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
        limits_(options.limits),
        by_boundary_(program.boundaries.size(), nullptr),
        exercise_(program),
        reproduction_(dump, program, limits_) {
    for (const PortPair& pair : pairing.pairs) {
      by_boundary_[pair.boundary] = &pair;
      by_value_[program.boundaries[pair.boundary].value.id].push_back(pair.boundary);
    }
  }

  JobResult run() {
    const auto visit = [this](const Crossing& crossing) { return cross(crossing); };
    DeviationSource source;
    if (options_.diagnose) {
      catalogue_ = std::make_unique<Catalogue>(program_, kOracle, kExact);
      share_the_budget();
      source = [this](int op) { return start(op); };
    }
    const auto ran = [this](int op, const auto& value) { exercise_.ran(op, value); };
    const auto reports = replay_in_step(dump_, program_, lane_options(), visit, source, ran);
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

  // As many sigma as the run's number of projections asks for.
  void share_the_budget() {
    int64_t tests = 1;
    for (int op = 0; op < static_cast<int>(program_.ops.size()); ++op)
      tests += static_cast<int64_t>(catalogue_->at(op).size());
    limits_.z = {
        sigma_limit(limits_.false_alarms.value, tests),
        fmt::format("{} false alarms over {} named changes of the run (Sidak)", limits_.false_alarms.value, tests)};
  }

  Replacements cross(const Crossing& crossing) {
    Replacements replacements(kLanes);
    const at::Tensor recorded = reproduction_.check(crossing.boundary, crossing.computed[kOwn]);
    if (recorded.defined()) replacements[kOwn] = recorded;
    const PortPair* pair = by_boundary_[crossing.boundary];
    if (pair == nullptr) {
      const Boundary& skipped = program_.boundaries[crossing.boundary];
      const bool module = skipped.path.find('/') == std::string::npos;
      if (options_.diagnose && module) stale_.remember(skipped.path, skipped.call, crossing.computed[kOwn]);
      return replacements;
    }
    OpResult row = describe(*pair);
    const at::Tensor value = aligned(*pair, row);
    if (value.defined()) compare(row, value, crossing, recorded.defined() ? recorded : crossing.computed[kOwn]);
    if (wanted(row)) result_.rows.push_back(std::move(row));
    if (!value.defined()) return replacements;
    std::fill(replacements.begin(), replacements.begin() + kOwn, value);
    replacements[kPerturbed] = perturbed(value);
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
    OpResult row = row_of(program_, pair.boundary);
    row.candidate_path = candidate_[pair.candidate].path;
    if (!segments_[pair.boundary].kind.empty()) row.kind = segments_[pair.boundary].kind;
    row.dtype = dtype_;
    row.tensor_dtype = short_dtype_name(boundary.value.dtype);
    return row;
  }

  // `own`: the reference's own value there, on its own inputs.
  void compare(OpResult& row, const at::Tensor& value, const Crossing& crossing, const at::Tensor& own) {
    const auto& lanes = crossing.computed;
    const Evidence evidence =
        measure_local({value, lanes[kOracle], lanes[kRecorded], valid_values(crossing, hypotheses_)});
    row.forced = evidence.forced;
    row.oracle = evidence.oracle;
    row.free = measure(own, value);
    free_error_[row.index] = row.free->rel_l2.value_or(0);
    add_amplification(row, lanes);
    const std::vector<Finding> found = options_.diagnose ? findings(row, crossing, value) : std::vector<Finding>();
    judge_port(row, evidence, segments_[row.index], found, limits_);
    if (row.not_exercised.empty()) exercise_.compared(program_.boundaries[row.index].value.id);
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
      list.push_back({f.fault, f.detail, f.gate, f.fit.amplitude, f.fit.sigma(), f.explained(), f.rest,
                      f.null_amplitude, detectable_amplitude(f, limits_)});
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
      f.fit.amplitude = f.fit.explained = f.fit.correlation = f.fit.size = 1;  // bit by bit: certain
      f.fit.z = f.fit.z_rows = kCertain;
      f.rest = 0;
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

  void report_coverage(const std::vector<std::string>& opaque) {
    std::vector<size_t> uncovered;
    result_.coverage = port_coverage(program_, candidate_, pairing_, segments_, uncovered);
    result_.coverage.opaque = opaque;
    result_.coverage.directions = directions_;
    for (const OpResult& row : result_.rows)
      if (!row.not_exercised.empty())
        result_.coverage.not_exercised.push_back(fmt::format("{} ({})", row.path, row.not_exercised));
    for (const size_t b : uncovered) {
      OpResult row = missing_row(row_of(program_, b),
                                 "the candidate has no counterpart, and none of its later tensors is computed from it");
      row.dtype = dtype_;
      if (wanted(row)) result_.rows.push_back(std::move(row));
    }
    for (OpResult& row : reproduction_.rows()) result_.rows.push_back(std::move(row));
    report_hidden();
  }

  void report_hidden() {
    const std::vector<std::string> hidden = exercise_.hidden();
    if (hidden.empty() || options_.layer != "all") return;
    const size_t shown = std::min<size_t>(hidden.size(), kHiddenShown);
    OpResult row = untrusted_row(
        hidden.front(), "coverage",
        fmt::format("no compared value moves with {}{}: nothing is shown about it (is a gate or a weight behind it "
                    "zero? give other values, or record the port between)",
                    fmt::join(hidden.begin(), hidden.begin() + static_cast<int64_t>(shown), ", "),
                    hidden.size() > shown ? fmt::format(" and {} more inputs or weights", hidden.size() - shown) : ""));
    row.index = static_cast<int64_t>(program_.boundaries.size());
    result_.rows.push_back(std::move(row));
  }

  const Dump& dump_;
  const Program& program_;
  const std::vector<CandidateTensor>& candidate_;
  const PortPairing& pairing_;
  const PortJobOptions& options_;
  const std::vector<Segment> segments_;
  const std::vector<std::vector<size_t>> ancestors_;
  const std::string dtype_;
  Thresholds limits_;
  std::vector<const PortPair*> by_boundary_;
  std::unordered_map<int64_t, std::vector<size_t>> by_value_;  // paired boundaries by value id
  std::unique_ptr<Catalogue> catalogue_;
  std::vector<FaultHypothesis> hypotheses_;  // by deviation number
  StaleRegistry stale_;
  Exercise exercise_;
  Reproduction reproduction_;
  std::map<int64_t, double> free_error_;
  int64_t directions_ = 0;
  JobResult result_;
};

}  // namespace

JobResult run_port_job(const Dump& dump, const Program& program, const std::vector<CandidateTensor>& candidate,
                       const PortPairing& pairing, const PortJobOptions& options) {
  return PortJob(dump, program, candidate, pairing, options).run();
}

}  // namespace parity
