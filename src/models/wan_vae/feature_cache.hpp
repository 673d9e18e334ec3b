// What the causal convolutions have seen of earlier chunks, so that a clip can go through the autoencoder piece by
// piece.
#pragma once
#include <ATen/ATen.h>

#include <vector>

namespace parity {

/// One slot a convolution, in execution order: every chunk passes the same convolutions.
class FeatureCache {
 public:
  struct Slot {
    bool used = false;  // by an earlier chunk
    at::Tensor frames;  // (batch, channels, 1 or 2, height, width) the last ones, or undefined
  };

  /// Back to the first slot.
  void begin_chunk() { next_ = 0; }
  /// The next convolution's.
  Slot& next() {
    if (next_ == slots_.size()) slots_.emplace_back();
    return slots_[next_++];
  }

 private:
  std::vector<Slot> slots_;
  size_t next_ = 0;
};

/// The last `count` frames of `before` (or undefined) and `x` together, as diffusers' blocks keep them: all from `x`
/// where it has enough, else one from `before`.
at::Tensor last_frames(const at::Tensor& before, const at::Tensor& x, int64_t count);

}  // namespace parity
