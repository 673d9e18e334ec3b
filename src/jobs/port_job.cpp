#include "jobs/port_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/glob.hpp"
#include "core/segment.hpp"
#include "diagnose/finding.hpp"
#include "jobs/exercise.hpp"
#include "jobs/judged_row.hpp"
#include "jobs/limits.hpp"
#include "jobs/model_logits.hpp"
#include "jobs/other_selections.hpp"
#include "jobs/port_coverage.hpp"
#include "jobs/port_findings.hpp"
#include "jobs/port_units.hpp"
#include "jobs/reproduction.hpp"
#include "jobs/row_details.hpp"
#include "jobs/rows.hpp"
#include "jobs/shard_rows.hpp"
#include "judge/naming.hpp"
#include "measure/measure.hpp"
#include "pair/segments.hpp"
#include "trace/lanes.hpp"

namespace parity {
namespace {

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
        dtype_(recorded_dtype(program)),
        limits_(options.limits),
        by_boundary_(program.boundaries.size(), nullptr),
        exercise_(program),
        logits_(program),
        reproduction_(dump, program, limits_),
        units_(program, pairing, options.units),
        shards_(dump, program, candidate, pairing, limits_, units_.ancestors()) {
    for (const PortPair& pair : pairing.pairs) {
      by_boundary_[pair.boundary] = &pair;
      by_value_[program.boundaries[pair.boundary].value.id].push_back(pair.boundary);
    }
  }

  JobResult run() {
    static const Variants kNone;
    const Variants& variants = options_.diagnose ? explained() : kNone;
    const auto visit = [this](const BoundaryEvent& event) { return cross(event); };
    const auto ran = [this](int op, const auto& value) { exercise_.ran(op, value); };
    try {
      const auto reports = replay_in_step(dump_, program_, lane_options(), visit, variants, ran);
      if (!units_.reports()) return {};
      collect();
      excuse(reports[kRecorded].selections);
      for (const std::string& op : reports[kOracle].lowered)
        result_.warnings.push_back("not fp64 in the oracle: " + op);
      for (const std::string& problem : reports[kRecorded].taken)
        result_.warnings.push_back(fmt::format(
            "on the candidate's values the reference does not run, what follows is judged on its own: {}", problem));
      report_coverage(reports[kRecorded].opaque);
    } catch (const Stopped&) {  // what is missing was not looked for, and nothing is said about it
      result_.interrupted = true;
      result_.coverage.paired = static_cast<int64_t>(result_.rows.size());
    }
    std::stable_sort(result_.rows.begin(), result_.rows.end(),
                     [](const OpResult& a, const OpResult& b) { return a.index < b.index; });
    return std::move(result_);
  }

 private:
  const Variants& explained() {
    findings_ = std::make_unique<PortFindings>(dump_, program_, segments_, limits_, options_.budget);
    share_the_budget(findings_->named());
    findings_->catch_up = [this](size_t boundary) {
      units_.catch_up(
          boundary, [this] { return goes_on(); }, [this](const Aside& a) { findings_->hear(a); });
    };
    for (const PortPair& pair : pairing_.pairs)
      if (const std::vector<size_t>& ops = segments_[pair.boundary].ops;
          !ops.empty() && findings_->beside(pair.boundary))
        beginning_[ops.front()].insert(pair.boundary);
    return findings_->variants([this](int op) { begin(op); });
  }

  // Before op `op`: which values whose stretch of program begins there are explained here?
  void begin(int op) {
    options_.progress(static_cast<double>(op) / static_cast<double>(std::max<size_t>(1, program_.ops.size())));
    const auto found = beginning_.find(static_cast<size_t>(op));
    if (found == beginning_.end()) return;
    for (const size_t b : units_.take({found->second.begin(), found->second.end()})) findings_->work_on(b);
  }

  bool goes_on() {
    units_.add_arrived(result_, [this](const OpResult& row) { return wanted(row); });
    return !options_.go_on || options_.go_on(result_);
  }

