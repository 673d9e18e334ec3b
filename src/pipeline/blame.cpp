#include "pipeline/blame.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "measure/measure.hpp"

namespace parity {
namespace {

double relative_error(const std::string& stage, const at::Tensor& reference, const at::Tensor& value) {
  if (reference.sizes() != value.sizes())
    throw Error(fmt::format("stage {}: the reference has [{}], these inputs make it [{}]", stage,
                            fmt::join(reference.sizes(), ", "), fmt::join(value.sizes(), ", ")));
  return measure_sums(reference, value).rel_l2.value_or(0);
}

// (frames): mean square error of each.
at::Tensor square_errors(const at::Tensor& reference, const at::Tensor& video) {
  return (frames_of(video).to(at::kDouble) - frames_of(reference).to(at::kDouble)).pow(2).flatten(1).mean(1);
}

std::optional<double> decibels(double mean_square) {
  return mean_square > 0 ? std::optional(-10 * std::log10(mean_square)) : std::nullopt;
}

class Comparison {
 public:
  Comparison(const PipelineFolder& folder, const GenerationInputs& inputs, const GenerationOptions& options,
             const StageValues& reference, const ShareDone& progress)
      : folder_(folder), inputs_(inputs), options_(options), reference_(reference), progress_(progress) {
    for (const std::string& name : generation_stages(folder, options))
      if (reference.contains(name)) result_.stages.push_back({name, part_of_stage(name), {}, {}, {}});
  }

  StageComparison run(bool blame, const StageHooks& hooks, at::Tensor& video) {
    runs_ = blame ? 2 + result_.stages.size() : 2;
    video = free_run(hooks);
    forced_run();
    const auto reference = reference_.find("video");
    if (reference == reference_.end()) return result_;
    const auto errors = square_errors(reference->second, video);
    const double mean = errors.mean().item<double>();
    result_.psnr = decibels(mean), result_.psnr_min = decibels(errors.max().item<double>());
    result_.frame_rms = std::sqrt(mean);
    if (blame && mean > 0) share_out(reference->second, mean);
    return result_;
  }

 private:
  at::Tensor generate(const StageHooks& hooks) {
    const double part = 1.0 / static_cast<double>(runs_), begin = part * static_cast<double>(done_++);
    return generate_video(folder_, inputs_, options_, hooks,
                          progress_ ? part_of(progress_, begin, begin + part) : ShareDone{});
  }

  StageError* row(const std::string& name) {
    const auto found = std::find_if(result_.stages.begin(), result_.stages.end(),
                                    [&](const StageError& stage) { return stage.name == name; });
    return found == result_.stages.end() ? nullptr : &*found;
  }

  at::Tensor free_run(const StageHooks& outer) {
    StageHooks hooks = outer;
    hooks.made = [&](const std::string& name, at::Tensor computed) {
      if (StageError* stage = row(name)) stage->free = relative_error(name, reference_.at(name), computed);
      return outer.made(name, std::move(computed));
    };
    return generate(hooks);
  }

  void forced_run() {
    StageHooks hooks;
    hooks.made = [&](const std::string& name, at::Tensor computed) {
      StageError* stage = row(name);
      if (!stage) return computed;
      stage->forced = relative_error(name, reference_.at(name), computed);
      return reference_.at(name).to(computed.scalar_type());
    };
    generate(hooks);
  }

  // The frames' mean square error with the first `taken` stages from the reference.
  double error_behind(size_t taken, const at::Tensor& reference) {
    StageHooks hooks;
    hooks.given = [&](const std::string& name) -> std::optional<at::Tensor> {
      const StageError* stage = row(name);
      if (!stage || stage - result_.stages.data() >= static_cast<std::ptrdiff_t>(taken)) return std::nullopt;
      const auto& value = reference_.at(name);
      return value.to(redirect(value.scalar_type(), options_.precision));
    };
    return square_errors(reference, generate(hooks)).mean().item<double>();
  }

  void share_out(const at::Tensor& reference, double whole) {
    double before = whole;
    for (size_t taken = 1; taken <= result_.stages.size(); ++taken) {
      const double after = taken == result_.stages.size() ? 0 : error_behind(taken, reference);
      result_.stages[taken - 1].share = (before - after) / whole;
      before = after;
    }
  }

  const PipelineFolder& folder_;
  const GenerationInputs& inputs_;
  const GenerationOptions& options_;
  const StageValues& reference_;
  const ShareDone& progress_;
  StageComparison result_;
  size_t runs_ = 2, done_ = 0;
};

}  // namespace

std::string part_of_stage(const std::string& stage) {
  if (stage.starts_with("velocity.")) return "transformer";
  if (stage.starts_with("latents.")) return "sampler";
  static const std::map<std::string, std::string> parts{
      {"prompt_embeds", "text_encoder"}, {"negative_prompt_embeds", "text_encoder"},
      {"image_embeds", "image_encoder"}, {"condition", "vae_encoder"},
      {"timesteps", "sampler"},          {"video", "vae_decoder"}};
  return parts.at(stage);
}

std::vector<std::pair<std::string, double>> shares_by_part(const StageComparison& compared) {
  std::map<std::string, double> sums;
  for (const StageError& stage : compared.stages)
    if (stage.share) sums[stage.part] += *stage.share;
  std::vector<std::pair<std::string, double>> parts(sums.begin(), sums.end());
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return parts;
}

at::Tensor frames_of(const at::Tensor& video) {
  const auto wide = video[0].to(video.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  return (wide / 2 + 0.5).clamp(0, 1).permute({1, 2, 3, 0}).to(at::kFloat).contiguous();
}

StageComparison compare_stages(const PipelineFolder& folder, const GenerationInputs& inputs,
                               const GenerationOptions& options, const StageValues& reference, bool blame,
                               const StageHooks& hooks, at::Tensor& video, const ShareDone& progress) {
  return Comparison(folder, inputs, options, reference, progress).run(blame, hooks, video);
}

}  // namespace parity
