#include "trace/replay.hpp"

#include "trace/lanes.hpp"

namespace parity {

ReplayReport replay(const Dump& dump, const Program& program, const ReplayOptions& options,
                    const BoundaryVisitor& visit) {
  const auto visitor = [&](const BoundaryEvent& event) -> Replacements {
    if (!visit) return {std::nullopt};
    return {visit(event.boundary, event.computed.front())};
  };
  return replay_in_step(dump, program, {options}, visitor).front();
}

}  // namespace parity
