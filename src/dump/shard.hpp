// Where a recording's process stood in a mesh of ranks, and how its tensors are divided over them (FORMAT.md, "Ranks").
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dump/dump.hpp"

namespace parity {

/// A grid of ranks; rank numbers count its places row-major, the last axis fastest.
struct Mesh {
  std::vector<std::pair<std::string, int64_t>> axes;  // name and number of ranks, outermost first

  bool operator==(const Mesh&) const = default;
  int64_t ranks() const;
  std::vector<int64_t> at(int64_t rank) const;
  int64_t rank(const std::vector<int64_t>& at) const;
  std::string text() const;              // "dp 2 x tp 4"
  std::string name(int64_t rank) const;  // "dp 0, tp 3"
};

/// What one axis of the mesh does to a tensor.
struct Placement {
  enum class Kind { open, replicated, split, partial };  // open: nobody said it
  Kind kind = Kind::open;
  int64_t axis = 0;      // of the tensor, when split; from the end when negative
  int64_t sections = 1;  // each of which is split by itself (fused query, key and value)

  bool operator==(const Placement&) const = default;
};
using Placements = std::vector<Placement>;  // one an axis of the mesh

/// "tp split(2), dp replicated"; open ones are left out.
std::string text_of(const Mesh& mesh, const Placements& placements);

struct Shard {
  Mesh mesh;
  std::vector<int64_t> at;                                   // this rank's coordinates
  std::vector<std::pair<std::string, Placements>> specs;     // by glob of paths, later ones win
  std::map<std::pair<std::string, int>, Placements> values;  // by path and call: what the tensor itself said

  Placements placements(const std::string& path, int call) const;
};

/// {"mesh": [[name, size], …], "at": [coordinate, …], "specs": [[glob, {axis: placement}], …]}. Throws Error, one line
/// that begins with `origin`, for anything else.
Shard read_shard(const nlohmann::json& text, const std::string& origin);

/// nullopt: recorded by a process that was no rank. Throws Error as read_shard.
std::optional<Shard> shard_of(const Dump& dump);

}  // namespace parity
