#include "jobs/shard_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/error.hpp"
#include "core/glob.hpp"
#include "ranks/partial_sums.hpp"

namespace parity {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uintmax_t kLargestManifest = 1 << 22;  // bytes; a JSON beyond it is another tool's dump

std::vector<fs::path> files_in(const fs::path& folder, const std::function<bool(const fs::path&)>& wanted) {
  std::vector<fs::path> files;
  std::error_code problem;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, problem), end; !problem && at != end;
       at.increment(problem))
    if (at->is_regular_file(problem) && wanted(at->path())) files.push_back(folder / at->path().filename());
  if (problem) throw Error(fmt::format("{}: cannot be listed ({})", folder.string(), problem.message()));
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<ShardFiles> of_manifest(const fs::path& file) {
  std::error_code problem;
  if (file.extension() != ".json" || fs::file_size(file, problem) > kLargestManifest || problem) return std::nullopt;
  std::ifstream stream(file);
  const json text = json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!text.is_object() || !text.contains("mesh") || !text.contains("ranks")) return std::nullopt;
  ShardFiles found;
  if (!text["ranks"].is_array()) throw Error(fmt::format("{}: 'ranks' is not a list of files", file.string()));
  for (const json& rank : text["ranks"]) {
    if (!rank.is_object() || !rank.contains("file") || !rank["file"].is_string())
      throw Error(fmt::format("{}: an entry of 'ranks' has no 'file'", file.string()));
    const json own{
        {"mesh", text["mesh"]}, {"at", rank.value("at", json())}, {"specs", text.value("specs", json::array())}};
    found.files.push_back(file.parent_path() / rank["file"].get<std::string>());
    found.shards.push_back(read_shard(own, file.string()));
  }
  if (found.files.empty()) throw Error(fmt::format("{}: 'ranks' names no file", file.string()));
  return found;
}

bool is_recording_name(const fs::path& file) { return file.extension() == ".h5" || file.extension() == ".hdf5"; }

Shard shard_in(const OpenedSide& side) {
  const auto shard = side.dump ? shard_of(*side.dump) : std::nullopt;
  if (!shard)
    throw Error(
        fmt::format("{}: does not say which rank of a mesh recorded it; record it with shard=, or write a manifest "
                    "(probes/README.md, Ranks)",
                    side.file.string()));
  if (side.sketched())
    throw Error(fmt::format("{}: holds sketches; python -m parity_probe sketch adds those of several ranks up",
                            side.file.string()));
  return *shard;
}

std::function<at::Tensor(const std::string&)> weights_of(const OpenedSide& side) {
  if (!side.dump) return nullptr;
  return [dump = side.dump.get()](const std::string& name) {
    return dump->has_weight(name) ? dump->weight(name) : at::Tensor();
  };
}

// By their number in the mesh; each of them once.
void put_rank(std::vector<RankRecording>& ranks, RankRecording rank, const fs::path& place) {
  const Mesh& mesh = rank.shard.mesh;
  const auto first = std::find_if(ranks.begin(), ranks.end(), [](const auto& r) { return !r.file.empty(); });
  if (first != ranks.end() && first->shard.mesh != mesh)
    throw Error(fmt::format("{}: its mesh is {}, that of {} is {}; give the files of one run", rank.file, mesh.text(),
                            first->file, first->shard.mesh.text()));
  if (ranks.empty()) ranks.resize(static_cast<size_t>(mesh.ranks()));
  RankRecording& there = ranks[static_cast<size_t>(mesh.rank(rank.shard.at))];
  if (!there.file.empty())
    throw Error(fmt::format("{}: was recorded by the rank {}, as was {}; give the files of one run in {}", rank.file,
                            mesh.name(mesh.rank(rank.shard.at)), there.file, place.string()));
  there = std::move(rank);
}

// The reference's values under the names that the candidate has them by, in its layout.
WholeTensors wholes_of(const Sides& sides) {
  WholeTensors wholes;
  const OpenedSide& reference = sides.reference;
  const auto enter = [&](const std::string& path, int call, const std::vector<int64_t>& shape,
                         const std::function<at::Tensor()>& value) {
    const auto target = sides.map ? sides.map->find(path, call) : std::nullopt;
    const Layout layout = target ? target->layout : Layout{};
    if (!layout.view.empty() || !layout.reshape.empty()) return;  // shapes that are not the reference's, permuted
    const at::Tensor wide = layout.fit_candidate(at::scalar_tensor(0).expand(shape), {}).tensor;
    if (!wide.defined()) return;
    std::function<at::Tensor()> laid_out;
    if (value) laid_out = [layout, value] { return layout.to_candidate(value()); };
    wholes.emplace(counterpart_of(target, path, call), WholeTensor{wide.sizes().vec(), laid_out});
  };
  if (reference.program.boundaries.empty())
    for (const CandidateTensor& tensor : reference.tensors) enter(tensor.path, tensor.call, tensor.shape, tensor.load);
  for (const Boundary& b : reference.program.boundaries) {
    if (!b.comparable) continue;
    std::function<at::Tensor()> value;
    if (!b.value.key.empty()) value = [dump = reference.dump.get(), v = b.value] { return stored_value(*dump, v); };
    enter(b.path, b.call, b.value.shape, value);
  }
  return wholes;
}

