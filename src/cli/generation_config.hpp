// What `generate` is told, on the command line and by a file.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "pipeline/video.hpp"

namespace parity::cli {

struct GenerateOptions {
  Common common;
  GenerationOptions generation;
  std::string config, pipeline, inputs, dtype = "bf16", vae_dtype = "fp32", out, record, reference;
  nlohmann::json settings = nlohmann::json::object();  // PipelineFolder's
  std::optional<double> min_psnr;
  double rate = 16;
  bool blame = false;
};

/// Completes `options` from options.config: a pipeline's folder; a JSON file with `pipeline`, `inputs` and `reference`
/// (relative to it) and any of settings (of an original repository's stages, PipelineFolder), steps, guidance, frames,
/// height, width, seed, dtype, vae_dtype; or the name of an embedded one ("tiny-t2v"). What `command` was given on the
/// command line stays. Throws Error: none of these, an unknown key, a value of another type, no inputs.
void complete_from_config(GenerateOptions& options, const CLI::App& command);

}  // namespace parity::cli
