// The limits and the table of what benign changes use of them (scripts/calibrate) belong together.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "judge/limits.hpp"
#include "test_places.hpp"

namespace parity {
namespace {

nlohmann::json calibration() {
  std::ifstream stream(PARITY_SOURCE_DIR "/src/judge/calibration.json");
  return nlohmann::json::parse(stream);
}

// Decided by its significance, too: a gain of a few elements may lie above its limit of size and pass.
bool has_significance(const nlohmann::json& row) { return row["statistic"] == "gain"; }

}  // namespace

TEST_CASE("calibration: was measured under the limits in force, and no benign change reached one") {
  const nlohmann::json table = calibration(), limits = to_json(Thresholds{});
  CHECK(table["limits"].size() + 1 == limits.size());  // and accept_paths, which is not a number
  for (const auto& [name, value] : table["limits"].items()) {
    CAPTURE(name);
    REQUIRE(limits.contains(name));
    CHECK(limits[name]["value"] == value);
  }
  CHECK(table["benign_runs"] >= 100);
  CHECK(table["verdicts"].size() == 1);
  CHECK(table["verdicts"].contains("pass"));
  REQUIRE(table["shares"].size() >= 8);
  for (const auto& row : table["shares"]) {
    CAPTURE(row.dump());
    CHECK(row["rows"] >= 100);
    CHECK((has_significance(row) || row["largest"] <= 1));
  }
}

}  // namespace parity
