// Values that are computed from the same values, as q, k and v, or gate and up, are: one wrong value makes all of them
// wrong.
#pragma once
#include <vector>

#include "pair/name_map.hpp"
#include "trace/program.hpp"

namespace parity {

/// A tensor of the candidate in the place of a boundary.
struct Placed {
  size_t boundary = 0, candidate = 0;
  Layout layout;
};

/// Modules' results among `boundaries` (ascending) whose modules take the same values; groups of two or three.
/// `direct`: by boundary those that it is directly computed from.
std::vector<std::vector<size_t>> siblings_among(const Program& program, const std::vector<std::vector<size_t>>& direct,
                                                const std::vector<size_t>& boundaries);

/// Of the tensors that fit each sibling, ascending: all of them next to each other, in any order (a port may compute
/// `up` before `gate`), the earliest first. Each by boundary.
std::vector<std::vector<Placed>> in_a_row(const std::vector<std::vector<Placed>>& fits);

}  // namespace parity
