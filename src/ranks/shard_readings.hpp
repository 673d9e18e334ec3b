// How a tensor's parts lie in the whole, where no recording says it.
#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "ranks/join_shards.hpp"

namespace parity {

/// How often an axis of the mesh is seen to do something: what it does to most tensors decides for those that their
/// shapes and copies leave open.
using PlacementVotes = std::map<std::tuple<size_t, Placement::Kind, int64_t>, size_t>;
void vote_placements(const ShardedTensor& tensor, PlacementVotes& votes);

/// Is what these placements call copies bitwise equal?
bool copies_agree(const ShardedTensor& tensor, const Placements& placements);

/// Counts the axes of said placements from the front, and notes whether one is open.
void begin_reading(ShardedTensor& tensor);

/// The readings of the open placements whose joined shape is the whole's; where there are several, those among them
/// whose copies agree. None open, none that fits, or `whole` nullptr: open ones are copies.
std::vector<Placements> placement_readings(const ShardedTensor& tensor, const WholeTensor* whole);

/// Settles `tensor` on the one that has most votes, and among equals on that whose values come nearest to the whole's.
/// Where the whole is stored, an open split along sections of an axis is told from one along the axis. False: neither
/// votes nor values tell them apart.
bool settle_reading(ShardedTensor& tensor, const std::vector<Placements>& among, const WholeTensor* whole,
                    const PlacementVotes& votes);

}  // namespace parity
