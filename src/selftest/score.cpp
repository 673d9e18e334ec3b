#include "selftest/score.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace parity {

Score read_score(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error(fmt::format("{}: cannot be read; name what selftest --json wrote", file.string()));
  Score score;
  try {
    const nlohmann::json content = nlohmann::json::parse(stream);
    for (const auto& pair : content.at("pairs"))
      score[pair.at("file").get<std::string>()] = {pair.at("found").get<bool>(), pair.at("located").get<bool>(),
                                                   pair.at("false_alarm").get<bool>()};
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: is not a self test's result: {}", file.string(), error.what()));
  }
  return score;
}

std::vector<std::string> losses(const SelftestResult& result, const Score& score) {
  std::vector<std::string> lines;
  for (const SelftestOutcome& now : result.outcomes) {
    const auto known = score.find(now.pair.file);
    const KnownOutcome before = known == score.end() ? KnownOutcome{true, true, false} : known->second;
    const char* lost = nullptr;
    if (now.false_alarm() && !before.false_alarm) lost = "not an alarm";
    if (now.pair.fault && before.located && !now.located()) lost = "located";
    if (now.pair.fault && before.found && !now.found()) lost = "found";
    if (lost != nullptr) lines.push_back(fmt::format("lost         {}: {} before", now.pair.file, lost));
  }
  return lines;
}

}  // namespace parity
