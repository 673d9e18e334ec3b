// Both sides run a model in as many calls, but not in the same order: guidance with the negative prompt first.
#pragma once
#include <string>
#include <vector>

#include "pair/candidate.hpp"
#include "pair/name_map.hpp"
#include "trace/program.hpp"

namespace parity {

/// Gives the port's calls the numbers that the reference's have. Looked at are groups of calls of the whole model: all,
/// where there are few, and pairs, of which each must have the same order. The first stored value that both sides name
/// and whose calls differ tells: each of the port's is much nearer to one of the reference's than to the next. Where
/// that is its own, or no value tells, the numbers stay. `map` may be null; `notes`: says the order.
void order_calls(const Program& reference, const Dump& dump, std::vector<CandidateTensor>& tensors, const NameMap* map,
                 std::vector<std::string>& notes);

}  // namespace parity
