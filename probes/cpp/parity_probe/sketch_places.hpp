// Where a number of a sketched tensor goes: the hash of its place in the whole tensor (FORMAT.md, "Sketches").
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace parity::probe {

/// splitmix64's output function (Steele, Lea, Flood 2014) of a counter.
inline std::uint64_t hash_of(std::uint64_t place) {
  std::uint64_t z = place * 0x9E3779B97F4A7C15 + 0x7061726974792D31;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

/// The sign bit of a hash, then the 12 bits of the bucket.
inline std::uint16_t high_bits(std::uint64_t hash) { return static_cast<std::uint16_t>(hash >> 51); }

/// The high bits of many places. The first kRemembered are hashed once a recording, not once a tensor, which takes half
/// of what a sketch costs: 2 bytes for each number of the largest tensor, 32 MiB at most. Thread-safe.
class Places {
 public:
  static constexpr std::size_t kBlock = std::size_t{1} << 16, kRemembered = std::size_t{1} << 24;

  Places() = default;
  ~Places() {
    for (auto& block : blocks_) delete[] block.load();
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  /// Of `n` places from `first` on, none of them beyond the end of a block of kBlock; in `room` unless remembered.
  const std::uint16_t* of(std::uint64_t first, std::size_t n, std::uint16_t* room) {
    if (first < kRemembered)
      if (const std::uint16_t* block = remembered(first / kBlock)) return block + first % kBlock;
    hash(first, n, room);
    return room;
  }

 private:
  static void hash(std::uint64_t first, std::size_t n, std::uint16_t* out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = high_bits(hash_of(first + i));
  }

  // Null without memory. Two threads may both make a block; one of them is kept.
  const std::uint16_t* remembered(std::size_t number) {
    const std::uint16_t* found = blocks_[number].load(std::memory_order_acquire);
    if (found != nullptr) return found;
    auto* const made = new (std::nothrow) std::uint16_t[kBlock];
    if (made == nullptr) return nullptr;
    hash(number * kBlock, kBlock, made);
    if (blocks_[number].compare_exchange_strong(found, made, std::memory_order_acq_rel)) return made;
    delete[] made;
    return found;
  }

  std::array<std::atomic<const std::uint16_t*>, kRemembered / kBlock> blocks_{};
};

}  // namespace parity::probe
