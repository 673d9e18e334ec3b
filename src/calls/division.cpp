#include "calls/division.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "calls/call_shapes.hpp"
#include "calls/division_axes.hpp"
#include "calls/division_calls.hpp"
#include "calls/division_extents.hpp"
#include "calls/division_passes.hpp"
#include "calls/division_sides.hpp"
#include "calls/votes.hpp"

namespace parity {
namespace {

class Divider {
 public:
  // `in_turn`: the model runs once, all of a sample before the next; else as often as most modules. `counts`: chunks of
  // each pass, where these are not as many.
  Divider(const BothSides& sides, bool of_port, bool anew, bool in_turn, ChunksOfPasses counts = {})
      : sides_(sides), in_turn_(in_turn) {
    found_.of_port = of_port, calls_ = {anew, 1, std::move(counts)};
    if (!in_turn) calls_.passes = calls_.counts.empty() ? usual_passes() : calls_.counts.size();
  }

  Division run() {
    for (const CallShapes& path : sides_.paths)
      if (!path.own) divide_path(path);
    find_extents(found_);
    if (found_.extents.empty()) suppose_extents();
    for (const CallShapes& path : sides_.paths)
      if (path.own) divide_own(path);
    find_extents(found_);
    if (found_.chunks.empty() || found_.extents.size() < 2 || is_by_chance()) return {};
    find_rows(found_);
    for (const CallShapes* path : otherwise_)
      if (!(found_.of_port ? join_last(*path) : take_last(*path))) leave_out(*path);
    std::sort(found_.chunks.begin(), found_.chunks.end(),
              [](const Chunks& a, const Chunks& b) { return a.tensors < b.tensors; });
    return std::move(found_);
  }

 private:
  const Calls& in_chunks(const CallShapes& path) const { return found_.of_port ? path.port : path.reference; }
  const Calls& whole(const CallShapes& path) const { return found_.of_port ? path.reference : path.port; }

  // `path`: of a name that both sides have.
  bool is_divided(const CallShapes& path) const {
    const size_t once = whole(path).times, times = in_chunks(path).times;
    if (calls_.anew) return once == times && path.reference != path.port;
    if (!calls_.counts.empty())
      return once % calls_.counts.size() == 0 && times == once / calls_.counts.size() * calls_.all();
    return times > once && times % once == 0;
  }

  // Names of the port's own alone, and most of them are not divided.
  bool is_by_chance() const {
    const auto own = [](const auto& path) { return path.own; };
    const auto undivided = std::ranges::count_if(otherwise_, [](const CallShapes* path) { return path->own; });
    return std::ranges::all_of(found_.chunks, own) && 2 * undivided > std::ranges::count_if(sides_.paths, own);
  }

  void leave_out(const CallShapes& path) {
    for (const auto& [call, tensor] : path.tensors) {
      const auto expected = path.reference.shapes.find(call);
      const bool as_it_is =
          calls_.anew && expected != path.reference.shapes.end() && expected->second == path.port.shapes.at(call);
      if (!path.own && !as_it_is) found_.left_out.push_back(tensor);
    }
  }

  // Most modules are called once a pass.
  size_t usual_passes() const {
    std::map<size_t, int> votes;
    for (const CallShapes& path : sides_.paths)
      if (!path.own && is_divided(path) && (calls_.anew || path.port.first() != path.reference.first()))
        ++votes[whole(path).times];
    return most_of(votes).value_or(1);
  }

  void divide_path(const CallShapes& path) {
    const Groups calls = is_divided(path) ? calls_.of(whole(path).times, in_chunks(path).times) : Groups();
    std::vector<Chunks> divided, same;
    for (const auto& [call, shape] : whole(path).shapes) {
      const auto shapes = call < calls.size() ? in_chunks(path).of(calls[call]) : std::vector<Shape>();
      if (shapes.empty()) continue;
      if (shapes == std::vector<Shape>(shapes.size(), shape))
        add(same, path, call, calls, {});
      else if (const auto axis = axis_of_chunks(shapes, shape))
        add(divided, path, call, calls, *axis);
      else if (const auto laid_out = axis_laid_out_otherwise(shapes, shape, found_.of_port))
        add(divided, path, call, calls, *laid_out);
    }
    const size_t all = whole(path).shapes.size();
    const bool fits = path.one_dtype && !divided.empty() && !path.of_range;
    if (sides_.of_selections.contains(path.name) && !calls_.anew)
      otherwise_.push_back(&path);
    else if (fits && divided.size() + (calls_.anew || !calls_.counts.empty() ? same.size() : 0) == all) {
      found_.chunks.insert(found_.chunks.end(), divided.begin(), divided.end());
      if (!calls_.counts.empty()) found_.chunks.insert(found_.chunks.end(), same.begin(), same.end());
    } else if (!calls_.anew && same.size() == all)
      found_.chunks.insert(found_.chunks.end(), same.begin(), same.end());
    else if (path.reference != path.port && (calls_.anew || !only_laid_out_otherwise(path)))
      otherwise_.push_back(&path);
  }

