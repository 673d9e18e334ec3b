// What happened to a tensor that should hold a reference parameter and does not: named conversion faults.
#pragma once
#include <ATen/ATen.h>

#include <optional>
#include <string>

#include "core/result.hpp"
#include "weights/content.hpp"

namespace parity {

struct Fault {
  std::string name;    // one word or two, for machines: "scaled", "rows permuted", "rounded"
  std::string detail;  // for people
  Gate gate = Gate::logic;
  Verdict verdict = Verdict::fail;
  Order order;  // under which the candidate was read
};

/// Both are one another's counterparts by name. Named after a check of all elements; in this order: other class of
/// numbers, empty (untrusted), NaN, all zero, constant, another size, rounded on the way, transposed or reshaped, sign,
/// factor, offset, a factor for each row or column, rows or columns in another order, the same numbers in no such
/// order, single rows, single elements, values differ. `expected`: how sound parameters of such names are laid out
/// here.
Fault diagnose(const at::Tensor& reference, const at::Tensor& candidate, const std::optional<Order>& expected);

/// "rounded through bf16" for a candidate that holds the reference but for that; nullopt when it was kept.
std::optional<Fault> rounding_fault(const Rounding& rounding, at::ScalarType candidate);

/// Statistics of an equal pair, without another pass: what is not known then (percentiles of a rounding) stays absent.
Stats equal_stats(const at::Tensor& reference, at::ScalarType candidate);

}  // namespace parity
