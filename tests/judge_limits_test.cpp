// The table of limits as a file: what --thresholds reads.
#include <doctest/doctest.h>

#include <fstream>

#include "core/error.hpp"
#include "judge/limits.hpp"
#include "recording_file.hpp"

namespace parity {
namespace {

Thresholds thresholds_of(const std::string& text) {
  const testing::TemporaryFile file("thresholds.json");
  std::ofstream(file.path()) << text;
  return read_thresholds(file.path());
}

}  // namespace

TEST_CASE("limits: a thresholds file changes what it names, and nothing else") {
  const Thresholds changed = thresholds_of(
      R"({"elementwise_library": {"value": 7, "origin": "of a table of this library, measured"},
          "accept_paths": ["blocks.*.norm1"]})");
  CHECK(changed.elementwise_library.value == 7);
  CHECK(changed.elementwise_library.origin == "of a table of this library, measured");
  CHECK(changed.accepted == std::vector<std::string>{"blocks.*.norm1"});
  CHECK(changed.half_ratio.value == Thresholds().half_ratio.value);
  // All of them, as the program writes them: long enough that a name read from freed memory shows.
  nlohmann::json all = to_json(Thresholds());
  all["half_ratio"]["value"] = 2;
  CHECK(thresholds_of(all.dump()).half_ratio.value == 2);
}

TEST_CASE("limits: a change without a reason, an unknown name and no number are refused by name") {
  const auto refused = [](const std::string& text, const std::string& words) {
    CAPTURE(text);
    try {
      thresholds_of(text);
      FAIL_CHECK("was read");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find(words) != std::string::npos);
    }
  };
  refused(R"({"half_ratio": {"value": 2}})", "'half_ratio' needs a number 'value' and an 'origin'");
  refused(R"({"half_ratoi": {"value": 2, "origin": "x"}})", "there is no threshold 'half_ratoi'");
  refused(R"({"half_ratio": {"value": -2, "origin": "x"}})", "'half_ratio' must be a positive number");
  refused("[1", "no JSON object");
}

}  // namespace parity
