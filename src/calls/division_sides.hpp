// Private to src/calls: what every division is looked for in.
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "calls/call_shapes.hpp"
#include "calls/division_passes.hpp"

namespace parity {

struct BothSides {
  BothSides(const Program& program, std::vector<CallShapes> all)
      : paths(std::move(all)),
        reference(reference_calls(program)),
        of_selections(paths_of_selections(program)),
        known(program) {
    for (const CallShapes& path : paths)
      if (path.own) own.push_back(path.port);
    const std::vector<Calls> modules = module_calls(program);
    for (const Calls& calls : modules) of_modules.insert(extents_by_call(calls));
    reference_times = usual_times(modules, own), own_times = usual_times(own, modules);
  }

  const std::vector<CallShapes> paths;
  const std::vector<Calls> reference;
  std::vector<Calls> own;              // the port's, of names of its own
  std::set<ExtentsByCall> of_modules;  // the reference's
  size_t reference_times = 0, own_times = 0;
  const std::set<std::string> of_selections;
  const KnownShapes known;
};

}  // namespace parity
