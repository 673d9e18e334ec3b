// The ranks of a parallel run as one side of a comparison: the files that they wrote, opened and joined.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jobs/sides.hpp"

namespace parity {

struct ShardFiles {
  std::vector<std::filesystem::path> files;
  std::vector<Shard> shards;  // of a manifest, one a file; empty: the recordings say it themselves
};

/// The ranks' files, when `place` stands for several: a pattern with * or ? in its last part ("run/cand.rank*.h5"), a
/// folder of recordings (.h5, .hdf5), or a manifest: JSON {"mesh": [[name, size], …], "ranks": [{"file": "…", "at":
/// [coordinate, …]}, …], "specs": [[glob, {axis: placement}], …]} beside files that do not say it. nullopt: one file,
/// or a folder of another kind. Throws Error, one line: a pattern that nothing matches, a manifest that is none.
std::optional<ShardFiles> shard_files(const std::filesystem::path& place);

/// Opens them as one side, its tensors still apart (OpenedSide::ranks); the first rank's recording speaks for all.
/// Throws Error, one line: a file that was not recorded by a rank, meshes that differ, a rank that is missing or there
/// twice. `open`: opens one of them.
OpenedSide open_shards(const std::filesystem::path& place, const ShardFiles& files,
                       const std::function<OpenedSide(const std::filesystem::path&)>& open);

/// Throws Error when the side is one rank of several alone.
void refuse_lone_shard(const OpenedSide& side);

/// Joins the candidate's ranks, if it has several, as the reference has their tensors; OpenedSide::notes say how.
void join_candidate(Sides& sides);

}  // namespace parity
