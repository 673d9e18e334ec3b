#include "cli/finished_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/print.hpp"
#include "core/error.hpp"
#include "core/launch.hpp"

namespace parity::cli {
namespace {

namespace fs = std::filesystem;

std::string digest_if_given(const std::string& file) {
  return file.empty() || !fs::is_regular_file(file) ? file : sha256_of_file(file);
}

// What is seen without reading it: the size of a file, or of each rank's; names, sizes and times of what is in a
// folder.
nlohmann::json glance(const OpenedSide& side) {
  if (!side.ranks.empty()) {
    nlohmann::json sizes = nlohmann::json::array();
    for (const RankRecording& rank : side.ranks) sizes.push_back(fs::file_size(rank.file));
    return sizes;
  }
  const fs::path& path = side.file;
  if (!fs::is_directory(path)) return fs::file_size(path);
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file())
      files.push_back(fmt::format("{} {} {}", entry.path().lexically_relative(path).string(), entry.file_size(),
                                  entry.last_write_time().time_since_epoch().count()));
  std::sort(files.begin(), files.end());
  std::string all;
  for (const std::string& file : files) all += file + "\n";
  return sha256_of_text(all);
}

// Everything that decides the rows, by the names that users know.
nlohmann::json key_of(const CompareOptions& options, const Sides& sides) {
  return {{"version", PARITY_VERSION},
          {"--layer", options.layer},
          {"--map", digest_if_given(options.map)},
          {"--inputs", digest_if_given(options.inputs)},
          {"--thresholds", digest_if_given(options.thresholds)},
          {"--accept-path", options.accepted},
          {"--no-diagnosis", !options.diagnose},
          {"--budget-time", options.budget_time},
          {"--budget-memory", options.budget_memory},
          {"the size of the reference", glance(sides.reference)},
          {"the size of the candidate", glance(sides.candidate)},
          {"the machine", this_machine_json()}};
}

fs::path place_of(const CompareOptions& options, const nlohmann::json& key) {
  constexpr size_t kShort = 12;
  if (!options.common.json.empty()) return options.common.json + ".units";
  if (!options.out.empty()) return fs::path(options.out) / "report.json.units";
  if (!options.resume && launch().size == 1) return {};
  return fmt::format(".parity-check-{}.units", sha256_of_text(key.dump()).substr(0, kShort));
}

bool there(const std::shared_future<std::string>& digest) {
  return digest.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

Digests::Digests(const Sides& sides, bool wanted) {
  const auto none = [] {
    std::promise<std::string> promise;
    promise.set_value("");
    return promise.get_future().share();
  };
  reference = wanted ? digest_beside(sides.reference) : none();
  candidate = wanted ? digest_beside(sides.candidate) : none();
}

bool Digests::known() const { return there(reference) && there(candidate); }

void Digests::enter(Report& report) const {
  report.reference.sha256 = reference.get();
  report.candidate.sha256 = candidate.get();
}

std::unique_ptr<UnitFile> finished_work(const CompareOptions& options, const Sides& sides, const Digests& digests) {
  if (!options.digest && (options.resume || launch().size > 1))
    throw Error(
        "--no-digest: finished work is told by the SHA-256 of both sides; leave it out with --resume or mpirun");
  if (!options.digest) return nullptr;
  UnitFileOptions file;
  file.key = key_of(options, sides);
  file.file = place_of(options, file.key);
  if (file.file.empty()) return nullptr;
  std::error_code problem;  // told when the file is opened
  if (file.file.has_parent_path()) fs::create_directories(file.file.parent_path(), problem);
  file.launch = launch();
  file.resume = options.resume;
  file.inputs = [digests] { return digests.text(); };
  file.inputs_known = [digests] { return digests.known(); };
  file.tell = [](const std::string& line) { print_error("parity-check: {}\n", line); };
  return std::make_unique<UnitFile>(std::move(file));
}

}  // namespace parity::cli
