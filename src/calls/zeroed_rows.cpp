#include "calls/zeroed_rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "calls/call_shapes.hpp"
#include "calls/input_masks.hpp"
#include "calls/limits.hpp"
#include "calls/padding_counts.hpp"
#include "calls/padding_tokens.hpp"

namespace parity {
namespace {

class ZeroedRows {
 public:
  ZeroedRows(Program& reference, const Dump& dump, std::vector<CandidateTensor>& tensors, const NameMap* map,
             const RaggedBatch& batch)
      : reference_(reference),
        dump_(dump),
        tensors_(tensors),
        paths_(call_shapes(reference, tensors, map)),
        batch_(batch) {}

  // Names that both sides have say so, or, where there are none, what the port has under names of its own.
  bool are_there() const {
    double looked_at = 0;
    bool named = false;
    for (const auto& [c, b] : of_one_shape()) {
      const Value& mine = reference_.boundaries[b].value;
      if (mine.key.empty() || !may_tell(tensors_[c].dtype, mine.shape)) continue;
      named = true;
      if (is_left(tensors_[c].load()) != is_left(stored_value(dump_, mine))) return true;
      if (++looked_at == kCallLimits.paths) return false;
    }
    return !named && own_are_zeroed();
  }

  PartBoundaries run() {
    PartBoundaries packed;
    std::set<size_t> of_tokens, left_out = boundaries_of_selections();
    const auto of_names = of_one_shape();
    std::set<size_t> named;  // boundaries
    for (const auto& [c, b] : of_names) named.insert(b);
    const bool own = std::ranges::any_of(paths_, &CallShapes::own);
    for (size_t b = 0; b < reference_.boundaries.size(); ++b) {
      const Boundary& boundary = reference_.boundaries[b];
      const PackedParts places = places_by_shape(batch_, boundary.value.shape);
      if (boundary.comparable && !places.parts.empty() && (named.contains(b) || own))
        packed.emplace(b, places), of_tokens.insert(b);
    }
    for (const size_t b : left_out) packed.erase(b);
    const PartBoundaries changed = go_on_from_tokens(reference_, std::move(packed), of_tokens, left_out);
    std::set<size_t> gone;  // tensors
    for (const auto& [name, c] : named_tensors(paths_))
      if (const auto b = reference_.find(name.first, name.second); b && left_out.contains(*b)) gone.insert(c);
    for (const auto& [c, b] : of_names)
      if (changed.contains(b)) pack_port(c);
    for (const CallShapes& path : paths_)
      for (const auto& [call, c] : path.tensors)
        if (path.own) pack_port(c);
    size_t c = 0;
    left_out_ = std::erase_if(tensors_, [&](const CandidateTensor&) { return gone.contains(c++); });
    return changed;
  }

  std::string note() const {
    return fmt::format(
        "one side leaves the padding of {} samples ({} of {} tokens) as it is where the other computes on: {} values "
        "are compared without it, {} that have padding otherwise are not",
        batch_.size(), fmt::join(batch_.tokens, ", "), batch_.padded, packed_, left_out_);
  }

 private:
  // The port's tensors that have the shape of the reference's boundary of their name: padded, as far as shapes tell.
  std::vector<std::pair<size_t, size_t>> of_one_shape() const {
    std::vector<std::pair<size_t, size_t>> found;
    for (const auto& [name, c] : named_tensors(paths_))
      if (const auto b = reference_.find(name.first, name.second);
          b && reference_.boundaries[*b].value.shape == tensors_[c].shape && has_padding(tensors_[c].shape))
        found.emplace_back(c, *b);
    std::ranges::sort(found);
    return found;
  }

  // Experts choose among the padding's rows, too: they have others without.
  std::set<size_t> boundaries_of_selections() const {
    const std::set<std::string> paths = paths_of_selections(reference_);
    std::set<size_t> found;
    for (size_t b = 0; b < reference_.boundaries.size(); ++b)
      if (paths.contains(reference_.boundaries[b].path)) found.insert(b);
    return found;
  }

