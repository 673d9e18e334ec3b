#include "jobs/model_job.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/glob.hpp"
#include "core/shell.hpp"
#include "jobs/candidate_runs.hpp"
#include "jobs/hybrid.hpp"
#include "jobs/model_logits.hpp"
#include "jobs/propagation.hpp"
#include "jobs/reference_values.hpp"
#include "jobs/rows.hpp"
#include "jobs/self_pairs.hpp"
#include "judge/model.hpp"
#include "judge/model_limits.hpp"
#include "measure/measure.hpp"

namespace parity {
namespace {

struct Local {  // what one precision's runs gave
  std::string dtype;
  Precision precision = Precision::recorded;
  ReferenceValues reference;
  Values forced, free;
  Values oracle;  // fp64 on this precision's inputs: what each op rounded away
  OwnInputs own;  // each op of the free run on the port's own values
};

// Kinds of ops that a model made with Kernels::own computes otherwise than LibTorch.
bool has_own_kernel(std::string_view kind) { return kind == "linear" || kind == "attention" || kind == "conv"; }

class MainJob {
 public:
  MainJob(const Dump& dump, const Program& program, const ModelFactory& make, const MainJobOptions& options)
      : dump_(dump),
        program_(program),
        make_(make),
        options_(options),
        recorded_(recorded_dtype(program)),
        logits_(program) {}

  MainJobResult run() {
    pair_up();
    std::vector<Local> runs;
    if (options_.forced) {  // the logic gate and the amplification belong to every row, whatever dtypes are shown
      logic_ = run_precision("fp64", Precision::fp64);
      options_.progress("amplification");
      amplification_ = largest_amplification([this] { return make_(dump_, Precision::fp64); }, program_, pairing_,
                                             logic_->reference.values);
    }
    for (const std::string& dtype : options_.dtypes) {
      if (dtype == "fp64")
        runs.push_back(logic_ ? *logic_ : run_precision(dtype, Precision::fp64));
      else if (dtype == recorded_)
        runs.push_back(run_precision(dtype, Precision::recorded));
      else if (dtype == "fp32" && recorded_ != "fp64")
        runs.push_back(run_precision(dtype, Precision::fp32));
    }
    if (runs.empty())
      result_.warnings.push_back(fmt::format("recorded in {}: none of the requested dtypes applies", recorded_));
    const auto ancestors = program_.marked_ancestors(pairing_.marked);
    for (const Pair& pair : pairing_.pairs)
      if (wanted(pair))
        for (const Local& run : runs) result_.rows.push_back(row(pair, run, ancestors[pair.boundary]));
    report_coverage();
    if (options_.layer == "all" || options_.layer.find("optimised") != std::string::npos) judge_self_pairs();
    std::stable_sort(result_.rows.begin(), result_.rows.end(),
                     [](const OpResult& a, const OpResult& b) { return a.index < b.index; });
    return std::move(result_);
  }

 private:
  void pair_up() {
    options_.progress("pairing");
    const auto model = make_(dump_, Precision::recorded);
    result_.candidate = model->description();
    pairing_ = pair_points(program_, *model, record_points(*model, program_));
    taken_ = options_.take.from_reference(program_, pairing_);
  }

  bool wanted(const Pair& pair) const {
    return matches_layer(program_.boundaries[pair.boundary].path, options_.layer) ||
           matches_layer(pair.candidate.first, options_.layer);
  }

  Local run_precision(const std::string& dtype, Precision precision) {
    Local run;
    run.dtype = dtype;
    run.precision = precision;
    options_.progress(dtype + " reference");
    run.reference = precision == Precision::recorded ? recorded_values(dump_, program_, pairing_.marked)
                                                     : replayed_values(dump_, program_, pairing_.marked, precision);
    if (options_.forced) {
      options_.progress(dtype + " teacher-forced");
      run.forced = run_forced(*make_(dump_, precision), program_, pairing_, run.reference.values);
      if (precision != Precision::fp64) run.oracle = fp64_on_given(dump_, program_, run.reference.values);
    }
    if (options_.free) {
      options_.progress(dtype + " free-running");
      run.free = options_.take.empty() ? run_free(*make_(dump_, precision), program_, pairing_)
                                       : run_hybrid(make_, dump_, program_, pairing_, precision, taken_);
      run.own = on_own_inputs(dump_, program_, pairing_.marked, precision, run.reference.values, run.free);
    }
    for (const std::string& op : run.reference.lowered) result_.warnings.push_back("not fp64 in the oracle: " + op);
    if (opaque_.empty()) opaque_ = run.reference.opaque;
    return run;
  }

  OpResult row(const Pair& pair, const Local& run, const std::vector<size_t>& ancestors) {
    const at::Tensor& reference = run.reference.values.at(pair.boundary);
    OpResult r = row_of(program_, pair.boundary);
    r.reference = options_.reference_name;
    r.candidate_path = pair.candidate.first;
    r.kind = pair.kind;
    r.dtype = run.dtype;
    r.tensor_dtype = short_dtype_name(reference.scalar_type());
    r.shape = reference.sizes().vec();
    r.rerun = fmt::format("parity-check run --reference {} --layer {}{} --dtype {}", shell_word(dump_.file().string()),
                          shell_word(pattern_for(r.path)), options_.given, run.dtype);
    JudgeInput in;
    in.precision = run.precision;
    in.is_fp64 = run.dtype == "fp64";
    in.other_kernels = options_.kernels == Kernels::own && has_own_kernel(pair.kind);
    in.reference_dtype = in.candidate_dtype = reference.scalar_type();
    if (!measure_pair(r, in, pair, run)) return r;
    judge_local(r, in);
    judge_free(r, in, pair.boundary, run, ancestors);
    const Values& compared = options_.forced ? run.forced : run.free;
    if (const auto value = compared.find(pair.boundary); value != compared.end())
      add_spread(r, reference, value->second);
    return r;
  }

