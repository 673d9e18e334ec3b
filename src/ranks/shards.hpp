// A tensor that the ranks of a parallel run hold in parts or copies, put together.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dump/shard.hpp"

namespace parity {

/// One tensor as the ranks have it. A part is numbered by its place in `grid`.
struct ShardedTensor {
  Mesh mesh, grid;                     // of the run; of the ranks that have the tensor (the same axes, fewer ranks)
  std::vector<int64_t> ranks;          // by place in the grid: the number in the mesh
  Placements placements;               // none of them open; axes of the tensor counted from the front
  bool by_shape = false;               // they were read off shapes and contents, not said by the recordings
  bool agree = true;                   // what is replicated is bitwise equal
  std::vector<at::ScalarType> dtypes;  // and what follows: by place in the grid
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::function<at::Tensor()>> load;
  std::vector<std::function<at::Tensor()>> weight;  // of the module whose result this is; undefined where it has none

  std::vector<at::Tensor> parts() const;
  at::Tensor whole() const;
  /// Axes of the grid with more than one rank along which the tensor is placed so.
  std::vector<size_t> axes(Placement::Kind kind) const;
  std::string name(size_t place) const { return mesh.name(ranks[place]); }
  /// Places of the ranks that differ along `axis` alone, one list for each of the others' places.
  std::vector<std::vector<size_t>> lines(size_t axis) const;
};

/// Parts by their place in the grid -> the whole: split ones are concatenated, section by section, in the order of the
/// axis; of copies the first is taken; partial sums are added in fp64 and rounded once. Parts of several dtypes are
/// promoted.
at::Tensor join_parts(const Mesh& grid, const Placements& placements, std::vector<at::Tensor> parts);

/// Its shape; nullopt where the parts do not fit together so.
std::optional<std::vector<int64_t>> joined_shape(const Mesh& grid, const Placements& placements,
                                                 std::vector<std::vector<int64_t>> shapes);

}  // namespace parity
