#include "calls/ragged_values.hpp"

#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "calls/padding_counts.hpp"
#include "calls/ragged_lengths.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

using Tensors = std::vector<CandidateTensor>;

// A tensor of the port for one of the reference's boundaries.
struct Matched {
  std::optional<size_t> boundary;   // none: of a name of the port's own
  std::pair<size_t, size_t> place;  // sample, where the port's batch is taken apart; which of the port's tensors it was
  CandidateTensor tensor;
};

class Matcher {
 public:
  Matcher(const RecordedSide& reference, const Tensors& tensors, const std::set<std::string>& of_selections,
          const RaggedBatch& batch)
      : program_(*reference.program),
        dump_(*reference.dump),
        tensors_(tensors),
        of_selections_(of_selections),
        batch_(batch),
        known_(*reference.program) {}

  // `program`: the reference's. Returns the boundaries that are of samples alone.
  PartBoundaries run(Program& program, const std::vector<CallShapes>& paths) {
    for (const CallShapes& path : paths)
      if (path.own)
        batch_.of_port ? divide_own(path) : join_own(path);
      else if (path.reference != path.port)
        for (const auto& [call, shape] : batch_.batch(path).shapes) match(path, call);
    if (!batch_.of_port) pack_for_own(paths);
    const PartBoundaries changed = go_on_from_tokens(program, std::move(packed_), of_tokens_, left_out_);
    pack_other_names(program, paths);
    std::erase_if(matched_,
                  [&](const Matched& matched) { return matched.boundary && left_out_.contains(*matched.boundary); });
    return changed;
  }

  Tensors tensors() const {
    std::map<std::pair<size_t, size_t>, CandidateTensor> placed;
    for (size_t c = 0; c < tensors_.size(); ++c)
      if (!gone_.contains(c)) placed.emplace(std::pair{size_t{0}, c}, tensors_[c]);
    for (const Matched& matched : matched_) placed.emplace(matched.place, matched.tensor);
    Tensors all;
    for (auto& [place, tensor] : placed) all.push_back(std::move(tensor));
    return all;
  }

  size_t matched() const { return matched_.size(); }
  size_t left_out() const { return left_out_.size(); }

 private:
  void match(const CallShapes& path, size_t call) {
    const std::vector<size_t> calls = batch_.calls_of(path, call);
    const std::vector<Shape> parts = batch_.single(path).of(calls);
    const Shape& whole = batch_.batch(path).shapes.at(call);
    if (of_selections_.contains(path.name)) return leave_out(path);  // each call selects other rows
    if (parts.empty() && !calls.empty() && is_op_path(path.name)) return leave_out(path);  // not run in all calls
    if (parts.empty()) return;                                                             // it stays as it is
    const PackedParts places = places_in_batch(batch_, whole, parts);
    const bool same = std::ranges::all_of(parts, [&](const Shape& part) { return part == whole; });
    if (!path.of_range && path.one_dtype && !places.parts.empty())
      batch_.of_port ? divide(path, call, calls, places) : join(path, call, calls, places);
    else if (same && is_same(path, calls))
      repeat(path, call, calls);
    else if (same || is_op_path(path.name) || is_padded_otherwise(whole, parts))
      leave_out(path);
    else
      return;  // no padding explains it
    for (const size_t c : batch_.of_port ? std::vector{call} : calls) gone_.insert(path.tensors.at(c));
  }

  void leave_out(const CallShapes& path) {
    for (const auto& [call, c] : path.tensors) gone_.insert(c);
    for (const auto& [call, shape] : path.reference.shapes) left_out_.insert(boundary(path, call));
  }