// Modules' results and points alone: ops of the two programs may have one name and be two ops.
std::map<size_t, size_t> counterparts_of(const Sides& sides) {
  std::map<std::pair<std::string, int>, size_t> names;
  for (size_t c = 0; c < sides.candidate.tensors.size(); ++c)
    if (const CandidateTensor& tensor = sides.candidate.tensors[c]; !tensor.of_op)
      names.emplace(std::pair(tensor.path, tensor.call), c);
  std::map<size_t, size_t> counterparts;
  for (size_t b = 0; b < sides.reference.program.boundaries.size(); ++b) {
    const Boundary& boundary = sides.reference.program.boundaries[b];
    const auto target = sides.map ? sides.map->find(boundary.path, boundary.call) : std::nullopt;
    const auto found = names.find(counterpart_of(target, boundary.path, boundary.call));
    if (found != names.end() && boundary.comparable) counterparts.emplace(b, found->second);
  }
  return counterparts;
}

}  // namespace

std::optional<ShardFiles> shard_files(const fs::path& place) {
  std::error_code problem;
  const std::string last = place.filename().string();
  if (!fs::exists(place, problem) && last.find_first_of("*?") != std::string::npos) {
    ShardFiles found;
    found.files = files_in(place.parent_path(),
                           [&](const fs::path& file) { return matches_layer(file.filename().string(), last); });
    if (found.files.empty()) throw Error(fmt::format("{}: no file is called so", place.string()));
    return found;
  }
  if (!fs::is_directory(place, problem)) return of_manifest(place);
  ShardFiles found;
  found.files = files_in(place, is_recording_name);
  return found.files.empty() ? std::nullopt : std::optional(found);
}

OpenedSide open_shards(const fs::path& place, const ShardFiles& files,
                       const std::function<OpenedSide(const fs::path&)>& open) {
  OpenedSide side;
  side.file = place;
  std::map<int64_t, std::shared_ptr<OpenedSide>> opened;
  for (size_t f = 0; f < files.files.size(); ++f) {
    auto one = std::make_shared<OpenedSide>(open(files.files[f]));
    RankRecording rank{files.shards.empty() ? shard_in(*one) : files.shards[f], std::move(one->tensors),
                       files.files[f].string(), weights_of(*one)};
    opened[rank.shard.mesh.rank(rank.shard.at)] = one;
    put_rank(side.ranks, std::move(rank), place);
  }
  const Mesh mesh = side.ranks[static_cast<size_t>(opened.begin()->first)].shard.mesh;
  for (size_t r = 0; r < side.ranks.size(); ++r)
    if (side.ranks[r].file.empty())
      throw Error(fmt::format("{}: the mesh is {}, and the rank {} is missing", place.string(), mesh.text(),
                              mesh.name(static_cast<int64_t>(r))));
  OpenedSide& first = *opened.begin()->second;
  side.dump = std::move(first.dump);
  side.set = std::move(first.set);
  side.program = std::move(first.program);
  for (auto& [rank, one] : opened) {
    if (rank > 0 && one->dump && !one->dump->complete())
      side.notes.push_back(fmt::format("{}: the recording was interrupted", one->file.string()));
    side.other_ranks.push_back(std::move(one));
  }
  return side;
}

void refuse_lone_shard(const OpenedSide& side) {
  const auto shard = side.dump && !side.sketched() ? shard_of(*side.dump) : std::nullopt;
  if (!shard || shard->mesh.ranks() == 1) return;
  throw Error(fmt::format(
      "{}: was recorded by the rank {} of {} ({}); give all of them, as a pattern ('cand.rank*.h5') or "
      "their folder",
      side.file.string(), shard->mesh.name(shard->mesh.rank(shard->at)), shard->mesh.ranks(), shard->mesh.text()));
}

void join_candidate(Sides& sides) {
  OpenedSide& candidate = sides.candidate;
  if (candidate.ranks.empty()) return;
  const WholeTensors wholes = wholes_of(sides);
  candidate.tensors = join_shards(candidate.ranks, wholes, candidate.notes);
  read_partial_sums(sides.reference.program, counterparts_of(sides), wholes, candidate.tensors, candidate.notes);
}

}  // namespace parity
