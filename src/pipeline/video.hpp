// Text or image to video as diffusers' WanPipeline and WanImageToVideoPipeline compute it (pipeline_wan.py,
// pipeline_wan_i2v.py): encoders, a denoising loop with classifier-free guidance, the autoencoder.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/precision.hpp"
#include "core/progress.hpp"
#include "pipeline/folder.hpp"
#include "pipeline/inputs.hpp"

namespace parity {

struct GenerationOptions {
  int64_t steps = 50, frames = 81, height = 480, width = 832;
  double guidance = 5;  // 1 or less: none, the negative prompt is not read
  double teacache = 0;  // threshold of models/wan/step_cache.hpp; 0: every step is computed
  uint64_t seed = 0;
  at::ScalarType dtype = at::kBFloat16;       // transformer and text encoder are loaded in it
  at::ScalarType vae_dtype = at::kFloat;      // autoencoder and image encoder
  Precision precision = Precision::recorded;  // fp64: everything in fp64, whatever the dtypes above
};

/// Who looks at the results of the stages and may put others in their place. Names, in order: prompt_embeds,
/// negative_prompt_embeds, image_embeds, condition, timesteps, then for each step velocity.N (the transformer's,
/// guided) and latents.N (the sample after it), and video. The sampler's history is its own.
struct StageHooks {
  /// Asked before a stage is computed; a tensor is taken instead of computing it.
  std::function<std::optional<at::Tensor>(const std::string& stage)> given = [](const auto&) { return std::nullopt; };
  /// Told what a stage computed; the generation goes on with what it returns.
  std::function<at::Tensor(const std::string& stage, at::Tensor computed)> made = [](const auto&, at::Tensor t) {
    return t;
  };
  /// Told the step whose blocks TeaCache left out, for the prompt.
  std::function<void(int64_t step)> reused = [](int64_t) {};
};

/// The stages' names of such a generation, in order.
std::vector<std::string> generation_stages(const PipelineFolder& folder, const GenerationOptions& options);

/// (1, 3, frames, height, width) in [-1, 1], before it is cut off. Each stage's weights are in memory only while it
/// runs; the transformer's during the loop. `progress` is told the share of the steps. Throws Error: sizes that the
/// autoencoder and the patches do not divide, inputs that are missing or do not fit, unusable weights.
at::Tensor generate_video(const PipelineFolder& folder, const GenerationInputs& inputs,
                          const GenerationOptions& options, const StageHooks& hooks, const ShareDone& progress = {});

}  // namespace parity
