// The parts of the name maps: every variant finds its own, every file is used by some variant.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "core/error.hpp"
#include "models/wan/maps.hpp"
#include "pair/name_map.hpp"
#include "test_places.hpp"

using namespace parity;

namespace {

// All variants' maps: five paths, text or image, positions, frame rate, half width or not, and how the inputs came.
std::set<std::string> all_maps() {
  std::set<std::string> all;
  for (const auto& path : kWanDtypePaths)
    for (int bits = 0; bits < 256; ++bits) {
      const auto bit = [bits](int i) { return (bits >> i & 1) != 0; };
      WanConfig config;
      config.diffusers = path.rope == RopeForm::real;
      config.image_dim = bit(0) ? 48 : 0, config.image_positions = bit(0) && bit(1) ? 66 : 0,
      config.sample_info = bit(2);
      all.insert(wan_map(config, path, {bit(3), bit(4), bit(5), bit(3) && bit(6), bit(3) && bit(7)}));
    }
  return all;
}

}  // namespace

TEST_CASE("wan: every variant's map parses") {
  for (const auto& map : all_maps()) CHECK_NOTHROW(NameMap::parse(map, "wan"));
  CHECK_THROWS_AS(embedded_map("wan_nothing"), Error);
}

TEST_CASE("wan: every map file is built in as it is, and some variant uses it") {
  const auto maps = all_maps();
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PARITY_SOURCE_DIR "/probes/maps")) {
    const auto name = entry.path().stem().string();
    if (!name.starts_with("wan_diffusers") && !name.starts_with("wan_original")) continue;  // the transformer's
    CAPTURE(name);
    std::ifstream stream(entry.path());
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    CHECK(embedded_map(name) == text);
    CHECK(std::any_of(maps.begin(), maps.end(),
                      [&](const std::string& map) { return map.find(text) != std::string::npos; }));
    ++files;
  }
  CHECK(files > 20);
}
