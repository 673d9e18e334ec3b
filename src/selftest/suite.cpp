#include "selftest/suite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/glob.hpp"
#include "dump/dump.hpp"
#include "pair/name_map.hpp"

namespace parity {
namespace {

namespace fs = std::filesystem;

nlohmann::json read_manifest(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error(fmt::format("{}: cannot be read; name a self test suite with --suite", file.string()));
  try {
    return nlohmann::json::parse(stream);
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: is no JSON: {}", file.string(), error.what()));
  }
}

// Names in a manifest are names of files beside it, never a way out of the folder.
std::string file_name(const nlohmann::json& entry, const char* key) {
  const auto name = entry.at(key).get<std::string>();
  if (fs::path(name).filename() != name || name.empty() || name == "..")
    throw Error(fmt::format("the manifest's '{}' is not the name of a file beside it: '{}'", key, name));
  return name;
}

SelftestPair pair_of(const nlohmann::json& entry) {
  SelftestPair pair;
  pair.file = file_name(entry, "file");
  pair.reference = file_name(entry, "reference");
  pair.family = entry.at("family");
  pair.dtype = entry.at("dtype");
  pair.name = entry.at("name");
  const std::string kind = entry.at("kind");
  if (kind != "fault" && kind != "honest")
    throw Error(fmt::format("{}: its kind in the manifest is neither fault nor honest but '{}'", pair.file, kind));
  pair.fault = kind == "fault";
  if (!pair.fault) return pair;
  pair.diagnosis = entry.at("diagnosis");
  pair.module = entry.at("module");
  pair.call = entry.at("call");
  if (pair.diagnosis.empty()) throw Error(fmt::format("{}: a fault without diagnosis in the manifest", pair.file));
  return pair;
}

void check_file(const fs::path& file, const std::string& sha256) {
  if (!fs::exists(file)) throw Error(fmt::format("{}: missing; the manifest names it", file.string()));
  if (sha256_of_file(file) != sha256)
    throw Error(
        fmt::format("{}: is not the file of the manifest (sha256 differs); record the suite again", file.string()));
}

void check_files(const SelftestSuite& suite, const nlohmann::json& manifest) {
  std::map<std::string, std::string> sha256;
  for (const char* list : {"references", "pairs"})
    for (const auto& entry : manifest.at(list)) sha256[file_name(entry, "file")] = entry.at("sha256");
  std::string last;
  for (const SelftestPair& pair : suite.pairs) {
    const auto known = sha256.find(pair.reference);
    if (known == sha256.end())
      throw Error(fmt::format("{}: its reference '{}' is not in the manifest", pair.file, pair.reference));
    if (pair.reference != last) check_file(suite.folder / pair.reference, known->second);
    last = pair.reference;
    check_file(suite.folder / pair.file, sha256.at(pair.file));
  }
}

}  // namespace

SelftestSuite read_suite(const fs::path& folder, std::string_view only) {
  const fs::path file = folder / "MANIFEST.json";
  const nlohmann::json manifest = read_manifest(file);
  SelftestSuite suite{folder, {}};
  try {
    for (const auto& entry : manifest.at("pairs")) {
      SelftestPair pair = pair_of(entry);
      if (matches_layer(pair.file, only)) suite.pairs.push_back(std::move(pair));
    }
    const auto faults = std::count_if(suite.pairs.begin(), suite.pairs.end(), [](const auto& p) { return p.fault; });
    if (suite.pairs.empty()) throw Error(fmt::format("no pair's file matches '{}'", only));
    if (only == "all" && (faults == 0 || faults == std::ssize(suite.pairs)))
      throw Error("it needs faults and honest pairs: one kind alone measures nothing");
    std::stable_sort(suite.pairs.begin(), suite.pairs.end(),
                     [](const auto& a, const auto& b) { return a.reference < b.reference; });
    check_files(suite, manifest);
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: not as a self test's manifest: {}", file.string(), error.what()));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", file.string(), error.what()));
  }
  return suite;
}

}  // namespace parity
