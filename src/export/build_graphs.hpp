// The graphs of a report: rows on the recorded programs where these are at hand, else on nodes of their own.
#pragma once
#include "export/graph.hpp"
#include "trace/program.hpp"

namespace parity {

/// A pair for each reference of the report. `reference`, `candidate`: the recordings' programs, null where there is
/// none or where the report has several references.
std::vector<GraphPair> graphs_of(const Report& report, const Program* reference, const Program* candidate);

}  // namespace parity
