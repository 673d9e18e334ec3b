#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "calls/packed_batch.hpp"
#include "calls/padding_counts.hpp"
#include "pair/readings.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

using Tensors = std::vector<CandidateTensor>;

class PackedMatcher {
 public:
  PackedMatcher(Program& reference, Tensors& tensors, const std::vector<CallShapes>& paths, const RaggedBatch& batch)
      : program_(reference),
        tensors_(tensors),
        paths_(paths),
        batch_(batch),
        of_selections_(paths_of_selections(reference)) {}

  PartBoundaries run() {
    for (const CallShapes& path : paths_)
      for (const auto& [call, c] : path.tensors)
        if (!path.own)
          match(path, call, c);
        else if (batch_.of_port)
          pack_own(c);
    if (!batch_.of_port) pack_for_own();
    const PartBoundaries changed = go_on_from_tokens(program_, std::move(packed_), of_tokens_, left_out_);
    leave_out();
    return changed;
  }

  std::string note() const {
    const char *one = batch_.of_port ? "port" : "reference", *other = batch_.of_port ? "reference" : "port";
    return fmt::format(
        "the {} ran {} samples as one batch padded to {} tokens, the {} one behind the other without padding ({} "
        "tokens): {} values of samples are compared, {} that have padding otherwise are not",
        one, batch_.size(), batch_.padded, other, fmt::join(batch_.tokens, ", "), named_ + own_, left_out_.size());
  }

 private:
  void match(const CallShapes& path, size_t call, size_t c) {
    const auto mine = path.reference.shapes.find(call);
    const Shape& theirs = tensors_[c].shape;
    if (mine == path.reference.shapes.end() || mine->second == theirs) return;
    const size_t b = *program_.find(path.name, static_cast<int>(call));
    boundary_of_.emplace(c, b);
    const Shape &whole = batch_.of_port ? theirs : mine->second, &other = batch_.of_port ? mine->second : theirs;
    const PackedParts places = path.of_range || !path.one_dtype || of_selections_.contains(path.name)
                                   ? PackedParts()
                                   : places_behind(batch_, whole, other);
    if (places.parts.empty()) {
      if (is_op_path(path.name) || has_all_tokens(other)) left_out_.insert(b);
      return;
    }
    of_tokens_.insert(b), ++named_;
    if (batch_.of_port) return pack_port(c, places, other);
    packed_.emplace(b, places);
    const Shape packed = packed_shape(whole, places);
    if (longer_axes(packed) == longer_axes(other)) reshape(c, packed);
  }

  bool has_all_tokens(const Shape& shape) const {
    int64_t all = 0;
    for (const int64_t tokens : batch_.tokens) all += tokens;
    return std::ranges::count(shape, all) > 0;
  }

  void reshape(size_t c, const Shape& shape) {
    tensors_[c].shape = shape;
    tensors_[c].load = [load = tensors_[c].load, shape] { return load().reshape(shape); };
  }

  // `shape`: of the same extents.
  void pack_port(size_t c, const PackedParts& places, const Shape& shape) {
    const Shape packed = packed_shape(tensors_[c].shape, places);
    tensors_[c].shape = packed;
    tensors_[c].load = [load = tensors_[c].load, places] { return pack(load(), places); };
    if (longer_axes(packed) == longer_axes(shape)) reshape(c, shape);
  }

  // Where its samples, and not the whole, have extents that the reference has.
  void pack_own(size_t c) {
    const Shape whole = tensors_[c].shape;
    const PackedParts places = places_by_shape(batch_, whole);
    if (places.parts.empty() || known_.has_extents(whole)) return;
    const Shape packed = packed_shape(whole, places);
    if (known_.has_extents(packed)) pack_port(c, places, packed), ++own_;
  }

  // Of the values that the port has under names of its own, as far as shapes tell: all tokens before the last alone,
  // which an engine has, too, of modules before the logits.
  void pack_for_own() {
    const NamedTensors named = named_tensors(paths_);
    std::map<Shape, size_t> own;  // and how many tensors have it
    for (const CallShapes& path : paths_)
      for (const auto& [call, shape] : path.port.shapes) own[shape] += path.own;
    std::set<Shape> fitting;
    for (size_t b = 0; b < program_.boundaries.size(); ++b) {
      const Boundary& boundary = program_.boundaries[b];
      if (!boundary.comparable || named.contains({boundary.path, boundary.call})) continue;
      for (const bool last : {false, true})
        for (const auto& [shape, tensors] : own) {
          if (tensors == 0 || boundary.value.shape == shape || packed_.contains(b)) continue;
          if (last && is_op_path(boundary.path)) continue;
          const PackedParts places = places_behind(batch_, boundary.value.shape, shape, last);
          if (places.parts.empty()) continue;
          packed_.emplace(b, places), of_tokens_.insert(b);
          if (fitting.insert(shape).second) own_ += tensors;
        }
    }
  }

  void leave_out() {
    size_t c = 0;
    std::erase_if(tensors_, [&](const CandidateTensor&) {
      const auto boundary = boundary_of_.find(c++);
      return boundary != boundary_of_.end() && left_out_.contains(boundary->second);
    });
  }

  Program& program_;
  Tensors& tensors_;
  const std::vector<CallShapes>& paths_;
  const RaggedBatch& batch_;
  const std::set<std::string> of_selections_;
  const KnownShapes known_{program_};
  std::map<size_t, size_t> boundary_of_;  // by the port's tensor of its name
  PartBoundaries packed_;
  std::set<size_t> of_tokens_, left_out_;  // boundaries
  size_t named_ = 0, own_ = 0;             // tensors of the port that are of samples
};

}  // namespace

std::optional<PartBoundaries> match_packed(Program& reference, const Dump& dump, const RecordedSide& port,
                                           std::vector<CandidateTensor>& tensors, const std::vector<CallShapes>& paths,
                                           std::vector<std::string>& notes) {
  const RecordedSide recorded{&reference, &dump};
  const auto found = find_packed_batch(recorded, port, paths);
  if (!found) return std::nullopt;
  const RaggedBatch batch = in_order_of_values(*found, recorded, tensors, paths);
  PackedMatcher matcher(reference, tensors, paths, batch);
  PartBoundaries packed = matcher.run();
  notes.push_back(matcher.note());
  return packed;
}

}  // namespace parity
