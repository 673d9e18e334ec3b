// Two sets of tensors without a program on the reference's side: what can be said when nothing can be replayed.
#pragma once
#include "jobs/job_result.hpp"
#include "pair/candidate.hpp"
#include "pair/name_map.hpp"

namespace parity {

/// Pairs by map, by name, then by content, and compares values as they are: inherited and own errors together. Equal to
/// within a rounding passes; other shapes, dtype classes or NaN places, and differences that no rounding explains,
/// fail; what lies between is inconclusive, because without a program nobody can tell whose error it is. Throws Error
/// for a map rule that matches nothing.
JobResult run_plain_job(const std::vector<CandidateTensor>& reference, const std::vector<CandidateTensor>& candidate,
                        const NameMap* map, const std::string& layer, const GoOn& go_on = nullptr);

/// Measures two whole tensors of one shape and dtype class, and judges the row.
void compare_whole(OpResult& row, const at::Tensor& reference, const at::Tensor& candidate);

}  // namespace parity
