// Every byte is read once, in either pattern, under every instruction set: a limit that leaves some out would be too
// high.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <vector>

#include "instruction_sets.hpp"
#include "kernels/cpu/read_streams.hpp"

namespace parity {

TEST_CASE("bench: the bandwidth's kernels read every byte once") {
  std::mt19937_64 random(1);
  for (const size_t n : {1024, 3072, 16384}) {
    std::vector<uint8_t> bytes(n);
    for (auto& b : bytes) b = static_cast<uint8_t>(random());
    uint64_t expected = 0;
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + i, sizeof(word));
      expected += word;
    }
    on_every_instruction_set([&] {
      CHECK(kernels::sum_in_one_stream(bytes.data(), n) == expected);
      CHECK(kernels::sum_in_four_streams(bytes.data(), n) == expected);
      for (size_t i = 0; i < n; i += 97) {  // each byte by itself: two that make up for each other would not show above
        const uint64_t place = uint64_t{1} << (8 * (i % sizeof(uint64_t)));
        bytes[i] ^= 1;
        const uint64_t changed = bytes[i] & 1 ? expected + place : expected - place;
        CHECK(kernels::sum_in_one_stream(bytes.data(), n) == changed);
        CHECK(kernels::sum_in_four_streams(bytes.data(), n) == changed);
        bytes[i] ^= 1;
      }
    });
  }
}

}  // namespace parity
