#include "calls/padding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "calls/call_shapes.hpp"
#include "calls/padding_counts.hpp"
#include "calls/padding_passes.hpp"
#include "trace/operator.hpp"

namespace parity {
namespace {

// Of a range, which is counted from the first on, whatever its elements stand for.
PackedParts of_range(const Shape& shape, PackedParts packed) {
  for (std::vector<AxisPart>& parts : packed.parts)
    for (AxisPart& part : parts) {
      const int64_t extent = shape[part.axis];
      part = {part.axis, extent, 0, extent / part.of * part.length};
    }
  return packed.parts.size() == 1 ? packed : PackedParts();
}

void keep_tokens(CandidateTensor& tensor, const PackedParts& parts) {
  tensor.shape = packed_shape(tensor.shape, parts);
  tensor.load = [load = tensor.load, parts] { return pack(load(), parts); };
}

class Unpadding {
 public:
  Unpadding(Program& reference, std::vector<CandidateTensor>& tensors, const std::vector<CallShapes>& paths,
            const std::set<std::string>& of_selections, const Padding& padding)
      : reference_(reference),
        tensors_(tensors),
        padding_(padding),
        paths_(paths),
        of_selections_(of_selections),
        named_(named_tensors(paths)) {}

  PartBoundaries run() {
    leave_out_what_has_no_counterpart();
    leave_out_counts();
    PartBoundaries padded;
    if (padding_.of_port) {
      cut_port();
    } else {
      padded = boundaries_to_cut();
      const PartBoundaries changed = go_on_from_parts(reference_, padded);
      for (const auto& [b, parts] : padded)
        if (!changed.contains(b)) leave_out(b);
      padded = changed;
    }
    size_t c = 0;
    std::erase_if(tensors_, [&](const CandidateTensor&) { return left_out_.contains(c++); });
    return padded;
  }

  std::string note() const {
    return fmt::format(
        "the {} pads {} tokens{} to {}: the {} are compared, {} tensors that have padding otherwise are not",
        padding_.of_port ? "port" : "reference", padding_.tokens, padding_.in_front ? " in front," : "",
        padding_.padded, padding_.tokens, left_out_.size());
  }

 private:
  void leave_out_what_has_no_counterpart() {
    for (const CallShapes& path : paths_)
      for (const auto& [call, c] : path.tensors) {
        if (path.own || !path.reference.shapes.contains(call)) continue;
        const Shape &mine = path.reference.shapes.at(call), &theirs = tensors_[c].shape;
        const Shape &padded = padding_.of_port ? theirs : mine, &other = padding_.of_port ? mine : theirs;
        const bool otherwise = !have_extents_alike(mine, theirs) && padded_otherwise(padded, other, padding_);
        if (otherwise || of_selections_.contains(path.name)) left_out_.insert(c);
      }
  }

  void leave_out_counts() {
    std::set<size_t> of_tokens, left_out;  // boundaries
    for (size_t b = 0; b < reference_.boundaries.size(); ++b) {
      const Boundary& boundary = reference_.boundaries[b];
      const auto name = named_.find({boundary.path, boundary.call});
      if (name == named_.end()) continue;
      if (left_out_.contains(name->second)) left_out.insert(b);
      if (!tokens_between(boundary.value.shape, tensors_[name->second].shape, padding_).parts.empty())
        of_tokens.insert(b);
    }
    for (const size_t b : counts_over_padding(reference_, of_tokens, left_out))
      if (const auto name = named_.find({reference_.boundaries[b].path, reference_.boundaries[b].call});
          name != named_.end())
        left_out_.insert(name->second);
  }

  void cut_port() {
    const KnownShapes known(reference_);
    for (const CallShapes& path : paths_)
      for (const auto& [call, c] : path.tensors) {
        const Shape& shape = tensors_[c].shape;
        PackedParts parts;
        if (!path.own && path.reference.shapes.contains(call))
          parts = tokens_of(shape, path.reference.shapes.at(call), padding_);
        else if (path.own && !known.has_extents(shape) && known.has_extents(without_padding(shape, padding_)))
          parts = tokens_of(shape, padding_);
        if (path.of_range) parts = of_range(shape, std::move(parts));
        if (!parts.parts.empty() && !left_out_.contains(c)) keep_tokens(tensors_[c], parts);
      }
  }

  // Those that the port has without padding, under their names or names of its own.
  PartBoundaries boundaries_to_cut() {
    KnownShapes own;
    for (const CallShapes& path : paths_)
      for (const auto& [call, c] : path.tensors)
        if (path.own) own.add(tensors_[c].shape);
    PartBoundaries padded;
    for (size_t b = 0; b < reference_.boundaries.size(); ++b) {
      const Shape& whole = reference_.boundaries[b].value.shape;
      if (!reference_.boundaries[b].comparable) continue;
      const auto name = named_.find({reference_.boundaries[b].path, reference_.boundaries[b].call});
      if (name != named_.end() && left_out_.contains(name->second)) continue;
      auto parts =
          name != named_.end() ? tokens_of(whole, tensors_[name->second].shape, padding_) : tokens_of(whole, padding_);
      if (parts.parts.empty() || (name == named_.end() && !own.has_extents(packed_shape(whole, parts)))) continue;
      if (is_range(reference_.boundaries[b].kind)) parts = of_range(whole, std::move(parts));
      if (!parts.parts.empty()) padded.emplace(b, std::move(parts));
    }
    return padded;
  }

  void leave_out(size_t b) {
    const auto name = named_.find({reference_.boundaries[b].path, reference_.boundaries[b].call});
    if (name != named_.end()) left_out_.insert(name->second);
  }

  Program& reference_;
  std::vector<CandidateTensor>& tensors_;
  const Padding padding_;
  const std::vector<CallShapes>& paths_;
  const std::set<std::string>& of_selections_;
  const NamedTensors named_;
  std::set<size_t> left_out_;  // tensors
};

}  // namespace

PartBoundaries leave_out_padding(Program& reference, const Dump& dump, const RecordedSide& port,
                                 std::vector<CandidateTensor>& tensors, const NameMap* map,
                                 std::vector<std::string>& notes) {
  const auto of_selections = paths_of_selections(reference);
  PartBoundaries left;
  const auto leave_out = [&](const std::vector<CallShapes>& paths) {
    const auto padding = find_padding({&reference, &dump}, port, tensors, paths, of_selections);
    if (!padding) return false;
    Unpadding unpadding(reference, tensors, paths, of_selections, *padding);
    left.merge(unpadding.run());
    notes.push_back(unpadding.note());
    return true;
  };
  const auto paths = call_shapes(reference, tensors, map);
  const auto alike = [](const CallShapes& path) { return !path.own && path.reference == path.port; };
  if (std::ranges::all_of(paths, alike) || leave_out(paths)) return left;
  // Tensors may go with each group, and then the places of those behind them change.
  for (size_t rounds = passes_that_differ_alike(paths).size(); rounds > 0; --rounds)
    if (std::ranges::none_of(passes_that_differ_alike(call_shapes(reference, tensors, map)), leave_out)) break;
  return left;
}

}  // namespace parity
