#include "judge/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include "core/dtype_kind.hpp"

namespace parity {
namespace {

constexpr std::string_view kElementwise = "same kernel, same order: bitwise equal";
constexpr std::string_view kSum =
    "same LibTorch; another blocking of the sum flips at most 0.03 % of bf16 elements (measured: oneDNN on / off)";

// Same machine, same LibTorch. Other machines: the measured null decides (see null_limits).
constexpr std::array kLimits{
    KindLimit{"copy", 1, 0, kElementwise},
    KindLimit{"cast", 1, 0, kElementwise},
    KindLimit{"embedding", 1, 0, kElementwise},
    KindLimit{"modulation", 1, 0, kElementwise},
    KindLimit{"residual", 1, 0, kElementwise},
    KindLimit{"elementwise", 1, 0, kElementwise},
    KindLimit{"gelu", 1, 0, kElementwise},
    KindLimit{"silu", 1, 0, kElementwise},
    KindLimit{"sinusoid", 1, 0, kElementwise},
    KindLimit{"rope", 1, 0, kElementwise},
    KindLimit{"layer_norm", 1, 0, kElementwise},
    KindLimit{"rms_norm", 1, 0, kElementwise},
    KindLimit{"linear", .999, 1, kSum},
    KindLimit{"conv", .999, 1, kSum},
    KindLimit{"attention", .98, 2,
              "same LibTorch's fused kernel; another tile moves up to 40 % and is another dtype path"},
};

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
  return s.difference_norm == 0 ? std::optional<double>(0.0) : std::nullopt;
}

bool structure_fails(OpResult& row, const JudgeInput& in) {
  if (dtype_class(in.reference_dtype) != dtype_class(in.candidate_dtype))
    return fail(row, Verdict::shape, Gate::structure,
                fmt::format("dtype class differs: reference {}, candidate {}", dtype_name(in.reference_dtype),
                            dtype_name(in.candidate_dtype)));
  if (row.forced && row.forced->special_mismatch > 0)
    return fail(row, Verdict::fail, Gate::structure,
                fmt::format("NaN or Inf at other places than in the reference: {} elements ({} non-finite in the "
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
                          error, row.logic.limit.value_or(kLogicLimit)));
}

struct Applied {  // one comparison against its two limits
  double min_equal_share, max_rel_l2;
  std::string origin;
};

bool path_fails(OpResult& row, const Stats& s, const Applied& limit, double unit) {
  row.limits.push_back({"bitwise_equal_share", limit.min_equal_share, true, limit.origin});
  row.limits.push_back({"rel_l2", limit.max_rel_l2, false, limit.origin});
  const bool share_low = !s.bitwise_equal_share || !(*s.bitwise_equal_share >= limit.min_equal_share);
  const auto error = relative_error(s);
  // The share alone lets one wildly wrong element in a million pass, the error alone a wrong cast: both must hold.
  const bool error_high = limit.min_equal_share < 1 && exceeds(error, limit.max_rel_l2);
  if (!share_low && !error_high) return false;
  const std::string differing =
      s.bitwise_equal_share ? fmt::format("{:.3g} % of elements differ bitwise", 100 * (1 - *s.bitwise_equal_share))
                            : std::string("not comparable bitwise");
  return fail(
      row, Verdict::fail, Gate::dtype_path,
      fmt::format(
          "{} (allowed {:.3g} %), relative L2 {:.2g} = {:.2g} u{}", differing, 100 * (1 - limit.min_equal_share),
          error.value_or(NAN), error.value_or(NAN) / unit,
          row.logic.verdict == Verdict::pass ? "; the fp64 logic agrees: a rounding is placed differently" : ""));
}

// On other kernels than the recording's the reference's own program moves too; twice what it moves is allowed.
Applied null_limits(const KindLimit& kind, const NullRun& null, double unit) {
  const double share = std::min(kind.min_equal_share, 1 - 2 * (1 - null.equal_share.value_or(1)));
  const double error = std::max(kind.max_rel_l2_in_u * unit, 2 * null.rel_l2.value_or(0));
  return {share, error,
          fmt::format("null: the reference's program on this machine, {} runs, at worst {:.3g} % differ, relative L2 "
                      "{:.2g}; twice that",
                      null.runs, 100 * (1 - null.equal_share.value_or(1)), null.rel_l2.value_or(0))};
}

bool dtype_path_fails(OpResult& row, const JudgeInput& in) {
  if (in.is_fp64 || !row.forced) return false;
  if (in.reference_dtype != in.candidate_dtype)
    return fail(row, Verdict::fail, Gate::dtype_path,
                fmt::format("the reference has {} here, the candidate {}", dtype_name(in.reference_dtype),
                            dtype_name(in.candidate_dtype)));
  const KindLimit* kind = find_limit(row.kind);
  if (!kind) return false;  // found untrusted below
  const double unit = std::max(unit_roundoff(in.reference_dtype), 0x1p-53);
  const Applied table{kind->min_equal_share, kind->max_rel_l2_in_u * unit,
                      fmt::format("table, {}: {}", kind->kind, kind->reason)};
  if (!in.same_machine) return path_fails(row, *row.forced, table, unit);
  return path_fails(row, *in.same_machine, table, unit) ||
         path_fails(row, *row.forced, null_limits(*kind, in.null, unit), unit);
}

std::string why_untrusted(const OpResult& row, const JudgeInput& in) {
  if (!row.forced && !row.logic.verdict) return "not compared teacher-forced: no local verdict";
  if (!in.is_fp64 && !find_limit(row.kind)) return fmt::format("no limit is known for ops of kind '{}'", row.kind);
  if (!row.forced) return "";
  const Stats& s = *row.forced;
  if (s.count == 0) return "empty tensor";
  if (s.nan_reference == s.count) return "no finite element in the reference";
  if (s.constant_reference) return "the reference is constant: nothing was exercised";
  if (s.zeros_reference * 10 > s.count * 9) return "more than 90 % of the reference is zero: nothing was exercised";
  return "";
}

}  // namespace

