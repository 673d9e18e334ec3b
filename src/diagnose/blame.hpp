// Which op injected how much of the final error: each op's own local error put into the reference alone.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "pair/candidate.hpp"
#include "pair/port_pairing.hpp"

namespace parity {

struct Blame {
  std::map<size_t, double> share;  // by boundary: of the squared final error, along the candidate's error; sums to 1
                                   // when errors only add up
  double explained = 0;            // sum of the shares
  double final_error = 0;          // relative L2 of the root's result, free-running
};

/// Local error of each paired float boundary: the candidate's value minus the reference's program on the candidate's
/// earlier values. Each is added to the reference's own value at that place, one at a time, in fp64, and carried to the
/// root's result: share = <what it changes there, the candidate's final error> / |final error|^2.
/// Costs one pass for the local errors (kept in memory, those that are not zero) and, for all injections, the ops after
/// each injection once. Throws Error when the root's result is not paired.
Blame blame(const Dump& dump, const Program& program, const std::vector<CandidateTensor>& candidate,
            const PortPairing& pairing, const std::function<void(double done)>& progress);

}  // namespace parity
