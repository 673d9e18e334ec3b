// Tells whether memory has been written to: a sum of its words, for a tenth of what a sketch of it costs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sketch_places.hpp"

namespace parity::probe {

/// Of a block of memory, number `number` of many: the sums of all blocks together, mod 2^64, are those of the memory.
/// Another one when a block has changed, at odds of 2^-64, unless words of the block have changed places.
inline std::uint64_t words_of(const char* at, std::size_t bytes, std::uint64_t number) {
  constexpr std::size_t kLanes = 8, kWord = sizeof(std::uint64_t);  // sums that do not wait for each other
  std::uint64_t sums[kLanes] = {}, word = 0;
  for (; bytes >= kLanes * kWord; bytes -= kLanes * kWord)
    for (std::size_t k = 0; k < kLanes; ++k, at += kWord) std::memcpy(&word, at, kWord), sums[k] += word;
  for (std::size_t k = 0; bytes > 0; ++k) {
    const std::size_t some = bytes < kWord ? bytes : kWord;
    word = 0, std::memcpy(&word, at, some), sums[k] += word;
    at += some, bytes -= some;
  }
  for (std::size_t k = 1; k < kLanes; ++k) sums[0] += sums[k];
  return hash_of(sums[0] + hash_of(number));
}

}  // namespace parity::probe
