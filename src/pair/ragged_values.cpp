#include "pair/ragged_values.hpp"

#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "pair/padding_counts.hpp"
#include "pair/ragged_batch.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

using Tensors = std::vector<CandidateTensor>;

// Where each of the calls of a value lies in the batch; no parts: one does not fit. They lie one behind the other along
// the axis of the tokens, or of the batch; of scores, which have two of tokens, each is a row.
PackedParts places_of(const RaggedBatch& batch, const Shape& whole, const std::vector<Shape>& parts) {
  PackedParts packed;
  std::set<int64_t> axes;  // of tokens
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto place = place_in_batch(batch, i, whole, parts[i]);
    if (!place) return {};
    for (const AxisPart& part : *place)
      if (part.axis > 0 || part.length != whole[0] / batch.size()) axes.insert(part.axis);
    packed.parts.push_back(*place);
  }
  packed.axis = axes.size() > 1 ? -1 : axes.empty() ? 0 : *axes.begin();
  return packed;
}

// A tensor of the port for one of the reference's boundaries.
struct Matched {
  size_t boundary;
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
        batch_(batch) {}

  // `program`: the reference's. Returns the boundaries that are of samples alone.
  PackedBoundaries run(Program& program, const std::vector<CallShapes>& paths) {
    for (const CallShapes& path : paths)
      if (!path.own && path.reference != path.port)
        for (const auto& [call, shape] : batch_.batch(path).shapes) match(path, call);
    const std::set<size_t> counts = counts_over_padding(program, of_tokens_, left_out_);
    std::erase_if(packed_, [&](const auto& boundary) { return counts.contains(boundary.first); });
    const PackedBoundaries changed = go_on_from_samples(program, packed_);
    left_out_.insert(counts.begin(), counts.end());
    for (const auto& [b, parts] : packed_)
      if (!changed.contains(b)) left_out_.insert(b);
    std::erase_if(matched_, [&](const Matched& matched) { return left_out_.contains(matched.boundary); });
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
    const PackedParts places = places_of(batch_, whole, parts);
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
    matched_.push_back({boundary(path, call), place, tensors_[place.second]});
    matched_.back().tensor.call = static_cast<int>(call);
    return matched_.back().tensor;
  }

  void repeat(const CallShapes& path, size_t call, const std::vector<size_t>& calls) {
    if (!batch_.of_port) add(path, call, {0, path.tensors.at(calls[0])});
    for (size_t i = 0; batch_.of_port && i < calls.size(); ++i) add(path, calls[i], {i, path.tensors.at(call)});
  }

  // The port's batch: a tensor for each call of the reference.
  void divide(const CallShapes& path, size_t call, const std::vector<size_t>& calls, const PackedParts& places) {
    const bool padded = packed_shape(path.port.shapes.at(call), places) != path.port.shapes.at(call);
    for (size_t i = 0; i < calls.size(); ++i) {
      CandidateTensor& part = add(path, calls[i], {i, path.tensors.at(call)});
      part.shape = path.reference.shapes.at(calls[i]);
      part.load = [load = part.load, place = places.parts[i], shape = part.shape] {
        return axis_parts(load(), place).reshape(shape);
      };
      if (padded) of_tokens_.insert(boundary(path, calls[i]));
    }
  }

  // The reference's batch without its padding.
  void join(const CallShapes& path, size_t call, const std::vector<size_t>& calls, const PackedParts& places) {
    const Shape& batch = path.reference.shapes.at(call);
    std::vector<std::pair<Shape, std::function<at::Tensor()>>> loads;
    for (size_t i = 0; i < calls.size(); ++i)
      loads.emplace_back(cut(batch, places.parts[i]), tensors_[path.tensors.at(calls[i])].load);
    CandidateTensor& samples = add(path, call, {0, path.tensors.at(calls[0])});
    samples.shape = packed_shape(batch, places);
    samples.load = [loads, axis = places.axis] {
      std::vector<at::Tensor> parts;
      for (const auto& [shape, load] : loads) parts.push_back(load().reshape(shape));
      return pack(std::move(parts), axis);
    };
    packed_.emplace(boundary(path, call), places);
    if (samples.shape != batch) of_tokens_.insert(boundary(path, call));
  }

  const Program& program_;
  const Dump& dump_;
  const Tensors& tensors_;
  const std::set<std::string>& of_selections_;
  const RaggedBatch& batch_;
  std::vector<Matched> matched_;
  PackedBoundaries packed_;
  std::set<size_t> of_tokens_, left_out_;  // boundaries
  std::set<size_t> gone_;                  // the port's tensors of which there are others, or no boundary
};

}  // namespace

std::optional<PackedBoundaries> match_samples(Program& reference, const Dump& dump, const RecordedSide& port,
                                              std::vector<CandidateTensor>& tensors, const NameMap* map,
                                              std::vector<std::string>& notes) {
  const auto paths = call_shapes(reference, tensors, map);
  const RecordedSide recorded{&reference, &dump};
  const auto batch = find_ragged_batch(recorded, port, tensors, paths);
  if (!batch) return std::nullopt;
  const auto of_selections = paths_of_selections(reference);
  Matcher matcher(recorded, tensors, of_selections, *batch);
  PackedBoundaries packed = matcher.run(reference, paths);
  notes.push_back(fmt::format(
      "the {} ran {} samples as one batch padded to {} tokens, the {} each in a call of its own ({} tokens): {} values "
      "of samples are compared, {} that have padding otherwise are not",
      batch->of_port ? "port" : "reference", batch->size(), batch->padded, batch->of_port ? "reference" : "port",
      fmt::join(batch->tokens, ", "), matcher.matched(), matcher.left_out()));
  tensors = matcher.tensors();
  return packed;
}

}  // namespace parity
