// TeaCache: denoising steps that reuse what the blocks added at an earlier step, told by the time embedding alone.
// Liu et al., "Timestep Embedding Tells: It's Time to Cache for Video Diffusion Model", 2024 (arXiv 2411.19108).
#pragma once
#include <ATen/ATen.h>

#include <vector>

#include "models/wan/config.hpp"

namespace parity {

struct StepCacheOptions {
  double threshold = 0;            // of the accumulated distance; 0: every step is computed
  std::vector<double> polynomial;  // from the embeddings' distance to the outputs', the highest power first
};

/// The polynomial that the authors published for these sizes (over the modulated time embedding), else {1, 0}: the
/// distance itself.
std::vector<double> step_cache_polynomial(const WanConfig& config);

/// Of one stream of forwards: guidance has two, the prompt's and the negative prompt's.
class StepCache {
 public:
  explicit StepCache(StepCacheOptions options) : options_(std::move(options)) {}

  /// The next step, with its modulated time embedding (batch, 6, dim). May what the blocks added before be added again?
  /// Distances between neighbouring steps, mean |a - b| / mean |b|, are put through the polynomial and summed up until
  /// they reach the threshold. Never at the first step, nor where `always`.
  bool reuses(const at::Tensor& embedding, bool always);
  bool reused() const { return reused_; }  // at the last step that was asked for

  /// What the blocks made of `before`; or that made again.
  void keep(const at::Tensor& before, const at::Tensor& after) { added_ = after - before; }
  at::Tensor add_to(const at::Tensor& before) const { return before + added_; }

 private:
  StepCacheOptions options_;
  at::Tensor last_, added_;
  double distance_ = 0;
  bool reused_ = false;
};

}  // namespace parity
