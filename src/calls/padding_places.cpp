#include "calls/padding_places.hpp"

#include <ATen/ops/broadcast_tensors.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <array>
#include <map>

#include "calls/input_masks.hpp"
#include "calls/limits.hpp"
#include "measure/measure.hpp"
#include "pair/limits.hpp"

namespace parity {
namespace {

class PaddingPlaces {
 public:
  explicit PaddingPlaces(const PaddedSides& sides) : sides_(sides) {}

  // Where the first values that agree have the padding, if it is one: what is masked, or the same in every row.
  std::optional<Padding> by_first_values(Padding padding) const {
    std::optional<Padding> found;
    size_t boundaries = 0;
    for (size_t b = 0; b < sides_.reference.program->boundaries.size() && boundaries < kCallLimits.padded; ++b) {
      size_t looked_at = 0;
      for (const size_t c : fitting(sides_.reference.program->boundaries[b], padding)) {
        const at::Tensor mine = stored_value(*sides_.reference.dump, sides_.reference.program->boundaries[b].value),
                         theirs = sides_.tensors[c].load();
        const auto agreeing = where_they_agree(padding, mine, theirs);
        if (agreeing && !found && has_mask_of(padding.of_port ? sides_.port : sides_.reference, *agreeing))
          return agreeing;
        if (agreeing && is_constant(*agreeing, mine, theirs)) return agreeing;
        if (agreeing) found = agreeing;
        if (agreeing || ++looked_at == kCallLimits.padded) break;
      }
      boundaries += looked_at > 0 || found;
    }
    return std::nullopt;
  }

  // Where in joint sequences the padding lies: as the first of their values say that agree.
  void find_joint(Padding& padding) const {
    std::map<int64_t, double> looked_at;  // by the number of others
    for (const Boundary& b : sides_.reference.program->boundaries)
      for (const size_t c : named_as(b)) {
        const Padding joint = with_joint(b.value.shape, sides_.tensors[c].shape, padding);
        if (joint.joint.size() != padding.joint.size() + 1 || !is_stored(b, c, joint)) continue;
        const auto others = std::ranges::find_if(joint.joint, [&](const auto& one) {
                              return !padding.joint.contains(one.first);
                            })->first;
        if (++looked_at[others] > kCallLimits.padded) continue;
        const at::Tensor mine = stored_value(*sides_.reference.dump, b.value), theirs = sides_.tensors[c].load();
        for (const int64_t hole : {padding.tokens + others, padding.tokens, others, int64_t{0}}) {
          Padding tried = padding;
          tried.joint[others] = hole;
          if (!agree(tried, mine, theirs)) continue;
          padding.joint.emplace(others, hole);
          break;
        }
      }
  }

 private:
  // Tensors of its name, or of names of the port's own.
  std::vector<size_t> named_as(const Boundary& boundary) const {
    const auto named = sides_.named.find({boundary.path, boundary.call});
    return named != sides_.named.end() ? std::vector{named->second} : sides_.own;
  }

  bool is_stored(const Boundary& boundary, size_t c, const Padding& padding) const {
    return !tokens_between(boundary.value.shape, sides_.tensors[c].shape, padding).parts.empty() &&
           boundary.comparable && !boundary.value.key.empty() && at::isFloatingType(boundary.value.dtype) &&
           at::isFloatingType(sides_.tensors[c].dtype);
  }

  // Tensors that may be this boundary's.
  std::vector<size_t> fitting(const Boundary& boundary, const Padding& padding) const {
    std::vector<size_t> found = named_as(boundary);
    std::erase_if(found, [&](size_t c) { return !is_stored(boundary, c, padding); });
    return found;
  }

  static bool agree(const Padding& padding, const at::Tensor& mine, const at::Tensor& theirs) {
    const auto parts = tokens_between(mine.sizes().vec(), theirs.sizes().vec(), padding);
    if (parts.parts.empty()) return false;
    const auto pair = at::broadcast_tensors(
        {padding.of_port ? mine : pack(mine, parts), padding.of_port ? pack(theirs, parts) : theirs});
    return measure_sums(pair[0], pair[1]).rel_l2.value_or(1) < kPairLimits.content.same;
  }

  // Before or behind, if the two agree one way alone.
  static std::optional<Padding> where_they_agree(Padding padding, const at::Tensor& mine, const at::Tensor& theirs) {
    std::array<bool, 2> agrees{};
    for (const bool in_front : {false, true}) {
      padding.in_front = in_front;
      agrees[in_front] = agree(padding, mine, theirs);
    }
    if (agrees[0] == agrees[1]) return std::nullopt;
    padding.in_front = agrees[1];
    return padding;
  }

  // The same in every row of the padding, of which there are several.
  static bool is_constant(const Padding& padding, const at::Tensor& mine, const at::Tensor& theirs) {
    const auto parts = tokens_between(mine.sizes().vec(), theirs.sizes().vec(), padding);
    if (parts.parts[0].size() != 1 || padding.padded < padding.tokens + 2) return false;
    const at::Tensor& whole = padding.of_port ? theirs : mine;
    const AxisPart rest = rest_of(parts.parts[0][0]);
    const int64_t rows = parts.parts[0][0].of / padding.padded;  // of a batch, for each token
    const at::Tensor padded = axis_part(whole, rest).unflatten(rest.axis, {-1, rest.length / rows, rows});
    return at::equal(padded.narrow(rest.axis + 1, 0, 1).expand(padded.sizes()), padded);
  }

  const PaddedSides& sides_;
};

}  // namespace

std::optional<Padding> padding_by_values(const Padding& lengths, const PaddedSides& sides) {
  const PaddingPlaces places(sides);
  auto padding = places.by_first_values(lengths);
  if (padding) places.find_joint(*padding);
  return padding;
}

}  // namespace parity
