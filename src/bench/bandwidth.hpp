// The limit that measuring and decoding are held against: reading memory and doing nothing else.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>

namespace parity {

/// Memory to be read as fast as this machine can: by all threads, each a stretch, in one stream or in four, whichever
/// was faster when it was tried.
class ReadOnly {
 public:
  /// At least so many bytes: rounded up to whole units of 1024.
  explicit ReadOnly(int64_t bytes);
  /// `memory` itself, bytes, whole units of 1024; they are written over.
  explicit ReadOnly(at::Tensor memory);
  /// Every byte once. Throws Error if one is not what was written.
  void read() const;

 private:
  at::Tensor bytes_;
  bool four_streams_ = false;
};

/// Bytes a second over half a GiB in huge pages, as weights lie (models/own_pages.hpp): the best of five.
double read_bandwidth();

}  // namespace parity