  void divide_own(const CallShapes& path) {
    if (!calls_.counts.empty()) return divide_own_unevenly(path);
    const size_t chunks = calls_.anew ? 1 : found_.extents.empty() ? path.port.times : found_.extents.size();
    const size_t once = found_.of_port ? path.port.times / chunks : path.port.times;
    const bool fits = found_.of_port ? path.port.times > 1 && once * chunks == path.port.times && path.one_dtype
                                     : !found_.extents.empty() && once % calls_.passes == 0;
    const auto known = [&](const auto& call) { return sides_.known.has_extents(call.second); };
    if (!fits || (!calls_.anew && std::ranges::any_of(path.port.shapes, known))) return;
    if (calls_.anew && sides_.of_modules.contains(extents_by_call(path.port))) return otherwise_.push_back(&path);
    const Groups calls = calls_.of(once, once * chunks);
    const size_t before = found_.chunks.size();
    for (size_t i = 0; i < once; ++i) {
      const std::vector<Shape> shapes = path.port.of(found_.of_port ? calls[i] : std::vector<size_t>{i});
      if (shapes.empty() || (calls_.anew && calls[i].size() == 1)) continue;
      if (calls_.anew && !found_.of_port && sides_.known.has_extents(shapes.front())) continue;
      Extents extents = found_.extents;
      if (calls_.anew) extents.resize(std::min(calls[i].size(), extents.size()));
      const auto axis = found_.of_port ? axis_to_join(shapes, sides_.known)
                                       : axis_to_split(shapes.front(), extents, found_.outermost, sides_.known);
      if (axis) add(found_.chunks, path, i, calls, *axis);
    }
    if (before == found_.chunks.size()) otherwise_.push_back(&path);
  }

  // Passes of one chunk are what the reference has.
  void divide_own_unevenly(const CallShapes& path) {
    const size_t times = path.port.times, modules = times / (found_.of_port ? calls_.all() : calls_.counts.size()),
                 once = modules * calls_.counts.size();
    if (modules == 0 || times != (found_.of_port ? modules * calls_.all() : once) || !path.one_dtype) return;
    if (!found_.of_port && found_.extents.empty()) return;
    const Groups calls = calls_.of(once, modules * calls_.all());
    std::vector<Chunks> found;
    size_t divided = 0;
    for (size_t i = 0; i < once; ++i) {
      const std::vector<Shape> shapes = path.port.of(found_.of_port ? calls[i] : std::vector<size_t>{i});
      if (shapes.empty()) return;
      DividedAxis axis{};
      if (calls[i].size() > 1) {
        const auto along = found_.of_port
                               ? axis_to_join(shapes, sides_.known)
                               : axis_to_split(shapes.front(), found_.extents, found_.outermost, sides_.known);
        if (!along) return otherwise_.push_back(&path);
        axis = *along, ++divided;
      }
      add(found, path, i, calls, axis);
    }
    if (divided > 0) found_.chunks.insert(found_.chunks.end(), found.begin(), found.end());
  }

  // The port has in each chunk the last token alone: of chunks of a prompt the last one's is the prompt's, of samples
  // each has one. The reference has all tokens, or the last one's (calls/last_tokens.hpp).
  bool join_last(const CallShapes& path) {
    if (path.own || calls_.anew || !is_divided(path) || sides_.of_selections.contains(path.name)) return false;
    if (!path.one_dtype || path.of_range) return false;
    const Groups calls = calls_.of(path.reference.times, path.port.times);
    std::vector<Chunks> found;
    std::vector<size_t> before_last;  // tensors
    for (const auto& [call, whole] : path.reference.shapes) {
      const std::vector<Shape> shapes = path.port.of(calls[call]);
      const auto joined = shapes.empty() ? std::nullopt : axis_of_last_rows(shapes, whole);
      if (!joined) return false;
      add(found, path, call, calls, *joined);
      if (!joined->extents.empty()) continue;
      std::vector<size_t>& tensors = found.back().tensors;
      before_last.insert(before_last.end(), tensors.begin(), tensors.end() - 1);
      tensors = {tensors.back()};
    }
    found_.chunks.insert(found_.chunks.end(), found.begin(), found.end());
    found_.left_out.insert(found_.left_out.end(), before_last.begin(), before_last.end());
    return true;
  }

