#include "judge/same_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "judge/exercised.hpp"

namespace parity {

bool pass_same_numbers(OpResult& row, const Evidence& evidence) {
  const int r = dtype_class(evidence.reference_dtype), c = dtype_class(evidence.candidate_dtype);
  if (std::min(r, c) != dtype_class(at::kInt) || std::max(r, c) != dtype_class(at::kFloat)) return false;
  if (evidence.forced.special_mismatch != 0 || evidence.forced.max_abs.value_or(1) != 0) return false;
  row.verdict = Verdict::pass;
  row.diagnosis = fmt::format("the same whole numbers in {}, the reference has them in {}",
                              dtype_name(evidence.candidate_dtype), dtype_name(evidence.reference_dtype));
  row.not_exercised = why_not_exercised(evidence.forced);
  return true;
}

}  // namespace parity
