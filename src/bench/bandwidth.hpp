// The limit that measuring and decoding are held against: reading memory and doing nothing else.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>

namespace parity {

/// Memory to be read as fast as this machine can.
class ReadOnly {
 public:
  explicit ReadOnly(int64_t bytes) : bytes_(at::ones({bytes}, at::kByte)) {}
  /// Every byte once, by all threads, each a stretch: memchr for a byte that is not there; the C library does it with
  /// the widest loads there are. Throws Error if it found one.
  void read() const;

 private:
  at::Tensor bytes_;
};

/// Bytes a second over half a GiB: the best of five.
double read_bandwidth();

}  // namespace parity
