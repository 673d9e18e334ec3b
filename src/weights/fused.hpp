// One side of the weight audit with what is known of its tensors, and the search for fused ones among them.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "weights/rows.hpp"
#include "weights/units.hpp"

namespace parity {

struct KnownSide {
  const WeightSide& side;
  std::vector<ParameterName> names;
  std::vector<Signature> signatures;
  std::vector<bool> matched, similar;                  // whole
  std::map<size_t, std::vector<Slice>> slices;         // of fused tensors, ascending, without gaps
  std::map<std::pair<size_t, int64_t>, RowSums> sums;  // by tensor and axis

  const Parameter& parameter(size_t i) const { return side.parameters()[i]; }
  size_t count() const { return side.parameters().size(); }
  const RowSums& rows(size_t tensor, int64_t axis) {
    const auto [at, fresh] = sums.try_emplace({tensor, axis});
    if (fresh) at->second = row_sums(side.load(tensor), axis);
    return at->second;
  }
  /// Not paired as a whole, and large enough to be told from chance.
  bool open(size_t i) const;
};

/// Reads every tensor of a side once.
KnownSide look_at(const WeightSide& side, const AuditProgress& progress);

/// Fills other.slices: which of its tensors are made of tensors of `mine` (q, k, v in one; all layers in one).
void find_parts(KnownSide& mine, KnownSide& other, const AuditProgress& progress);

/// What is fused in one block is fused in all, and a bias as its weight.
void spread_parts(KnownSide& known);

/// Names part `part` of `parts`: those of qkv are q, k and v; those of a stack of layers are its layers.
void name_part(Unit& unit, size_t part, size_t parts);

}  // namespace parity
