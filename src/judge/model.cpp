#include "judge/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/dtype_kind.hpp"
#include "core/glob.hpp"
#include "judge/exercised.hpp"
#include "judge/model_limits.hpp"
#include "judge/propagation.hpp"

namespace parity {
namespace {

bool fail(OpResult& row, Verdict verdict, Gate gate, std::string diagnosis) {
  row.verdict = verdict;
  row.gate = gate;
  row.diagnosis = std::move(diagnosis);
  return true;
}

// `!(x <= limit)`: a NaN or absent statistic must fail.
bool exceeds(const std::optional<double>& value, double limit) { return !value || !(*value <= limit); }

// A relative error that does not exist because the reference is exactly zero is fine only if the candidate is zero too.
std::optional<double> relative_error(const Stats& s) {
  if (s.rel_l2) return s.rel_l2;
  return s.difference_norm == 0 ? std::optional<double>(0) : std::nullopt;
}

bool structure_fails(OpResult& row, const JudgeInput& in) {
  if (dtype_class(in.reference_dtype) != dtype_class(in.candidate_dtype))
    return fail(row, Verdict::shape, Gate::structure,
                fmt::format("dtype class differs: reference {}, candidate {}", dtype_name(in.reference_dtype),
                            dtype_name(in.candidate_dtype)));
  if (row.forced && row.forced->special_mismatch > 0)
    return fail(row, Verdict::fail, Gate::structure,
                fmt::format("NaN or Inf in other places than in the reference: {} elements ({} non-finite in the "
                            "reference, {} in the candidate)",
                            row.forced->special_mismatch, row.forced->nan_reference, row.forced->nan_candidate));
  return false;
}

bool logic_fails(OpResult& row) {
  if (!row.logic.verdict || *row.logic.verdict == Verdict::pass) return false;
  const std::string error = row.logic.rel_l2 ? fmt::format("{:.2g}", *row.logic.rel_l2) : "undefined";
  return fail(row, Verdict::fail, Gate::logic,
              fmt::format("in fp64, on the reference's inputs, relative L2 is {} (limit {:.0e}): the formula or a "
                          "constant differs, not the rounding",
                          error, row.logic.limit.value_or(model_limits().logic_rel_l2.value)));
}

struct Applied {                          // one comparison against its limits
  std::optional<double> min_equal_share;  // absent: a share says nothing here
  double max_rel_l2;
  std::string origin;
  std::string_view against = "";  // what was measured instead of the recorded value, a prefix of the statistic's name
};

// The share alone lets one wildly wrong element in a million pass, the error alone a wrong cast: both must hold.
bool within(const Stats& s, const Applied& limit) {
  if (limit.min_equal_share && !(equal_share(s) >= *limit.min_equal_share)) return false;
  const bool bits = limit.min_equal_share == 1;  // every bit is demanded already
  return bits || !exceeds(relative_error(s), limit.max_rel_l2);
}

bool path_fails(OpResult& row, const Stats& s, const Applied& limit, double unit) {
  const auto name = [&](std::string_view statistic) { return fmt::format("{}{}", limit.against, statistic); };
  if (limit.min_equal_share)
    row.limits.push_back({name("bitwise_equal_share"), *limit.min_equal_share, true, limit.origin});
  row.limits.push_back({name("rel_l2"), limit.max_rel_l2, false, limit.origin});
  if (within(s, limit)) return false;
  const auto error = relative_error(s);
  const std::string differing =
      s.bitwise_equal_share ? fmt::format("{:.3g} % of elements differ bitwise", 100 * (1 - *s.bitwise_equal_share))
                            : std::string("not comparable bitwise");
  const std::string allowed =
      limit.min_equal_share ? fmt::format(" (allowed {:.3g} %)", 100 * (1 - *limit.min_equal_share)) : std::string();
  return fail(
      row, Verdict::fail, Gate::dtype_path,
      fmt::format(
          "{}{}, relative L2 {:.2g} = {:.2g} u (allowed {:.2g}){}", differing, allowed, error.value_or(NAN),
          error.value_or(NAN) / unit, limit.max_rel_l2,
          row.logic.verdict == Verdict::pass ? "; the fp64 logic agrees: a rounding is placed differently" : ""));
}

// On other kernels than the recording's the reference's own program moves too; twice what it moves is allowed. Where
// its own elements mostly differ a share of equal ones says nothing (fp32 sums in any other order): the norm decides.
Applied null_limits(const KindLimit& kind, const NullRun& null, double unit) {
  const ModelLimits& limits = model_limits();
  const double factor = limits.kernel_null_factor.value, differing = 1 - null.equal_share.value_or(1);
  const double error = std::max(kind.max_rel_l2_in_u * unit, factor * null.rel_l2.value_or(0));
  std::optional<double> share = std::min(kind.min_equal_share, 1 - factor * differing);
  if (1 - *share > limits.share_says_something.value) share.reset();
  return {share, error,
          fmt::format("null: the reference's program on this machine, {} runs, at worst {:.3g} % differ, relative L2 "
                      "{:.2g}; {:g} times that{}",
                      null.runs, 100 * differing, null.rel_l2.value_or(0), factor,
                      share ? "" : ", no limit on the share of equal elements: half of them may differ")};
}

// Kernels of our own sum in another order than LibTorch's, so equal bits mean nothing: on the same inputs they may lie
// no further from fp64 than LibTorch's do, up to chance (judge/propagation.cpp).
bool rounding_fails(OpResult& row, double unit) {
  const double reference = row.oracle ? row.oracle->reference_error.value_or(0) : 0;
  const double factor = rounding_factor(row.forced->count), limit = reference > 0 ? factor * reference : unit;
  const std::optional<double> error = row.oracle ? row.oracle->candidate_error : std::nullopt;
  row.limits.push_back({"error_from_fp64", limit, false,
                        fmt::format("kernels of our own: {:.3g} times the recorded value's error from the op in fp64, "
                                    "{:.2g}",
                                    factor, reference),
                        error});
  if (!exceeds(error, limit)) return false;
  return fail(row, Verdict::fail, Gate::dtype_path,
              fmt::format("{:.2g} from the op in fp64 on the same inputs, the recorded value {:.2g} (allowed {:.2g})",
                          error.value_or(NAN), reference, limit));
}

bool dtype_path_fails(OpResult& row, const JudgeInput& in) {
  if (in.is_fp64 || !row.forced) return false;
  if (in.reference_dtype != in.candidate_dtype)
    return fail(row, Verdict::fail, Gate::dtype_path,
                fmt::format("the reference has {} here, the candidate {}", dtype_name(in.reference_dtype),
                            dtype_name(in.candidate_dtype)));
  const KindLimit* kind = find_limit(row.kind);
  if (!kind) return false;  // found untrusted below
  const double unit = least_roundoff(in.reference_dtype);
  if (in.other_kernels) return rounding_fails(row, unit);
  Applied table{kind->min_equal_share, kind->max_rel_l2_in_u * unit,
                fmt::format("table, {}: {}", kind->kind, kind->reason)};
  // What would pass where it was recorded passes here. The replay on this machine may lie further from the port: a
  // module that returns a value it has gone on from (a router's logits and its top-k) is only exchanged at its return.
  if (!in.same_machine || within(*row.forced, table)) return path_fails(row, *row.forced, table, unit);
  table.against = "replay_";
  return path_fails(row, *in.same_machine, table, unit) ||
         path_fails(row, *row.forced, null_limits(*kind, in.null, unit), unit);
}

std::string why_untrusted(const OpResult& row, const JudgeInput& in) {
  if (!row.forced && !row.logic.verdict) return "not compared teacher-forced: no local verdict";
  if (!in.is_fp64 && !find_limit(row.kind)) return fmt::format("no limit is known for ops of kind '{}'", row.kind);
  if (!row.forced) return "";
  const Stats& s = *row.forced;
  const std::string idle = why_not_exercised(s);
  return idle.empty() ? "" : fmt::format("the reference is {}: nothing was exercised", idle);
}

// A rounding that the thresholds file declares as intended.
bool declared(OpResult& row) {
  for (const std::string& glob : model_limits().accepted)
    if (matches_layer(row.path, glob)) {
      row.verdict = Verdict::pass;
      row.diagnosis = fmt::format("declared (accept_paths {}): {}", glob, row.diagnosis);
      return true;
    }
  return false;
}

}  // namespace

void judge_local(OpResult& row, const JudgeInput& in) {
  if (structure_fails(row, in) || logic_fails(row)) return;
  if (dtype_path_fails(row, in)) return void(declared(row));
  if (const std::string reason = why_untrusted(row, in); !reason.empty()) {
    row.verdict = Verdict::untrusted;
    row.diagnosis = reason;
    return;
  }
  row.verdict = Verdict::pass;
}

}  // namespace parity