  // As many sigma as the run's number of projections asks for.
  void share_the_budget(int64_t named) {
    const int64_t tests = 1 + named;
    limits_.z = {
        sigma_limit(limits_.false_alarms.value, tests),
        fmt::format("{} false alarms over {} named changes of the run (Sidak)", limits_.false_alarms.value, tests)};
  }

  Replacements cross(const BoundaryEvent& event) {
    if (!goes_on() || units_.over()) throw Stopped{};
    Replacements replacements(kLanes);
    const at::Tensor recorded = reproduction_.check(event.boundary, event.computed[kOwn]);
    if (recorded.defined()) replacements[kOwn] = recorded;
    const PortPair* pair = by_boundary_[event.boundary];
    if (pair == nullptr) {
      if (findings_) findings_->remember(event.boundary, event.computed[kOwn]);
      return replacements;
    }
    OpResult row = describe(*pair);
    const at::Tensor own = recorded.defined() ? recorded : event.computed[kOwn];
    const at::Tensor value = value_of(*pair);
    if (!value.defined()) {
      judge_misfit(row, candidate_[pair->candidate].load(), pair->layout, own);
      misfits_.insert(event.boundary);
    }
    judge(std::move(row), value, event, own);
    if (!value.defined() || !pair->goes_on) return replacements;
    std::fill(replacements.begin(), replacements.begin() + kOwn, value);
    replacements[kPerturbed] = perturbed(value, event.boundary);
    return replacements;
  }

  // Here or elsewhere. `own`: the reference's own value there, on its own inputs.
  void judge(OpResult row, const at::Tensor& value, const BoundaryEvent& event, const at::Tensor& own) {
    const auto boundary = static_cast<size_t>(row.index);
    exercise_.reached(boundary, program_.boundaries[boundary].value.id);
    if (units_.mine(boundary)) {
      WorkUnit unit{std::move(row), {}, {}, {}};
      if (value.defined())
        compare(unit, value, event, own);
      else
        shards_.explain_shape(unit.row, *by_boundary_[boundary], event.computed[kRecorded]);
      if (findings_) unit.aside = findings_->aside();
      units_.finished(std::move(unit));
    } else if (value.defined() && findings_ && by_boundary_[boundary]->folded.empty()) {
      findings_->pass(row, event, value, values_before(row));
    }
  }

  // The candidate's tensor in the reference's layout; undefined when the shapes do not fit. A damaged file ends the
  // run.
  at::Tensor value_of(const PortPair& pair) const {
    const at::Tensor tensor = candidate_[pair.candidate].load();
    return pair.layout.as_shape(tensor, program_.boundaries[pair.boundary].value.shape).value_or(at::Tensor());
  }

  OpResult describe(const PortPair& pair) const {
    const Boundary& boundary = program_.boundaries[pair.boundary];
    OpResult row = row_of(program_, pair.boundary);
    const CandidateTensor& tensor = candidate_[pair.candidate];
    row.candidate_path = tensor.path;
    row.candidate_source = tensor.source;
    row.paired_by = paired_by(row, joined_evidence(pair.evidence, tensor), pair.confidence, pair.layout, tensor.call);
    if (!segments_[pair.boundary].kind.empty()) row.kind = segments_[pair.boundary].kind;
    row.dtype = dtype_;
    row.tensor_dtype = short_dtype_name(boundary.value.dtype);
    return row;
  }

  void compare(WorkUnit& unit, const at::Tensor& value, const BoundaryEvent& event, const at::Tensor& own) {
    OpResult& row = unit.row;
    const auto& lanes = event.computed;
    row.free = measure(own, value);
    logits_.add(row, own, value, unit.logits);
    const ValuesBefore before = values_before(row);
    const RowValues values{value, event, segments_[row.index], before};
    const std::string& folded = by_boundary_[row.index]->folded;
    std::vector<Finding> found;
    if (folded.empty())
      found = judge_row(row, values, findings_.get(), limits_);
    else
      judge_folded(row, values, findings_.get(), folded, limits_);
    if (row.verdict == Verdict::fail && !before.misfit.empty())
      row.diagnosis =
          fmt::format("computed from {}, whose shape differs: no op of its own need be wrong", before.misfit);
    if (const auto change = measure_sums(lanes[kOracle], lanes[kPerturbed]).rel_l2)
      row.amplification = *change / kPerturbation;
    row.explanations = explanations(found, limits_);
    shards_.judge(row, *by_boundary_[row.index], values);
    add_spread(row, lanes[kRecorded], value);
    if ((options_.paths || (row.gate == Gate::dtype_path && row.verdict == Verdict::fail)) && wanted(row))
      unit.dtype_paths = cast_placements(program_, segments_[row.index], options_.side, value, event, started());
  }

