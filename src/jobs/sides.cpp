#include "jobs/sides.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <set>

#include "core/error.hpp"
#include "core/named.hpp"
#include "jobs/onnx_side.hpp"
#include "jobs/paired_sides.hpp"
#include "jobs/shard_files.hpp"
#include "jobs/side_warnings.hpp"
#include "onnx/model.hpp"

namespace parity {
namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error(fmt::format("{}: the map file cannot be read", file.string()));
  return {std::istreambuf_iterator<char>(stream), {}};
}

OpenedSide opened_file(const std::filesystem::path& file) {
  if (onnx::is_model_file(file))
    throw Error(
        fmt::format("{}: is an ONNX model, which runs on the inputs of a candidate: parity-check compare {} CAND",
                    file.string(), file.filename().string()));
  OpenedSide side;
  side.file = file;
  if (TensorSet::fits(file)) {
    side.set = TensorSet::open(file);
    side.tensors = tensors_of(*side.set);
  } else {
    side.dump = std::make_unique<Dump>(file);
    side.program = load_program(*side.dump);
    side.tensors = tensors_of(*side.dump, side.program);
  }
  return side;
}

OpenedSide opened(const std::filesystem::path& place) {
  if (const auto files = shard_files(place)) return open_shards(place, *files, opened_file);
  OpenedSide side = opened_file(place);
  refuse_lone_shard(side);
  return side;
}

// A rule that gives a weight of the reference a counterpart must name one that the candidate has, if it has any.
void check_weight_rules(const Sides& sides, const std::filesystem::path& file) {
  if (!sides.reference.dump || !sides.candidate.dump) return;
  const Dump& candidate = *sides.candidate.dump;
  const std::vector<std::string> names = candidate.weight_names();
  const std::set<std::string> known(names.begin(), names.end());
  if (known.empty()) return;
  std::set<int> of_boundaries;  // lines of rules that are not about weights ("transformer.* = *")
  for (const Boundary& boundary : sides.reference.program.boundaries)
    if (const auto target = sides.map->find(boundary.path, boundary.call)) of_boundaries.insert(target->line);
  for (const std::string& weight : sides.reference.dump->weight_names()) {
    std::vector<NameMap::Target> targets = sides.map->find_parts(weight);
    if (auto whole = sides.map->find(weight)) targets.push_back(std::move(*whole));
    for (const NameMap::Target& target : targets)
      if (!of_boundaries.contains(target.line) && !known.contains(target.candidate))
        throw Error(
            fmt::format("{}:{}: the candidate has no weight '{}' for the reference's '{}'; see: parity-check "
                        "weights REF CAND",
                        file.string(), target.line, target.candidate, weight));
  }
}

void warn(Sides& sides) {
  for (const OpenedSide* side : {&sides.reference, &sides.candidate}) {
    for (const std::string& note : side->notes) sides.warnings.push_back(side->file.string() + ": " + note);
    if (side->set)
      for (const std::string& note : side->set->notes()) sides.warnings.push_back(side->file.string() + ": " + note);
    if (side->dump && !side->dump->complete())
      sides.warnings.push_back(side->file.string() + ": the recording was interrupted; only what it holds is compared");
  }
  if (const std::string difference = configuration_difference(sides); !difference.empty())
    sides.warnings.push_back(difference);
}

}  // namespace

OpenedSide open_side(const std::filesystem::path& file) {
  return named({file.string()}, [&] { return opened(file); });
}

NameMap read_map(const std::filesystem::path& file) { return NameMap::parse(text_of(file), file.string()); }

Sides open_sides(const std::filesystem::path& reference, const std::filesystem::path& candidate,
                 const std::filesystem::path& map, const ShareDone& pairing, const std::filesystem::path& inputs) {
  const bool is_model = onnx::is_model_file(reference);
  if (!is_model && !inputs.empty())
    throw Error(fmt::format("{}: --inputs is for a reference that is an ONNX model (.onnx); a recording has its own",
                            reference.string()));
  Sides sides;
  if (!is_model) sides.reference = open_side(reference);
  if (!sides.reference.ranks.empty())
    throw Error(fmt::format("{}: is {} ranks' recordings; the reference must be one, of the whole model",
                            reference.string(), sides.reference.ranks.size()));
  OpenedSide opened_candidate = open_side(candidate);
  if (is_model) sides.reference = open_onnx_side(reference, opened_candidate, inputs);
  take_candidate(sides, std::move(opened_candidate), map, pairing);
  return sides;
}

void open_candidate(Sides& sides, const std::filesystem::path& candidate, const std::filesystem::path& map,
                    const ShareDone& pairing) {
  take_candidate(sides, open_side(candidate), map, pairing);
}

