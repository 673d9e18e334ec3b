// A recorded program as a graph: a node an op, and which node holds the value of which boundary.
#pragma once
#include "export/graph.hpp"
#include "trace/program.hpp"

namespace parity {

struct ProgramNodes {
  SideGraph graph;
  std::vector<std::optional<size_t>> of_boundary;  // none: a leaf's value handed on
};

/// Ops are nodes 0, 1, … in their order, the model's inputs come after them; weights are attributes of the ops that
/// read them. Of a recording without ops (a writer's): its named values, without edges.
ProgramNodes nodes_of(const Program& program, const std::string& id);

}  // namespace parity
