// Taking a whole apart as ranks hold it, and measuring how much of a difference another whole takes away.
#pragma once
#include <optional>
#include <vector>

#include "ranks/shards.hpp"

namespace parity {

/// The part of `whole` that belongs at each place of the grid; empty where its axes do not divide evenly.
std::vector<at::Tensor> parts_of_whole(const at::Tensor& whole, const Mesh& grid, const Placements& placements);

/// || value - expected ||^2 in fp64; infinite where that is not finite, or the shapes differ.
double part_distance(const at::Tensor& value, const at::Tensor& expected);

/// The order of the parts along `axis` of the grid, other than the one they are in, in which each lies nearest to the
/// part that belongs there; nullopt when there is none.
std::optional<std::vector<size_t>> other_order(const std::vector<at::Tensor>& parts,
                                               const std::vector<at::Tensor>& expected,
                                               const std::vector<std::vector<size_t>>& lines);

}  // namespace parity
