#include "calls/call_shapes.hpp"

#include <algorithm>
#include <set>

#include "calls/votes.hpp"
#include "pair/readings.hpp"
#include "trace/flow.hpp"
#include "trace/operator.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

Shape sorted_extents(const Shape& shape) {
  Shape extents = longer_axes(shape);
  std::sort(extents.begin(), extents.end());
  return extents;
}

struct OfPath {
  Calls calls;
  std::string kind;
};

std::map<std::string, OfPath> by_path(const Program& reference) {
  std::map<std::string, OfPath> paths;
  std::map<std::string, size_t> times;
  for (const Boundary& b : reference.boundaries) {
    size_t& calls = times[module_of(b.path)];
    calls = std::max(calls, static_cast<size_t>(b.call) + 1);
    if (!b.comparable) continue;
    OfPath& path = paths[b.path];
    path.calls.shapes.emplace(b.call, b.value.shape);
    path.kind = b.kind;
  }
  for (auto& [name, path] : paths) path.calls.times = times.at(module_of(name));
  return paths;
}

// What is computed in one module call from the rows that it selects by their values.
std::set<int64_t> selected_values(const Program& program, const Flow& flow, int call) {
  std::set<int64_t> values;
  for (int i = program.calls[call].begin; i < program.calls[call].end; ++i) {
    const bool selects = is_selection(program.ops[i].kind) && program.ops[i].module_call == call;
    const auto& reads = flow.ops[i].reads;
    if (!selects && std::ranges::none_of(reads, [&](int64_t id) { return values.contains(id); })) continue;
    values.insert(flow.ops[i].fresh.begin(), flow.ops[i].fresh.end());
    values.insert(flow.ops[i].writes.begin(), flow.ops[i].writes.end());
  }
  return values;
}

std::map<std::string, CallShapes> by_path(const std::vector<CandidateTensor>& tensors) {
  std::map<std::string, CallShapes> paths;
  std::map<std::string, size_t> times;
  for (size_t c = 0; c < tensors.size(); ++c) {
    const auto call = static_cast<size_t>(tensors[c].call);
    size_t& calls = times[module_of(tensors[c].path)];
    calls = std::max(calls, call + 1);
    CallShapes& path = paths[tensors[c].path];
    path.port.shapes.emplace(call, tensors[c].shape);
    path.tensors.emplace(call, c);
    path.one_dtype &= tensors[path.tensors.begin()->second].dtype == tensors[c].dtype;
  }
  for (auto& [name, path] : paths) path.port.times = times.at(module_of(name));
  return paths;
}

// Paths whose calls the map gives one by one: nothing is left to find out of these, nor of what it gives them, which
// is taken out of `of_port`.
std::set<std::string> named_by_call(const Program& reference, const NameMap& map,
                                    std::map<std::string, CallShapes>& of_port) {
  std::set<std::string> paths;
  for (const Boundary& b : reference.boundaries)
    if (const auto target = map.find(b.path, b.call); target && target->of_call) {
      paths.insert(b.path);
      of_port.erase(target->candidate);
    }
  return paths;
}

}  // namespace

std::vector<Shape> Calls::of(const std::vector<size_t>& calls) const {
  std::vector<Shape> found;
  for (const size_t c : calls)
    if (const auto shape = shapes.find(c); shape != shapes.end()) found.push_back(shape->second);
  return found.size() == calls.size() ? found : std::vector<Shape>();
}

bool only_laid_out_otherwise(const CallShapes& path) {
  return std::ranges::equal(path.reference.shapes, path.port.shapes, [](const auto& one, const auto& other) {
    return one.first == other.first && c10::multiply_integers(one.second) == c10::multiply_integers(other.second);
  });
}

std::vector<CallShapes> call_shapes(const Program& reference, const std::vector<CandidateTensor>& tensors,
                                    const NameMap* map) {
  std::map<std::string, CallShapes> of_port = by_path(tensors);
  std::vector<CallShapes> paths;
  const std::set<std::string> settled =
      map != nullptr ? named_by_call(reference, *map, of_port) : std::set<std::string>();
  for (const auto& [name, path] : by_path(reference)) {
    if (settled.contains(name)) continue;
    const auto target = map != nullptr ? map->find(name) : std::nullopt;
    if (target && !target->layout.as_it_is()) continue;
    const auto there = of_port.find(target ? target->candidate : name);
    if (there == of_port.end()) continue;
    CallShapes shapes = std::move(there->second);
    shapes.name = name;
    shapes.reference = path.calls;
    shapes.of_range = is_range(path.kind);
    paths.push_back(std::move(shapes));
    of_port.erase(there);
  }
  for (auto& [name, shapes] : of_port) {
    if (tensors[shapes.tensors.begin()->second].of_op || reference.find(name, 0)) continue;
    shapes.own = true;
    paths.push_back(std::move(shapes));
  }
  return paths;
}

size_t usual_passes(const std::vector<CallShapes>& paths) {
  std::map<size_t, int> votes;
  for (const CallShapes& path : paths)
    if (!path.own && path.reference.times == path.port.times) ++votes[path.port.times];
  return most_of(votes).value_or(0);
}

bool have_extents_alike(const Shape& one, const Shape& other) { return sorted_extents(one) == sorted_extents(other); }

ExtentsByCall extents_by_call(const Calls& calls) {
  ExtentsByCall extents;
  for (const auto& [call, shape] : calls.shapes) extents.emplace(call, sorted_extents(shape));
  return extents;
}

NamedTensors named_tensors(const std::vector<CallShapes>& paths) {
  NamedTensors named;
  for (const CallShapes& path : paths)
    for (const auto& [call, c] : path.tensors)
      if (!path.own) named.emplace(std::pair{path.name, static_cast<int>(call)}, c);
  return named;
}

std::vector<Calls> reference_calls(const Program& reference) {
  std::vector<Calls> calls;
  for (auto& [name, path] : by_path(reference)) calls.push_back(path.calls);
  return calls;
}

std::vector<Calls> module_calls(const Program& reference) {
  std::vector<Calls> calls;
  for (auto& [name, path] : by_path(reference))
    if (!is_op_path(name)) calls.push_back(path.calls);
  return calls.empty() ? reference_calls(reference) : calls;
}

std::set<std::string> paths_of_selections(const Program& program) {
  std::set<int> calls;
  for (const Op& op : program.ops)
    if (is_selection(op.kind) && op.module_call >= 0) calls.insert(op.module_call);
  std::set<std::string> paths;
  if (calls.empty()) return paths;
  const Flow flow = analyse_flow(program);
  std::multimap<int64_t, const std::string*> names;
  for (const Boundary& b : program.boundaries) names.emplace(b.value.id, &b.path);
  for (const int c : calls) {
    const ModuleCall& call = program.calls[c];
    for (const int64_t id : selected_values(program, flow, c))
      for (auto [name, end] = names.equal_range(id); name != end; ++name)
        if (name->second->starts_with(call.path + "/") ||
            (!call.path.empty() && name->second->starts_with(call.path + ".")))
          paths.insert(*name->second);
  }
  return paths;
}

KnownShapes::KnownShapes(const Program& reference) {
  for (const Boundary& b : reference.boundaries)
    if (b.comparable) add(b.value.shape);
}

void KnownShapes::add(const Shape& shape) {
  shapes_.insert(shape);
  extents_.insert(sorted_extents(shape));
}

bool KnownShapes::has_extents(const Shape& shape) const { return extents_.contains(sorted_extents(shape)); }

}  // namespace parity
