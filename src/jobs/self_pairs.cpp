#include "jobs/self_pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/model_limits.hpp"
#include "judge/propagation.hpp"
#include "measure/measure.hpp"

namespace parity {
namespace {

void settle(OpResult& r, Limit limit, Gate gate, const std::string& what) {
  const bool holds = limit.measured && *limit.measured <= limit.value;  // NaN must fail
  r.verdict = holds ? Verdict::pass : Verdict::fail;
  if (!holds) {
    r.gate = gate;
    r.diagnosis = fmt::format("{} is {:.2g} (limit {:.2g}): optimised and baseline do not compute the same", what,
                              limit.measured.value_or(NAN), limit.value);
  }
  r.limits.push_back(std::move(limit));
}

// In fp64 nothing is rounded away: another formula shows.
void judge_logic(OpResult& r) {
  const Stats& s = *r.forced;
  r.logic.rel_l2 = s.rel_l2 ? s.rel_l2 : (s.difference_norm == 0 ? std::optional<double>(0) : std::nullopt);
  r.logic.limit = model_limits().logic_rel_l2.value;
  settle(r, {"rel_l2", *r.logic.limit, false, "fp64: the logic limit", s.special_mismatch ? NAN : r.logic.rel_l2},
         Gate::logic, "in fp64, relative L2 of the difference");
  r.logic.verdict = r.verdict;
}

void judge_rounding(OpResult& r, const SelfPair& pair, const at::Tensor& truth) {
  r.oracle = measure_against_oracle(truth, pair.baseline, pair.optimised);
  const double own = r.oracle->reference_error.value_or(0), factor = rounding_factor(r.forced->count);
  const double limit = own > 0 ? factor * own : 0;
  settle(
      r,
      {"error_from_fp64", limit, false,
       fmt::format("{:.3g} times the baseline's own error from fp64, {:.2g}", factor, own), r.oracle->candidate_error},
      Gate::dtype_path, "the optimised value's error from fp64");
}

// rms of difference over expected difference: 1 up to chance. Outputs share an input's rounding steps and inputs an
// output's, so no more than the larger of the two counts as independent.
void judge_quantised(OpResult& r, const SelfPair& pair) {
  const auto ratio = (pair.optimised.to(at::kDouble) - pair.baseline.to(at::kDouble)) / pair.expected;
  const double rms = std::sqrt(ratio.square().mean().item<double>());
  const int64_t rows = ratio.numel() / ratio.size(-1);
  const double z = model_limits().own_rounding_z.value;
  const double limit = std::exp(z / std::sqrt(static_cast<double>(2 * std::max(rows, ratio.size(-1)))));
  settle(r,
         {"rms_in_expected", limit, false,
          "root mean square of the difference, in units of what the quantisation's own step makes: step / sqrt(12) "
          "times the input's norm; 5 sigma of chance",
          rms},
         Gate::dtype_path, "the error in units of the quantisation's own");
}

}  // namespace

OpResult judge_self_pair(const SelfPair& pair, const std::vector<SelfPair>& truth, const std::string& dtype) {
  OpResult r;
  r.path = r.candidate_path = fmt::format("optimised/{}", pair.path);
  r.kind = pair.kind;
  r.dtype = dtype;
  r.tensor_dtype = short_dtype_name(pair.baseline.scalar_type());
  r.shape = pair.baseline.sizes().vec();
  if (pair.baseline.sizes() != pair.optimised.sizes()) {
    r.verdict = Verdict::shape;
    r.gate = Gate::structure;
    r.diagnosis = "optimised and baseline have different shapes";
    return r;
  }
  r.forced = measure(pair.baseline, pair.optimised);
  const auto same = std::find_if(truth.begin(), truth.end(), [&](const SelfPair& t) { return t.path == pair.path; });
  if (pair.expected.defined())
    judge_quantised(r, pair);
  else if (dtype == "fp64")
    judge_logic(r);
  else if (same != truth.end())
    judge_rounding(r, pair, same->baseline);
  return r;
}

}  // namespace parity
