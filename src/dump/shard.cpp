#include "dump/shard.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "core/error.hpp"
#include "core/glob.hpp"
#include "core/plain.hpp"

namespace parity {
namespace {

using nlohmann::json;

constexpr int64_t kMostRanks = 1 << 16;  // more is no mesh, but a damaged file
constexpr int64_t kMostTensorAxes = 64;  // of a tensor: as LibTorch

[[noreturn]] void unusable(const std::string& origin, const std::string& what) {
  throw Error(fmt::format("{}: its place in a mesh of ranks cannot be read: {}", origin, what));
}

bool is_whole_number(const json& value, int64_t least, int64_t most) {
  return value.is_number_integer() && value.get<int64_t>() >= least && value.get<int64_t>() <= most;
}

Mesh mesh_of(const json& text, const std::string& origin) {
  Mesh mesh;
  if (!text.is_array() || text.empty()) unusable(origin, "'mesh' is not a list of [axis, ranks]");
  for (const json& axis : text) {
    if (!axis.is_array() || axis.size() != 2 || !axis[0].is_string() || !is_whole_number(axis[1], 1, kMostRanks))
      unusable(origin, "'mesh' is not a list of [axis, ranks]");
    mesh.axes.emplace_back(plain(axis[0].get<std::string>()), axis[1].get<int64_t>());
    if (mesh.ranks() > kMostRanks) unusable(origin, fmt::format("'mesh' has more than {} ranks", kMostRanks));
  }
  return mesh;
}

// "split(2,3)" -> {2, 3}.
std::optional<Placement> split_of(std::string_view text) {
  constexpr std::string_view kBegin = "split(";
  if (!text.starts_with(kBegin) || !text.ends_with(")")) return std::nullopt;
  Placement placement{Placement::Kind::split};
  const char* end = text.data() + text.size() - 1;
  std::from_chars_result read = std::from_chars(text.data() + kBegin.size(), end, placement.axis);
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == ',')
    read = std::from_chars(read.ptr + 1, end, placement.sections);
  const bool fits = read.ec == std::errc() && read.ptr == end && placement.sections > 0 &&
                    placement.axis < kMostTensorAxes && placement.axis >= -kMostTensorAxes;
  return fits ? std::optional(placement) : std::nullopt;
}

std::optional<Placement> placement_of(const json& text) {
  if (!text.is_string()) return std::nullopt;
  const std::string name = text.get<std::string>();
  if (name == "replicated") return Placement{Placement::Kind::replicated};
  if (name == "partial") return Placement{Placement::Kind::partial};
  return split_of(name);
}

Placements placements_of(const json& spec, const Mesh& mesh, const std::string& origin) {
  Placements out(mesh.axes.size());
  if (!spec.is_object()) unusable(origin, "placements are not an object of axes");
  for (const auto& [axis, text] : spec.items()) {
    const auto found = std::find_if(mesh.axes.begin(), mesh.axes.end(), [&](const auto& a) { return a.first == axis; });
    if (found == mesh.axes.end())
      unusable(origin, fmt::format("placements name the axis '{}', and the mesh is {}", plain(axis), mesh.text()));
    const auto placement = placement_of(text);
    if (!placement)
      unusable(origin, fmt::format("the placement {} is none of replicated, split(AXIS), split(AXIS,SECTIONS), partial",
                                   plain(text.dump())));
    out[static_cast<size_t>(found - mesh.axes.begin())] = *placement;
  }
  return out;
}

std::string output_name(const std::string& path, size_t output) {
  return output == 0 ? path : fmt::format("{}[{}]", path, output);
}

std::pair<std::string, int> name_of(const json& event) { return {event.value("path", ""), event.value("call", 0)}; }

// Of modules' results and of points; load_program has checked the events.
void read_values(Shard& shard, const Dump& dump) {
  std::map<int64_t, std::pair<std::string, int>> calls;
  const std::string origin = dump.file().string();
  for (const json& event : dump.events()) {
    const std::string kind = event["e"];
    if (kind == "call") calls[event.value("id", int64_t{-1})] = name_of(event);
    if (kind == "point" && event.contains("shard"))
      shard.values[name_of(event)] = placements_of(event["shard"], shard.mesh, origin);
    if (kind != "ret" || !event.contains("outputs")) continue;
    const auto& [path, call] = calls[event.value("id", int64_t{-1})];
    for (size_t i = 0; i < event["outputs"].size(); ++i)
      if (const json& output = event["outputs"][i]; output.is_object() && output.contains("shard"))
        shard.values[{output_name(path, i), call}] = placements_of(output["shard"], shard.mesh, origin);
  }
}

}  // namespace

