// Two sets of tensors without a program on the reference's side: what can be said when nothing can be replayed.
#pragma once
#include "compare/candidate.hpp"
#include "compare/name_map.hpp"
#include "compare/port_job.hpp"

namespace parity {

/// Pairs by map, by name, then by content, and compares values as they are: inherited and own errors together. Equal to
/// within a rounding passes; other shapes, dtype classes or NaN places, and differences that no rounding explains,
/// fail; what lies between is inconclusive, because without a program nobody can tell whose error it is. Throws Error
/// for a map rule that matches nothing.
PortJobResult run_plain_job(const std::vector<CandidateTensor>& reference,
                            const std::vector<CandidateTensor>& candidate, const NameMap* map,
                            const std::string& layer);

/// Relative L2 differences that say something where nothing can be replayed.
struct PlainLimits {
  double pass;  // up to here: within two roundings
  double fail;  // from here on: no chain of roundings is to blame
};
PlainLimits plain_limits(at::ScalarType reference, at::ScalarType candidate);

/// Measures two whole tensors of one shape and dtype class and fills verdict, gate, diagnosis, limits, `free` of `row`.
void judge_plain(OpResult& row, const at::Tensor& reference, const at::Tensor& candidate);

}  // namespace parity