  // The reference has in each chunk what is last of it alone.
  bool take_last(const CallShapes& path) {
    const size_t once = path.port.times, times = calls_.anew ? once : once * found_.extents.size();
    if (!path.own && (path.reference.times != times || sides_.of_selections.contains(path.name))) return false;
    const Groups calls = calls_.of(once, times);
    std::vector<Chunks> found;
    size_t as_it_is = 0;
    for (const auto& [call, shape] : path.port.shapes) {
      Extents usual = found_.extents;
      usual.resize(std::min(calls[call].size(), usual.size()));
      std::vector<size_t> taken = calls[call];
      if (calls_.anew) usual = {sum_of(usual)}, taken = {calls[call].back()};
      const std::vector<Shape> shapes = path.reference.of(taken);
      if (path.own ? sides_.known.has_extents(shape) : shapes == std::vector<Shape>{shape}) {
        ++as_it_is;
        continue;
      }
      const auto axis = path.own ? axis_to_last(shape, usual, sides_.known) : axis_of_last(shapes, shape, usual);
      if (!axis) continue;
      add(found, path, call, calls, *axis);
      found.back().rows = shape[axis->axis] / sum_of(usual);
      found.back().calls.clear();
      for (const size_t c : taken) found.back().calls.insert(found.back().calls.end(), {-1, static_cast<int>(c)});
    }
    if (found.empty() || found.size() + as_it_is != path.port.shapes.size() || !path.one_dtype || path.of_range)
      return path.own;
    found_.chunks.insert(found_.chunks.end(), found.begin(), found.end());
    return true;
  }

  void add(std::vector<Chunks>& to, const CallShapes& path, size_t whole, const Groups& calls,
           const DividedAxis& axis) const {
    Chunks& chunks =
        to.emplace_back(Chunks{path.own, path.name, {}, {}, static_cast<int64_t>(axis.axis), axis.extents});
    chunks.pass = whole * calls_.passes / calls.size();
    const Shape& shape = found_.of_port && path.own ? path.port.first() : this->whole(path).first();
    for (size_t a = 0; a < axis.axis; ++a) chunks.outer *= shape[a];
    for (const size_t c : calls[whole])
      if (found_.of_port)
        chunks.tensors.push_back(path.tensors.at(c));
      else
        chunks.calls.push_back(calls_.anew && c != calls[whole].back() ? -1 : static_cast<int>(c));
    if (found_.of_port)
      chunks.calls = {static_cast<int>(whole)};
    else
      chunks.tensors = {path.tensors.at(whole)};
  }

  // Where no name says it: one side has most paths so many times as often as the other, each time a part of the same,
  // or as many samples.
  void suppose_extents() {
    const auto& [once, times] = found_.of_port ? std::pair(sides_.reference_times, sides_.own_times)
                                               : std::pair(sides_.own_times, sides_.reference_times);
    if (once == 0 || times % once != 0 || (calls_.anew ? times != once || times == 1 : times <= once)) return;
    if (!in_turn_) calls_.passes = once;
    const Groups groups = calls_.of(once, times);
    const auto& values = found_.of_port == calls_.anew ? sides_.reference : sides_.own;  // of the side that tells
    const auto extents = extents_of_calls(values, times, calls_.anew ? groups.back() : groups.front(), calls_.anew);
    if (extents) std::tie(found_.extents, found_.outermost) = *extents;
  }

  const BothSides& sides_;
  const bool in_turn_;
  std::vector<const CallShapes*> otherwise_;  // paths that are not divided as most are
  Division found_;
  CallsOfChunks& calls_ = found_.calls;
};

size_t divided(const Division& division) {
  return static_cast<size_t>(std::count_if(division.chunks.begin(), division.chunks.end(),
                                           [](const Chunks& chunks) { return !chunks.extents.empty(); }));
}

}  // namespace

std::vector<Division> divisions(const Program& reference, std::vector<CallShapes> paths) {
  const auto alike = [](const CallShapes& path) { return !path.own && path.reference == path.port; };
  if (std::ranges::all_of(paths, alike)) return {};
  const BothSides sides(reference, std::move(paths));
  for (const bool anew : {false, true}) {
    for (const bool of_port : {true, false}) {
      std::vector<Division> found;
      for (const bool in_turn : {false, true}) {
        Division division = Divider(sides, of_port, anew, in_turn).run();
        if (division.chunks.empty() || (!found.empty() && found.front().calls.passes == division.calls.passes))
          continue;
        if (!found.empty() && divided(division) > divided(found.front())) found.clear();
        if (found.empty() || divided(division) == divided(found.front())) found.push_back(std::move(division));
      }
      if (!found.empty()) return found;
    }
    for (const bool of_port : {true, false})
      if (auto counts = chunks_of_passes(sides.paths, sides.reference, of_port); !anew && !counts.empty())
        if (Division uneven = Divider(sides, of_port, false, false, std::move(counts)).run(); !uneven.chunks.empty())
          return {std::move(uneven)};
  }
  return {};
}

}  // namespace parity
