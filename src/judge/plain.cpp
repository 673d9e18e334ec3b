#include "judge/plain.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"

namespace parity {
namespace {

void conclude_plain(OpResult& row, Verdict verdict, std::string text, Gate gate = Gate::structure) {
  row.verdict = verdict;
  row.gate = gate;
  row.diagnosis = std::move(text);
}

}  // namespace

// One rounding is 0.4 u on the average; inherited error of a deep model was seen at some ten u in bf16 and some
// hundred in fp32: above 64 and 1024 u no chain of roundings is to blame.
PlainLimits plain_limits(at::ScalarType reference, at::ScalarType candidate) {
  const double unit = is_float(reference) ? std::max(unit_roundoff(reference), unit_roundoff(candidate)) : 0;
  return {2 * unit, (is_half(reference) || is_half(candidate) ? 64 : 1024) * unit};
}

void judge_plain(OpResult& row, at::ScalarType dtype, at::ScalarType candidate) {
  const Stats& s = *row.free;
  if (s.special_mismatch > 0)
    return conclude_plain(row, Verdict::fail, fmt::format("NaN or Inf at {} other places", s.special_mismatch));
  if (s.count == 0) return conclude_plain(row, Verdict::untrusted, "empty tensor", Gate::none);
  const double error = s.rel_l2.value_or(s.difference_norm == 0 ? 0 : INFINITY);
  const auto [pass, bad] = plain_limits(dtype, candidate);
  row.limits.push_back({"free.rel_l2", pass, false, "two roundings of the wider unit roundoff; no program to replay"});
  if (error > bad || !is_float(dtype))
    return error == 0
               ? conclude_plain(row, Verdict::pass, "", Gate::none)
               : conclude_plain(row, Verdict::fail,
                                fmt::format("relative L2 {:.2g}: more than roundings explain ({:.2g})", error, bad),
                                Gate::logic);
  if (candidate != dtype && is_float(dtype))
    return conclude_plain(
        row, Verdict::fail,
        fmt::format("the reference is {}, the candidate {}", dtype_name(dtype), dtype_name(candidate)),
        Gate::dtype_path);
  if (error > pass)
    return conclude_plain(
        row, Verdict::inconclusive,
        fmt::format("relative L2 {:.2g}: more than one rounding, less than a certain fault; record the "
                    "reference with its program",
                    error),
        Gate::propagation);
  if (s.constant_reference && s.count > 1 && error > 0)
    return conclude_plain(row, Verdict::untrusted, "the reference is constant", Gate::none);
  conclude_plain(row, Verdict::pass, "", Gate::none);
}

}  // namespace parity
