// Memory of copies that have been written, for the copies to come: a copy of 55 MB into memory that is there already
// takes 5 ms, into fresh memory, page by page from the system, 28 (Zen 4). Private to parity_probe.hpp.
#pragma once
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

#include "pack.hpp"

namespace parity::probe {

/// Thread-safe. What is out and what is spare take no more than `most` bytes together, unless what is out does alone.
class Spares {
 public:
  static constexpr std::size_t kLeast = std::size_t{128} << 10;  // below, the allocator keeps memory by itself

  explicit Spares(std::size_t most) : most_(most) {}

  Buffer take(std::size_t size) {
    if (size < kLeast) return Buffer(size);
    const std::lock_guard lock(mutex_);
    for (auto one = spare_.begin(); one != spare_.end(); ++one) {
      if (one->capacity() < size || one->capacity() / 2 > size) continue;
      Buffer found = std::move(*one);
      spare_.erase(one);
      spare_bytes_ -= found.capacity(), out_bytes_ += found.capacity();
      found.resize(size);
      return found;
    }
    while (!spare_.empty() && out_bytes_ + spare_bytes_ + size > most_) drop_oldest();
    Buffer made(size);
    out_bytes_ += size;
    return made;
  }

  void give(Buffer buffer) {
    if (buffer.capacity() < kLeast) return;
    const std::lock_guard lock(mutex_);
    out_bytes_ -= buffer.capacity();
    if (out_bytes_ + spare_bytes_ + buffer.capacity() > most_) return;
    spare_bytes_ += buffer.capacity();
    spare_.push_back(std::move(buffer));
  }

 private:
  void drop_oldest() {
    spare_bytes_ -= spare_.front().capacity();
    spare_.pop_front();
  }

  const std::size_t most_;
  std::mutex mutex_;  // of everything below
  std::deque<Buffer> spare_;
  std::size_t out_bytes_ = 0, spare_bytes_ = 0;
};

}  // namespace parity::probe