const KindLimit* find_limit(std::string_view kind) {
  const auto found = std::find_if(kLimits.begin(), kLimits.end(), [&](const KindLimit& l) { return l.kind == kind; });
  return found == kLimits.end() ? nullptr : &*found;
}

void judge_local(OpResult& row, const JudgeInput& in) {
  if (structure_fails(row, in) || logic_fails(row) || dtype_path_fails(row, in)) return;
  if (const std::string reason = why_untrusted(row, in); !reason.empty()) {
    row.verdict = Verdict::untrusted;
    row.diagnosis = reason;
    return;
  }
  row.verdict = Verdict::pass;
}

void judge_propagation(OpResult& row, double largest_input_error, double unit) {
  if (!row.free || row.verdict == Verdict::shape) return;
  const auto local = row.forced ? relative_error(*row.forced) : std::optional<double>(0.0);
  const auto carried = relative_error(*row.free);
  if (!row.amplification || !local) return;
  // A changed input makes roundings fall elsewhere: up to one storage rounding (0.6 u relative L2 when every element
  // flips) beside the smooth part.
  const double flips = largest_input_error > 0 || *local > 0 ? .6 * unit : 0;
  row.predicted_free = std::hypot(*row.amplification * largest_input_error, *local) + flips;
  if (row.verdict != Verdict::pass || (carried && *carried <= std::max(2 * *row.predicted_free, 4 * kLogicLimit)))
    return;
  const bool severe = exceeds(carried, std::max(10 * *row.predicted_free, 4 * kLogicLimit));
  fail(row, severe ? Verdict::fail : Verdict::inconclusive, Gate::propagation,
       fmt::format("free-running relative L2 {:.2g}, but local error and amplification {:.2g} of the inputs' {:.2g} "
                   "predict {:.2g}: state is carried that the recorded inputs do not show",
                   carried.value_or(NAN), *row.amplification, largest_input_error, *row.predicted_free));
}

}  // namespace parity
