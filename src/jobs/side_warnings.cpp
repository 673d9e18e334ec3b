#include "jobs/side_warnings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

namespace parity {
namespace {

constexpr size_t kShownRules = 3, kShownSettings = 6, kLongestSetting = 40;
constexpr int kDeepestSetting = 8;

// Names, versions and dtypes: no other model.
bool means_nothing(const std::string& key) {
  static const std::set<std::string> kMeansNothing{"torch_dtype", "dtype", "transformers_version", "use_cache", "low"};
  return key.starts_with("_") || kMeansNothing.contains(key);
}

nlohmann::json configuration(const OpenedSide& side) {
  if (!side.dump || !side.dump->provenance().is_object()) return {};
  return side.dump->provenance().value("config", nlohmann::json());
}

std::string shortened(const nlohmann::json& value) {
  const std::string text = value.dump();
  if (text.size() <= kLongestSetting) return text;
  size_t end = kLongestSetting;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // no half of a character
  return text.substr(0, end) + "…";
}

// "vision_config.hidden_size 64 and 128" of what both have.
void differences(const nlohmann::json& here, const nlohmann::json& there, const std::string& prefix, int depth,
                 std::vector<std::string>& out) {
  for (const auto& [key, value] : here.items()) {
    if (means_nothing(key) || !there.contains(key) || there[key] == value) continue;
    if (value.is_object() && there[key].is_object() && depth < kDeepestSetting)
      differences(value, there[key], prefix + key + ".", depth + 1, out);
    else
      out.push_back(fmt::format("{}{} {} and {}", prefix, key, shortened(value), shortened(there[key])));
  }
}

}  // namespace

std::string idle_rules(const Sides& sides) {
  std::set<std::string> there;
  for (const CandidateTensor& tensor : sides.candidate.tensors) there.insert(tensor.path);
  std::vector<NameMap::Name> names;
  for (const Boundary& boundary : sides.reference.program.boundaries) names.push_back({boundary.path, boundary.call});
  for (const CandidateTensor& tensor : sides.reference.tensors) names.push_back({tensor.path, tensor.call});
  std::map<int, std::string> idle;  // by line: what it names first
  std::set<int> of_use, all;
  for (const auto& [path, call] : names)
    if (const auto target = sides.map->find(path, call)) {
      all.insert(target->line);
      there.contains(target->candidate) ? void(of_use.insert(target->line))
                                        : void(idle.emplace(target->line, target->candidate));
    }
  std::erase_if(idle, [&](const auto& rule) { return of_use.contains(rule.first); });
  if (idle.empty()) return "";
  std::vector<std::string> first;
  for (const auto& [line, name] : idle)
    if (first.size() < kShownRules) first.push_back(fmt::format("'{}' (line {})", name, line));
  return fmt::format("{} of {} map rules name tensors that the candidate lacks: {}{}; see: parity-check inspect CAND",
                     idle.size(), all.size(), fmt::join(first, ", "), idle.size() > first.size() ? ", …" : "");
}

std::string configuration_difference(const Sides& sides) {
  const nlohmann::json here = configuration(sides.reference), there = configuration(sides.candidate);
  if (!here.is_object() || !there.is_object()) return "";
  std::vector<std::string> different;
  differences(here, there, "", 0, different);
  if (different.empty()) return "";
  const size_t all = different.size();
  different.resize(std::min(all, kShownSettings));
  return fmt::format("the two recordings' model configurations differ: {}{}", fmt::join(different, ", "),
                     all > kShownSettings ? fmt::format(" and {} more", all - kShownSettings) : "");
}

std::string configuration_conflict(const Sides& sides) {
  if (!sides.reference.dump || !sides.candidate.dump) return "";
  const nlohmann::json here = sides.reference.dump->provenance(), there = sides.candidate.dump->provenance();
  if (!here.contains("config") || !there.contains("config") ||
      sides.reference.dump->model() != sides.candidate.dump->model())
    return "";
  std::vector<std::string> different;
  for (const auto& [key, value] : here["config"].items())
    if (!means_nothing(key) && there["config"].contains(key) && there["config"][key] != value)
      different.push_back(fmt::format("{} {} and {}", key, value.dump(), there["config"][key].dump()));
  return fmt::format("{}", fmt::join(different, ", "));
}

}  // namespace parity
