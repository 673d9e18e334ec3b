// The shapes that each path has on both sides, call by call.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pair/candidate.hpp"
#include "pair/name_map.hpp"
#include "trace/program.hpp"

namespace parity {

using Shape = std::vector<int64_t>;

/// By call. `times`: how often its module was called; an op need not run in each of them.
struct Calls {
  std::map<size_t, Shape> shapes;
  size_t times = 0;

  const Shape& first() const { return shapes.begin()->second; }
  /// Those of these calls; empty: one of them is not there.
  std::vector<Shape> of(const std::vector<size_t>& calls) const;
  bool operator==(const Calls&) const = default;
};

struct CallShapes {
  bool own = false;  // a name of the port's own
  std::string name;  // else the reference's; "": the whole model's result
  Calls reference, port;
  std::map<size_t, size_t> tensors;  // the port's: index by call
  bool of_range = false;             // numbers of elements, which every call begins anew
  bool one_dtype = true;             // of the port's tensors
};

/// Do both sides have it in the same calls, and as many elements in each?
bool only_laid_out_otherwise(const CallShapes& path);

/// The paths that both sides have, and the port's own names of modules and points. Left out: what `map` (may be null)
/// lays out otherwise, and ops whose names the reference has not.
std::vector<CallShapes> call_shapes(const Program& reference, const std::vector<CandidateTensor>& tensors,
                                    const NameMap* map);

/// How often most of the paths that both sides have, as often, are called: passes of the whole model. 0: there are
/// none.
size_t usual_passes(const std::vector<CallShapes>& paths);

/// Axes of the same extents, whatever their order, without those of length 1.
bool have_extents_alike(const Shape& one, const Shape& other);

/// The extents of each call's axes in ascending order, without those of length 1.
using ExtentsByCall = std::map<size_t, Shape>;
ExtentsByCall extents_by_call(const Calls& calls);

/// The port's tensors of the reference's names, by path and call.
using NamedTensors = std::map<std::pair<std::string, int>, size_t>;
NamedTensors named_tensors(const std::vector<CallShapes>& paths);

/// Of each path of the reference.
std::vector<Calls> reference_calls(const Program& reference);
/// Of modules' results alone, as a port has them under names of its own; where there are none, of each path.
std::vector<Calls> module_calls(const Program& reference);

/// Paths of what a module computes, in itself or in its children, from rows that it selects by their values within one
/// call: each call selects others.
std::set<std::string> paths_of_selections(const Program& reference);

/// The shapes of all values of the reference: of a port's own names they are all there is to go by.
class KnownShapes {
 public:
  KnownShapes() = default;
  explicit KnownShapes(const Program& reference);
  void add(const Shape& shape);
  /// As it is, or its axes longer than 1, whatever their order.
  bool has(const Shape& shape) const { return shapes_.contains(shape); }
  bool has_extents(const Shape& shape) const;

 private:
  std::set<Shape> shapes_, extents_;
};

}  // namespace parity