  void judge_free(OpResult& r, const JudgeInput& local, size_t b, const Local& run,
                  const std::vector<size_t>& ancestors) const {
    PropagationInput in;
    in.is_fp64 = local.is_fp64;
    in.unit = least_roundoff(local.reference_dtype);
    for (const size_t a : ancestors) in.largest_input_error = std::max(in.largest_input_error, free_error(run, a));
    if (const auto own = run.own.port.find(b); own != run.own.port.end()) in.own = own->second;
    if (const auto null = run.own.reference.find(b); null != run.own.reference.end()) in.null = null->second;
    judge_propagation(r, in);
  }

  // False when shapes differ: the row is judged already.
  bool measure_pair(OpResult& r, JudgeInput& in, const Pair& pair, const Local& run) {
    const size_t b = pair.boundary;
    const at::Tensor& reference = run.reference.values.at(b);
    for (const Values* side : {&run.forced, &run.free}) {
      const auto value = side->find(b);
      if (value == side->end() || value->second.sizes() == reference.sizes()) continue;
      r.verdict = Verdict::shape;
      r.gate = Gate::structure;
      r.diagnosis = fmt::format("shape differs: reference {}, candidate {}", c10::str(reference.sizes()),
                                c10::str(value->second.sizes()));
      return false;
    }
    if (const auto value = run.forced.find(b); value != run.forced.end()) {
      in.candidate_dtype = value->second.scalar_type();
      r.forced = measure(reference, value->second);
      if (const auto o = run.oracle.find(b); o != run.oracle.end())
        r.oracle = measure_against_oracle(o->second, reference, value->second);
      if (const auto m = run.reference.same_machine.find(b); m != run.reference.same_machine.end())
        in.same_machine = measure(m->second, value->second);
      if (const auto n = run.reference.null.find(b); n != run.reference.null.end()) in.null = n->second;
    }
    if (const auto value = run.free.find(b); value != run.free.end()) {
      r.free = measure(reference, value->second);
      logits_.add(r, reference, value->second, result_.logits);
    }
    if (logic_) add_logic(r, b);
    return true;
  }

  void add_logic(OpResult& r, size_t b) {
    const at::Tensor& oracle = logic_->reference.values.at(b);
    const auto value = logic_->forced.find(b);
    if (value == logic_->forced.end() || value->second.sizes() != oracle.sizes()) return;
    const Stats s = measure_sums(oracle, value->second);
    r.logic.rel_l2 = s.rel_l2 ? s.rel_l2 : (s.difference_norm == 0 ? std::optional<double>(0) : std::nullopt);
    const double limit = model_limits().logic_rel_l2.value;
    r.logic.limit = limit;
    const bool right = s.special_mismatch == 0 && r.logic.rel_l2 && *r.logic.rel_l2 <= limit;
    r.logic.verdict = right ? Verdict::pass : Verdict::fail;
    if (const auto largest = amplification_.find(b); largest != amplification_.end()) r.amplification = largest->second;
  }

  static double free_error(const Local& run, size_t b) {
    const auto value = run.free.find(b);
    const at::Tensor& reference = run.reference.values.at(b);
    if (value == run.free.end() || value->second.sizes() != reference.sizes()) return 0;
    return measure_sums(reference, value->second).rel_l2.value_or(0);
  }

  void report_coverage() {
    std::vector<size_t> uncovered;
    result_.coverage = coverage_of(program_, pairing_, uncovered);
    result_.coverage.opaque = opaque_;
    for (const size_t b : uncovered) missing(b);
  }

  void missing(size_t b) {
    if (!matches_layer(program_.boundaries[b].path, options_.layer)) return;
    OpResult r = missing_row(row_of(program_, b),
                             "the candidate has no counterpart, and none of its later values is computed from it");
    r.reference = options_.reference_name;
    r.dtype = recorded_;
    result_.rows.push_back(std::move(r));
  }

  void judge_self_pairs() {
    const auto precision_of = [this](const std::string& dtype) {
      return dtype == "fp64" ? Precision::fp64 : dtype == recorded_ ? Precision::recorded : Precision::fp32;
    };
    const auto truth = make_(dump_, Precision::fp64)->self_pairs();
    for (const std::string& dtype : options_.dtypes) {
      if (dtype != "fp64" && dtype != recorded_ && (dtype != "fp32" || recorded_ == "fp64")) continue;
      if (truth.empty()) return;
      options_.progress(dtype + " optimised");
      const auto pairs = make_(dump_, precision_of(dtype))->self_pairs();
      for (const SelfPair& pair : pairs) {
        OpResult r = judge_self_pair(pair, truth, dtype);
        r.reference = options_.reference_name;
        r.index = static_cast<int64_t>(program_.boundaries.size());
        r.rerun = fmt::format("parity-check run --reference {} --layer 'optimised/*'{} --dtype {}",
                              shell_word(dump_.file().string()), options_.given, dtype);
        result_.rows.push_back(std::move(r));
      }
    }
  }

  const Dump& dump_;
  const Program& program_;
  const ModelFactory& make_;
  const MainJobOptions& options_;
  std::string recorded_;
  ModelLogits logits_;
  Pairing pairing_;
  std::vector<bool> taken_;  // by boundary: the reference computes it in the free run
  std::vector<std::string> opaque_;
  std::optional<Local> logic_;
  std::map<size_t, double> amplification_;
  MainJobResult result_;
};

}  // namespace

MainJobResult run_main_job(const Dump& dump, const Program& program, const ModelFactory& make,
                           const MainJobOptions& options) {
  return MainJob(dump, program, make, options).run();
}

}  // namespace parity
