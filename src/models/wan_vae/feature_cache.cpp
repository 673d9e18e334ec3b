#include "models/wan_vae/feature_cache.hpp"

namespace parity {

at::Tensor last_frames(const at::Tensor& before, const at::Tensor& x, int64_t count) {
  const int64_t frames = x.size(2), from_x = std::min(count, frames);
  const auto kept = x.narrow(2, frames - from_x, from_x).clone();
  if (from_x == count || !before.defined()) return kept;
  return at::cat({before.narrow(2, before.size(2) - 1, 1), kept}, 2);
}

}  // namespace parity
