// The values of samples of several lengths: those of a batch without its padding beside those of single calls.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pair/candidate.hpp"
#include "pair/name_map.hpp"
#include "pair/padding_lengths.hpp"

namespace parity {

/// What the samples are of the reference's values, by boundary: one behind the other.
using PackedBoundaries = std::map<size_t, PackedParts>;

/// Finds a ragged batch (pair/ragged_batch.hpp). Of the reference: the port's tensors are joined, sample behind sample,
/// and the program goes on from samples (below) at the boundaries that it gives. Of the port: its batch is taken apart.
/// Left out are tensors that have padding otherwise (experts' rows, tables of positions), and values of the reference
/// that are written to in place. nullopt: there is none, and nothing changed. `map` may be null; `dump`: the
/// reference's. `notes`: says which side pads, and how much was left out.
std::optional<PackedBoundaries> match_samples(Program& reference, const Dump& dump, const RecordedSide& port,
                                              std::vector<CandidateTensor>& tensors, const NameMap* map,
                                              std::vector<std::string>& notes);

/// These boundaries are of the samples alone, and the program goes on from them and from the padding that was recorded,
/// or, where it was not, computed. Values that are written to in place stay whole. Boundaries keep their indices.
/// Returns those that changed.
PackedBoundaries go_on_from_samples(Program& program, const PackedBoundaries& packed);

}  // namespace parity