  bool has_padding(const Shape& shape) const { return !places_by_shape(batch_, shape).parts.empty(); }

  bool may_tell(at::ScalarType dtype, const Shape& shape) const {
    return at::isFloatingType(dtype) && has_padding(shape) &&
           static_cast<double>(c10::multiply_integers(shape)) <= kCallLimits.telling;
  }

  // Nothing but zeros. And the tokens are not.
  bool is_zeroed(const at::Tensor& whole) const {
    return is_zeroed(whole, pack(whole, places_by_shape(batch_, whole.sizes().vec())));
  }
  static bool is_zeroed(const at::Tensor& whole, const at::Tensor& seen) {
    const auto all = at::count_nonzero(whole).item<int64_t>();
    return all > 0 && all == at::count_nonzero(seen).item<int64_t>();
  }

  // Or what a layer makes of zeros: the same in every row.
  bool is_left(const at::Tensor& whole) const {
    const PackedParts tokens = places_by_shape(batch_, whole.sizes().vec());
    const at::Tensor seen = pack(whole, tokens);
    if (is_zeroed(whole, seen)) return true;
    const PackedParts padding = padding_beside(tokens);
    if (padding.parts.empty()) return false;
    const at::Tensor rest = pack(whole, padding), first = rest.narrow(padding.axis, 0, 1);
    return rest.size(padding.axis) > 1 && rest.eq(first).all().item<bool>() && !seen.eq(first).all().item<bool>();
  }

  // What each sample has behind its tokens or before them; no parts: of values with another axis than one of tokens.
  static PackedParts padding_beside(const PackedParts& tokens) {
    PackedParts padding{{}, tokens.axis};
    for (const std::vector<AxisPart>& part : tokens.parts) {
      if (part.size() == 1 && tokens.axis > 0) continue;  // the longest
      if (part.size() != 2 || part[1].axis != tokens.axis) return {};
      if (part[1].length < part[1].of) padding.parts.push_back({part[0], rest_of(part[1])});
    }
    return padding;
  }

  // Rows that are all alike say nothing where no name says of which value: an embedding's are.
  bool own_are_zeroed() const {
    bool port = false, reference = false;
    double looked_at = 0;
    for (const CallShapes& path : paths_)
      for (const auto& [call, c] : path.tensors)
        if (!port && may_tell(tensors_[c].dtype, tensors_[c].shape) && ++looked_at <= kCallLimits.paths)
          port = is_zeroed(tensors_[c].load());
    looked_at = 0;
    for (const Boundary& b : reference_.boundaries)
      if (!reference && b.comparable && !b.value.key.empty() && may_tell(b.value.dtype, b.value.shape) &&
          ++looked_at <= kCallLimits.paths)
        reference = is_zeroed(stored_value(dump_, b.value));
    return port != reference;
  }

  void pack_port(size_t c) {
    CandidateTensor& tensor = tensors_[c];
    const PackedParts places = places_by_shape(batch_, tensor.shape);
    if (places.parts.empty()) return;
    tensor.shape = packed_shape(tensor.shape, places);
    tensor.load = [load = tensor.load, places] { return pack(load(), places); };
    ++packed_;
  }

  Program& reference_;
  const Dump& dump_;
  std::vector<CandidateTensor>& tensors_;
  const std::vector<CallShapes> paths_;
  const RaggedBatch& batch_;
  size_t packed_ = 0, left_out_ = 0;  // tensors of the port
};

}  // namespace

std::optional<PartBoundaries> leave_out_zeroed_rows(Program& reference, const Dump& dump,
                                                    std::vector<CandidateTensor>& tensors, const NameMap* map,
                                                    std::vector<std::string>& notes) {
  for (const RaggedBatch& batch : masked_batches({&reference, &dump})) {
    ZeroedRows rows(reference, dump, tensors, map, batch);
    if (!rows.are_there()) continue;
    PartBoundaries packed = rows.run();
    notes.push_back(rows.note());
    return packed;
  }
  return std::nullopt;
}

}  // namespace parity