void take_candidate(Sides& sides, OpenedSide candidate, const std::filesystem::path& map, const ShareDone& pairing) {
  sides.candidate = std::move(candidate);
  sides.map.reset();
  sides.pairing = {};
  sides.warnings.clear();
  if (!map.empty()) sides.map = read_map(map);
  named(
      {sides.reference.file.string(), sides.candidate.file.string()}, [&] { join_candidate(sides); }, map.string());
  for (const OpenedSide* side : {&sides.reference, &sides.candidate})
    if (side->tensors.empty() && side->program.ops.empty() && !side->sketched())
      throw Error(fmt::format("{}: holds no tensor that can be compared", side->file.string()));
  if (sides.candidate.tensors.empty() && !sides.candidate.sketched())
    throw Error(fmt::format("{}: holds no tensor that can be compared", sides.candidate.file.string()));
  if (sides.map) check_weight_rules(sides, map);
  named(
      {sides.reference.file.string(), sides.candidate.file.string()},
      [&] {
        // Before chunks are joined, which leaves tensors out.
        const std::string idle = sides.map && !sides.candidate.sketched() ? idle_rules(sides) : "";
        if (sides.replayable()) pair_sides(sides, pairing);
        if (!idle.empty()) sides.warnings.insert(sides.warnings.begin(), idle);
        warn(sides);
      },
      map.string());
}

void require_program(const Sides& sides) {
  for (const OpenedSide* side : {&sides.reference, &sides.candidate})
    if (side->sketched())
      throw Error(
          fmt::format("{}: holds sketches, on which nothing can be replayed: only parity-check compare takes it",
                      side->file.string()));
  if (!sides.replayable())
    throw Error(fmt::format("{}: holds no program; give the PyTorch recording (parity_probe.record) first",
                            sides.reference.file.string()));
}

std::string code_of(const Dump& dump) {
  const nlohmann::json& about = dump.provenance();
  const bool noted = about.is_object() && about.contains("module") && about["module"].is_string();
  const std::string module = noted ? about["module"].get<std::string>() : "";
  const std::string package = module.substr(0, module.find('.'));
  // Recordings from before recorders noted the module: by class, and by what the libraries write into configurations.
  const auto wrote = [&](const char* key) {
    return package.empty() && about.is_object() && about.contains("config") && about["config"].is_object() &&
           about["config"].contains(key);
  };
  if (package == "reference_models" || dump.model() == "WanOriginal") return "our transcription of the original";
  if (package == "diffusers" || wrote("_diffusers_version")) return "diffusers' code";
  if (package == "transformers" || wrote("transformers_version")) return "transformers' code";
  return package.empty() ? "" : fmt::format("code of the Python module {}", module);
}

namespace {

Side without_digest(const Dump& dump) {
  Side side{dump.file().string(), "", dump.model(), dump.producer(), dump.provenance()};
  if (const std::string code = code_of(dump); !code.empty() && side.details.is_object()) side.details["code"] = code;
  return side;
}

}  // namespace

Side describe_side(const Dump& dump) {
  Side side = without_digest(dump);
  side.sha256 = sha256_of_file(dump.file());
  return side;
}

Side describe_side(const OpenedSide& side) {
  Side described =
      side.dump ? without_digest(*side.dump) : Side{side.file.string(), "", "", "", nlohmann::json::object()};
  if (!side.ranks.empty()) described.path = side.file.string();
  described.weights = side.dump && !side.dump->weight_names().empty();
  return described;
}

std::shared_future<std::string> digest_beside(const OpenedSide& side) {
  if (!side.ranks.empty()) {
    std::vector<std::string> files;
    for (const RankRecording& rank : side.ranks) files.push_back(rank.file);
    return std::async(std::launch::async, [files] {
      std::string all;
      for (const std::string& file : files) all += sha256_of_file(file) + "\n";
      return sha256_of_text(all);
    });
  }
  return std::async(std::launch::async,
                    [file = side.file] { return std::filesystem::is_regular_file(file) ? sha256_of_file(file) : ""; });
}

PortValues port_values(const Sides& sides) {
  std::map<size_t, const PortPair*> pairs;
  for (const PortPair& pair : sides.pairing.pairs) pairs[pair.boundary] = &pair;
  return [pairs, &sides](size_t boundary) -> std::optional<at::Tensor> {
    const auto found = pairs.find(boundary);
    if (found == pairs.end()) return std::nullopt;
    const at::Tensor value =
        found->second->layout.to_reference(sides.candidate.tensors[found->second->candidate].load());
    const Boundary& reference = sides.reference.program.boundaries[boundary];
    if (value.sizes().vec() != reference.value.shape)
      throw Error(
          fmt::format("{}: '{}' has shape [{}], the reference's '{}' [{}]; give the layout in a map file (--map)",
                      sides.candidate.file.string(), sides.candidate.tensors[found->second->candidate].path,
                      fmt::join(value.sizes(), ", "), reference.path, fmt::join(reference.value.shape, ", ")));
    return value;
  };
}

}  // namespace parity
