// Which stage of a generation makes the frames differ from the reference's.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "pipeline/recording.hpp"

namespace parity {

struct StageError {
  std::string name;
  std::string part;              // of the pipeline: text_encoder, transformer, … (part_of_stage)
  std::optional<double> free;    // relative L2 on what the port computed before
  std::optional<double> forced;  // on the reference's values: the stage's own
  std::optional<double> share;   // of the frames' mean square error
};

struct StageComparison {
  std::vector<StageError> stages;  // in order; those that the reference holds
  std::optional<double> psnr;      // of all frames in [0, 1], dB; absent: identical
  std::optional<double> psnr_min;  // of the worst frame
  double frame_rms = 0;            // root mean square of the difference, [0, 1]
};

/// Which part of the pipeline makes a stage: text_encoder, image_encoder, vae_encoder, transformer, sampler,
/// vae_decoder.
std::string part_of_stage(const std::string& stage);

/// The shares of a part's stages together, the largest first; empty when nothing was blamed.
std::vector<std::pair<std::string, double>> shares_by_part(const StageComparison& compared);

/// (1, 3, frames, height, width) in [-1, 1] -> (frames, height, width, 3) fp32 in [0, 1], as diffusers'
/// VideoProcessor.postprocess_video.
at::Tensor frames_of(const at::Tensor& video);

/// Generates once free and once with every stage on the reference's values. `blame`: also once more for each stage,
/// with it and all before it taken from the reference; the share of a stage is what taking it, too, removes of the
/// frames' mean square error. `video`: what the free run made, to be shown. Throws Error when the reference's tensors
/// have other shapes.
StageComparison compare_stages(const PipelineFolder& folder, const GenerationInputs& inputs,
                               const GenerationOptions& options, const StageValues& reference, bool blame,
                               const StageHooks& hooks, at::Tensor& video, const ShareDone& progress = {});

}  // namespace parity
