#include "pipeline/video.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "pipeline/sampler.hpp"
#include "pipeline/stages.hpp"

namespace parity {
namespace {

class Generation {
 public:
  Generation(const PipelineFolder& folder, const GenerationInputs& inputs, const GenerationOptions& options,
             const StageHooks& hooks, const ShareDone& progress)
      : in_(inputs), options_(options), hooks_(hooks), progress_(progress), load_(folder, options), folder_(folder) {
    check();
  }

  at::Tensor run() {
    const at::NoGradGuard no_grad;
    text_ = stage("prompt_embeds", [&] { return load_.embed_text(in_.ids, in_.mask); });
    if (guided())
      negative_ =
          stage("negative_prompt_embeds", [&] { return load_.embed_text(in_.negative_ids, in_.negative_mask); });
    if (folder_.takes_image()) {
      image_ = stage("image_embeds", [&] { return load_.embed_image(in_.pixels); });
      condition_ = stage("condition", [&] { return load_.condition(in_.image); });
    }
    const auto latents = denoised();
    return stage("video", [&] { return load_.decode(latents); });
  }

 private:
  template <class Compute>
  at::Tensor stage(const std::string& name, const Compute& compute) const {
    if (auto given = hooks_.given(name)) return *given;
    return hooks_.made(name, compute());
  }

  bool guided() const { return options_.guidance > 1; }

  at::Tensor denoised() {
    Sampler sampler(folder_.scheduler(), options_.steps);
    const auto timesteps = stage("timesteps", [&] { return sampler.timesteps(); });
    at::Tensor latents = noise();
    for (int64_t i = 0; i < options_.steps; ++i) {
      const auto time = timesteps[i].expand({1});
      const auto velocity = stage(fmt::format("velocity.{}", i), [&] { return guided_velocity(latents, time, i); });
      const auto next = sampler.step(velocity, latents);  // also where another sample is given: it counts its steps
      latents = stage(fmt::format("latents.{}", i), [&] { return next; });
      if (progress_) progress_(static_cast<double>(i + 1) / static_cast<double>(options_.steps + 1));
    }
    transformer_.reset();
    return latents;
  }

  // Classifier-free guidance (Ho and Salimans 2022): away from what the negative prompt gives, `guidance` times as far.
  at::Tensor guided_velocity(const at::Tensor& latents, const at::Tensor& time, int64_t step) {
    if (!transformer_) transformer_ = load_.transformer();
    const auto x = (condition_.defined() ? at::cat({latents, condition_}, 1) : latents).to(load_.low());
    const auto velocity = [&](const at::Tensor& text, std::optional<StepCache>& cache) {
      WanInputs inputs;
      inputs.latents = x, inputs.time = time, inputs.context = text, inputs.image = image_;
      inputs.last_step = step + 1 == options_.steps;
      NoProbe off;
      if (options_.teacache <= 0) return transformer_->forward(inputs, off);
      if (!cache) cache.emplace(StepCacheOptions{options_.teacache, step_cache_polynomial(transformer_->config())});
      return transformer_->forward(inputs, off, &*cache);
    };
    const auto wanted = velocity(text_, for_prompt_);
    if (for_prompt_ && for_prompt_->reused()) hooks_.reused(step);
    if (!guided()) return wanted;
    const auto unwanted = velocity(negative_, for_negative_);
    return unwanted + options_.guidance * (wanted - unwanted);
  }

  // diffusers' randn_tensor on a CPU generator: the same numbers from the same seed.
  at::Tensor noise() const {
    const auto dtype = redirect(at::kFloat, options_.precision);
    if (in_.noise.defined()) return in_.noise.to(dtype);
    auto generator = at::make_generator<at::CPUGeneratorImpl>(options_.seed);
    return at::randn(load_.latent_shape(), generator, at::TensorOptions(at::kFloat)).to(dtype);
  }

  void check() const {
    if (guided() && !in_.negative_ids.defined())
      throw Error("the inputs have no 'negative_input_ids', which guidance needs; give them, or --guidance 1");
    if (in_.noise.defined() && in_.noise.sizes() != at::IntArrayRef(load_.latent_shape()))
      throw Error(fmt::format("the inputs' 'noise' is [{}], these sizes make it [{}]",
                              fmt::join(in_.noise.sizes(), ", "), fmt::join(load_.latent_shape(), ", ")));
    if (!folder_.takes_image()) return;
    if (!in_.pixels.defined() || !in_.image.defined())
      throw Error("the pipeline begins from an image: the inputs need 'image' and 'pixel_values'");
    const std::vector<int64_t> shape{1, 3, options_.height, options_.width};
    if (in_.image.sizes() != at::IntArrayRef(shape))
      throw Error(fmt::format("the inputs' 'image' is [{}], the video's size makes it [{}]",
                              fmt::join(in_.image.sizes(), ", "), fmt::join(shape, ", ")));
  }

  const GenerationInputs& in_;
  const GenerationOptions& options_;
  const StageHooks& hooks_;
  const ShareDone& progress_;
  StageLoader load_;
  const PipelineFolder& folder_;
  std::unique_ptr<WanModel> transformer_;
  std::optional<StepCache> for_prompt_, for_negative_;
  at::Tensor text_, negative_, image_, condition_;
};

}  // namespace

std::vector<std::string> generation_stages(const PipelineFolder& folder, const GenerationOptions& options) {
  std::vector<std::string> names{"prompt_embeds"};
  if (options.guidance > 1) names.emplace_back("negative_prompt_embeds");
  if (folder.takes_image()) names.insert(names.end(), {"image_embeds", "condition"});
  names.emplace_back("timesteps");
  for (int64_t i = 0; i < options.steps; ++i)
    names.insert(names.end(), {fmt::format("velocity.{}", i), fmt::format("latents.{}", i)});
  names.emplace_back("video");
  return names;
}

at::Tensor generate_video(const PipelineFolder& folder, const GenerationInputs& inputs,
                          const GenerationOptions& options, const StageHooks& hooks, const ShareDone& progress) {
  return Generation(folder, inputs, options, hooks, progress).run();
}

}  // namespace parity