  bool is_padded_otherwise(const Shape& whole, const std::vector<Shape>& parts) const {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].size() > whole.size()) continue;
      const size_t lacking = whole.size() - parts[i].size();  // the batch's axis
      for (size_t axis = 0; axis < parts[i].size(); ++axis) {
        const int64_t longer = whole[axis + lacking] - parts[i][axis];
        const bool in_ratio = whole[axis + lacking] * batch_.tokens[i] == parts[i][axis] * batch_.padded;
        if (longer > 0 && (in_ratio || longer == batch_.padded - batch_.tokens[i])) return true;
      }
    }
    return false;
  }

  size_t boundary(const CallShapes& path, size_t call) const {
    return *program_.find(path.name, static_cast<int>(call));
  }

  at::Tensor single(const CallShapes& path, size_t call) const {
    if (!batch_.of_port) return tensors_[path.tensors.at(call)].load();
    const Value& value = program_.boundaries[boundary(path, call)].value;
    return value.key.empty() ? at::Tensor() : stored_value(dump_, value);
  }

  // In every call, and so of no sample; a sum over the batch is not.
  bool is_same(const CallShapes& path, const std::vector<size_t>& calls) const {
    const at::Tensor first = single(path, calls[0]);
    return first.defined() && std::ranges::all_of(calls, [&](size_t call) {
             const at::Tensor value = single(path, call);
             return value.defined() && at::equal(value, first);
           });
  }

  CandidateTensor& add(const CallShapes& path, size_t call, std::pair<size_t, size_t> place) {
    gone_.insert(place.second);
    matched_.push_back({path.own ? std::nullopt : std::optional(boundary(path, call)), place, tensors_[place.second]});
    matched_.back().tensor.call = static_cast<int>(call);
    return matched_.back().tensor;
  }

  void repeat(const CallShapes& path, size_t call, const std::vector<size_t>& calls) {
    if (!batch_.of_port) add(path, call, {0, path.tensors.at(calls[0])});
    for (size_t i = 0; batch_.of_port && i < calls.size(); ++i) add(path, calls[i], {i, path.tensors.at(call)});
  }

  // The port's batch: a tensor for each call of the reference.
  void divide(const CallShapes& path, size_t call, const std::vector<size_t>& calls, const PackedParts& places) {
    const Shape& batch = path.port.shapes.at(call);
    for (size_t i = 0; i < calls.size(); ++i) {
      CandidateTensor& part = add(path, calls[i], {i, path.tensors.at(call)});
      part.shape = path.own ? cut(batch, places.parts[i]) : path.reference.shapes.at(calls[i]);
      part.load = [load = part.load, place = places.parts[i], shape = part.shape] {
        return axis_parts(load(), place).reshape(shape);
      };
      if (!path.own && packed_shape(batch, places) != batch) of_tokens_.insert(boundary(path, calls[i]));
    }
  }

  // Where its samples, and not the whole, have extents that the reference has.
  void divide_own(const CallShapes& path) {
    for (const auto& [call, batch] : path.port.shapes) {
      const PackedParts places = places_by_shape(batch_, batch);
      const auto is_known = [&](const auto& place) { return known_.has_extents(cut(batch, place)); };
      if (!places.parts.empty() && !known_.has_extents(batch) && std::ranges::all_of(places.parts, is_known))
        divide(path, call, batch_.calls_of(path.port.times, path.port.times * batch_.tokens.size(), call), places);
    }
  }

  // Tensors of the port, sample behind sample; `shapes`: that they are brought to before.
  void join(const CallShapes& path, size_t call, const std::vector<size_t>& calls, const std::vector<Shape>& shapes,
            int64_t axis) {
    std::vector<std::pair<Shape, std::function<at::Tensor()>>> loads;
    for (size_t i = 0; i < calls.size(); ++i) {
      loads.emplace_back(shapes[i], tensors_[path.tensors.at(calls[i])].load);
      gone_.insert(path.tensors.at(calls[i]));
    }
    CandidateTensor& samples = add(path, call, {0, path.tensors.at(calls[0])});
    samples.shape = packed_shape(shapes, axis);
    samples.load = [loads, axis] {
      std::vector<at::Tensor> parts;
      for (const auto& [shape, load] : loads) parts.push_back(load().reshape(shape));
      return pack(std::move(parts), axis);
    };
  }

  // The reference's batch without its padding.
  void join(const CallShapes& path, size_t call, const std::vector<size_t>& calls, const PackedParts& places) {
    const Shape& batch = path.reference.shapes.at(call);
    std::vector<Shape> shapes;
    for (const auto& place : places.parts) shapes.push_back(cut(batch, place));
    join(path, call, calls, shapes, places.axis);
    packed_.emplace(boundary(path, call), places);
    if (packed_shape(shapes, places.axis) != batch) of_tokens_.insert(boundary(path, call));
  }

  void join_own(const CallShapes& path) {
    const size_t once = path.port.times / batch_.tokens.size();
    for (size_t call = 0; call < once; ++call) {
      const std::vector<size_t> calls = batch_.calls_of(once, path.port.times, call);
      const std::vector<Shape> shapes = path.port.of(calls);
      const auto ragged = shapes.empty() || !path.one_dtype ? std::nullopt : ragged_axis(shapes);
      if (!ragged) continue;
      join(path, call, calls, shapes, ragged->axis);
      own_.add(matched_.back().tensor.shape);
    }
  }

  // Of the values that the port has under names of its own, as far as shapes tell.
  void pack_for_own(const std::vector<CallShapes>& paths) {
    const NamedTensors named = named_tensors(paths);
    for (size_t b = 0; b < program_.boundaries.size(); ++b) {
      const Boundary& boundary = program_.boundaries[b];
      if (!boundary.comparable || named.contains({boundary.path, boundary.call})) continue;
      const Shape& batch = boundary.value.shape;
      const PackedParts places = places_by_shape(batch_, batch);
      const Shape packed = places.parts.empty() ? Shape() : packed_shape(batch, places);
      if (packed.empty() || !own_.has_extents(packed)) continue;
      packed_.emplace(b, places);
      if (packed != batch) of_tokens_.insert(b);
    }
  }

  // Of a value that was packed, where the port has it as the reference had: an encoder's states that are returned.
  void pack_other_names(const Program& program, const std::vector<CallShapes>& paths) {
    for (const CallShapes& path : paths)
      for (const auto& [call, c] :
           path.own || path.reference != path.port ? std::map<size_t, size_t>() : path.tensors) {
        const PackedParts& packed = program.boundaries[boundary(path, call)].value.packed;
        if (packed.parts.empty()) continue;
        CandidateTensor& samples = add(path, call, {0, c});
        samples.shape = packed_shape(samples.shape, packed);
        samples.load = [load = samples.load, packed] { return pack(load(), packed); };
      }
  }

  const Program& program_;
  const Dump& dump_;
  const Tensors& tensors_;
  const std::set<std::string>& of_selections_;
  const RaggedBatch& batch_;
  const KnownShapes known_;
  KnownShapes own_;  // what the port has under names of its own, joined
  std::vector<Matched> matched_;
  PartBoundaries packed_;
  std::set<size_t> of_tokens_, left_out_;  // boundaries
  std::set<size_t> gone_;                  // the port's tensors of which there are others, or no boundary
};

}  // namespace

std::optional<PartBoundaries> match_samples(Program& reference, const Dump& dump, const RecordedSide& port,
                                            std::vector<CandidateTensor>& tensors, const std::vector<CallShapes>& paths,
                                            std::vector<std::string>& notes) {
  const RecordedSide recorded{&reference, &dump};
  const auto batch = find_ragged_batch(recorded, port, tensors, paths);
  if (!batch) return std::nullopt;
  const auto of_selections = paths_of_selections(reference);
  Matcher matcher(recorded, tensors, of_selections, *batch);
  PartBoundaries packed = matcher.run(reference, paths);
  notes.push_back(fmt::format(
      "the {} ran {} samples as one batch padded to {} tokens, the {} each in a call of its own ({} tokens): {} values "
      "of samples are compared, {} that have padding otherwise are not",
      batch->of_port ? "port" : "reference", batch->size(), batch->padded, batch->of_port ? "reference" : "port",
      fmt::join(batch->tokens, ", "), matcher.matched(), matcher.left_out()));
  tensors = matcher.tensors();
  return packed;
}

}  // namespace parity