int64_t Mesh::ranks() const {
  int64_t product = 1;
  for (const auto& [name, size] : axes) product *= size;
  return product;
}

std::vector<int64_t> Mesh::at(int64_t rank) const {
  std::vector<int64_t> at(axes.size());
  for (size_t a = axes.size(); a-- > 0; rank /= axes[a].second) at[a] = rank % axes[a].second;
  return at;
}

int64_t Mesh::rank(const std::vector<int64_t>& at) const {
  int64_t rank = 0;
  for (size_t a = 0; a < axes.size(); ++a) rank = rank * axes[a].second + at[a];
  return rank;
}

std::string Mesh::text() const {
  std::vector<std::string> out;
  for (const auto& [name, size] : axes) out.push_back(fmt::format("{} {}", name, size));
  return fmt::format("{}", fmt::join(out, " x "));
}

std::string Mesh::name(int64_t rank) const {
  std::vector<std::string> out;
  const std::vector<int64_t> place = at(rank);
  for (size_t a = 0; a < axes.size(); ++a) out.push_back(fmt::format("{} {}", axes[a].first, place[a]));
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string text_of(const Mesh& mesh, const Placements& placements) {
  std::vector<std::string> out;
  for (size_t a = 0; a < placements.size(); ++a) {
    const Placement& p = placements[a];
    const std::string sections = p.sections == 1 ? "" : fmt::format(",{}", p.sections);
    if (p.kind == Placement::Kind::split)
      out.push_back(fmt::format("{} split({}{})", mesh.axes[a].first, p.axis, sections));
    else if (p.kind != Placement::Kind::open)
      out.push_back(mesh.axes[a].first + (p.kind == Placement::Kind::partial ? " partial" : " replicated"));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

Placements Shard::placements(const std::string& path, int call) const {
  Placements out(mesh.axes.size());
  const auto enter = [&](const Placements& more) {
    for (size_t a = 0; a < out.size(); ++a)
      if (more[a].kind != Placement::Kind::open) out[a] = more[a];
  };
  for (const auto& [glob, placements] : specs)
    if (matches_layer(path, glob)) enter(placements);
  if (const auto own = values.find({path, call}); own != values.end()) enter(own->second);
  return out;
}

Shard read_shard(const json& text, const std::string& origin) {
  Shard shard;
  if (!text.is_object() || !text.contains("mesh")) unusable(origin, "it is not an object with 'mesh'");
  shard.mesh = mesh_of(text["mesh"], origin);
  const json at = text.value("at", json());
  if (!at.is_array() || at.size() != shard.mesh.axes.size()) unusable(origin, "'at' is not one coordinate an axis");
  for (size_t a = 0; a < at.size(); ++a) {
    if (!is_whole_number(at[a], 0, shard.mesh.axes[a].second - 1))
      unusable(origin, fmt::format("'at' does not lie in the mesh {}", shard.mesh.text()));
    shard.at.push_back(at[a].get<int64_t>());
  }
  const json specs = text.value("specs", json::array());
  if (!specs.is_array()) unusable(origin, "'specs' is not a list of [glob, placements]");
  for (const json& spec : specs) {
    if (!spec.is_array() || spec.size() != 2 || !spec[0].is_string())
      unusable(origin, "'specs' is not a list of [glob, placements]");
    shard.specs.emplace_back(spec[0].get<std::string>(), placements_of(spec[1], shard.mesh, origin));
  }
  return shard;
}

std::optional<Shard> shard_of(const Dump& dump) {
  if (!dump.provenance().contains("shard")) return std::nullopt;
  Shard shard = read_shard(dump.provenance()["shard"], dump.file().string());
  read_values(shard, dump);
  return shard;
}

}  // namespace parity
