#include "calls/padding_passes.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace parity {
namespace {

using Differing = std::set<std::pair<Shape, Shape>>;  // the reference's and the port's

bool has_passes(const CallShapes& path, size_t passes) {
  return !path.own && path.reference.times == path.port.times && path.port.times % passes == 0;
}

size_t pass_of(const CallShapes& path, size_t call, size_t passes) { return call / (path.port.times / passes); }

CallShapes in_passes(const CallShapes& path, const std::set<size_t>& wanted, size_t passes) {
  CallShapes some = path;
  const auto unwanted = [&](const auto& of_call) { return !wanted.contains(pass_of(path, of_call.first, passes)); };
  std::erase_if(some.reference.shapes, unwanted);
  std::erase_if(some.port.shapes, unwanted);
  std::erase_if(some.tensors, unwanted);
  return some;
}

}  // namespace

std::vector<std::vector<CallShapes>> passes_that_differ_alike(const std::vector<CallShapes>& paths) {
  const size_t passes = std::max<size_t>(usual_passes(paths), 1);
  std::map<size_t, Differing> by_pass;
  for (const CallShapes& path : paths)
    if (has_passes(path, passes))
      for (const auto& [call, shape] : path.port.shapes)
        if (const auto mine = path.reference.shapes.find(call);
            mine != path.reference.shapes.end() && mine->second != shape)
          by_pass[pass_of(path, call, passes)].emplace(mine->second, shape);
  std::map<Differing, std::set<size_t>> alike;
  for (const auto& [pass, differing] : by_pass) alike[differing].insert(pass);
  std::vector<std::vector<CallShapes>> groups;
  for (const auto& [differing, wanted] : alike) {
    std::vector<CallShapes>& group = groups.emplace_back();
    for (const CallShapes& path : paths)
      if (has_passes(path, passes)) group.push_back(in_passes(path, wanted, passes));
  }
  return groups;
}

}  // namespace parity