  // A module's result is also its last op's and its last child's.
  ValuesBefore values_before(const OpResult& row) const {
    ValuesBefore before{
        units_.ancestors()[row.index], [this](size_t boundary) { return value_of(*by_boundary_[boundary]); }, {}};
    for (const size_t a : before.boundaries) {
      if (before.misfit.empty() && misfits_.contains(a)) before.misfit = program_.boundaries[a].path;
      for (const size_t b : by_value_.at(program_.boundaries[a].value.id))
        if (static_cast<int64_t>(b) < row.index) before.names.insert(program_.boundaries[b].path);
    }
    return before;
  }

  const std::vector<FaultHypothesis>& started() const {
    static const std::vector<FaultHypothesis> kNone;
    return findings_ ? findings_->started() : kNone;
  }

  bool wanted(const OpResult& row) const {
    return matches_layer(row.path, options_.layer) || matches_layer(row.candidate_path, options_.layer);
  }

  // All units in order, in place of the rows that were there so far.
  void collect() {
    std::vector<WorkUnit> units = units_.all([this] { return goes_on(); });
    result_.rows.clear(), result_.dtype_paths.clear(), result_.logits.clear();
    for (WorkUnit& unit : units) {
      if (unit.row.free && unit.row.not_exercised.empty()) exercise_.compared(static_cast<size_t>(unit.row.index));
      add(aside_, std::move(unit.aside));
      const bool shown = wanted(unit.row);
      add(result_, std::move(unit), shown);
    }
  }

  void report_coverage(const std::vector<std::string>& opaque) {
    std::vector<size_t> uncovered;
    result_.coverage = port_coverage(program_, candidate_, pairing_, segments_, uncovered);
    result_.coverage.opaque = opaque;
    if (findings_) findings_->report(aside_, result_.coverage, result_.warnings);
    result_.coverage.sigma = limits_.z.value;
    result_.coverage.false_alarms = limits_.false_alarms.value;
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
    if (std::optional<OpResult> row = exercise_.hidden_row(); row && options_.layer == "all")
      result_.rows.push_back(std::move(*row));
  }

  // Rows whose selection of tokens the candidate's values decide otherwise say so.
  void excuse(const std::vector<OtherSelection>& found) {
    OtherSelections selections(program_, segments_, units_.ancestors(), found);
    for (OpResult& row : result_.rows)
      if (const PortPair* pair = selections.concerns(row) ? by_boundary_[row.index] : nullptr)
        selections.excuse(row, candidate_[pair->candidate].shape);
  }

  const Dump& dump_;
  const Program& program_;
  const std::vector<CandidateTensor>& candidate_;
  const PortPairing& pairing_;
  const PortJobOptions& options_;
  const std::vector<Segment> segments_;
  const std::string dtype_;
  Thresholds limits_;
  std::vector<const PortPair*> by_boundary_;
  std::unordered_map<int64_t, std::vector<size_t>> by_value_;  // paired boundaries by value id
  std::unique_ptr<PortFindings> findings_;
  Exercise exercise_;
  ModelLogits logits_;
  Reproduction reproduction_;
  PortUnits units_;
  ShardRows shards_;
  std::map<size_t, std::set<size_t>> beginning_;  // by op: compared values whose stretch of program begins there
  std::set<size_t> misfits_;                      // boundaries whose candidate has another shape
  Aside aside_;
  JobResult result_;
};

}  // namespace

JobResult run_port_job(const Dump& dump, const Program& program, const std::vector<CandidateTensor>& candidate,
                       const PortPairing& pairing, const PortJobOptions& options) {
  return PortJob(dump, program, candidate, pairing, options).run();
}

}  // namespace parity
