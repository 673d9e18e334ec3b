#include "compare/sides.hpp"

#include <fmt/format.h>

#include <fstream>

#include "core/error.hpp"

namespace parity {
namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error(fmt::format("{}: the map file cannot be read", file.string()));
  return {std::istreambuf_iterator<char>(stream), {}};
}

void warn(Sides& sides) {
  for (const Dump* dump : {sides.reference.get(), sides.candidate.get()})
    if (!dump->complete())
      sides.warnings.push_back(dump->file().string() + ": the recording was interrupted; only what it holds is compared");
  const auto config = [](const Dump& dump) { return dump.provenance().value("config", nlohmann::json()); };
  const auto here = config(*sides.reference), there = config(*sides.candidate);
  if (here.is_object() && there.is_object() && here != there)
    sides.warnings.push_back("the two recordings' model configurations differ: " + nlohmann::json::diff(here, there).dump());
}

}  // namespace

Sides open_sides(const std::filesystem::path& reference, const std::filesystem::path& candidate,
                 const std::filesystem::path& map, bool automatic) {
  Sides sides;
  sides.reference = std::make_unique<Dump>(reference);
  sides.candidate = std::make_unique<Dump>(candidate);
  sides.program = load_program(*sides.reference);
  sides.port = load_program(*sides.candidate);
  if (sides.program.ops.empty())
    throw Error(fmt::format("{}: holds no program (written by a port's writer?); give the PyTorch recording first",
                            reference.string()));
  sides.tensors = tensors_of(*sides.candidate, sides.port);
  if (sides.tensors.empty())
    throw Error(fmt::format("{}: holds no tensor that can be compared", candidate.string()));
  std::optional<NameMap> names;
  if (!map.empty()) names = NameMap::parse(text_of(map), map.string());
  const NameMap* rules = names ? &*names : nullptr;
  sides.pairing = automatic ? pair_recordings(*sides.reference, sides.program, sides.tensors, &sides.port, rules)
                            : pair_by_name(sides.program, sides.tensors, &sides.port, rules);
  warn(sides);
  return sides;
}

Side describe_side(const Dump& dump) {
  return {dump.file().string(), sha256_of_file(dump.file()), dump.model(), dump.producer(), dump.provenance()};
}

}  // namespace parity
