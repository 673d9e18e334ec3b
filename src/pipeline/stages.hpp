// The stages of a pipeline, each loaded for one use. Private to src/pipeline.
#pragma once
#include <memory>
#include <vector>

#include "models/checkpoint.hpp"
#include "models/clip/config.hpp"
#include "models/umt5/config.hpp"
#include "models/wan/checkpoint.hpp"
#include "models/wan/model.hpp"
#include "models/wan_vae/config.hpp"
#include "pipeline/folder.hpp"
#include "pipeline/video.hpp"

namespace parity {

class StageLoader {
 public:
  /// Reads configurations and names, no tensor. Throws Error: weights that do not fit their configuration, stages that
  /// do not fit each other, sizes of the video that they do not divide. Both outlive this.
  StageLoader(const PipelineFolder& folder, const GenerationOptions& options);

  /// (1, tokens, dim), zero where a token is padding, in the transformer's dtype.
  at::Tensor embed_text(const at::Tensor& ids, const at::Tensor& mask) const;
  /// (1, tokens, dim), the hidden state before the last layer, in the transformer's dtype.
  at::Tensor embed_image(const at::Tensor& pixels) const;
  /// (1, time factor + channels, latent frames, …): which frames are given, and their latents.
  at::Tensor condition(const at::Tensor& image) const;
  std::unique_ptr<WanModel> transformer() const;
  /// Latents as the sampler left them -> (1, 3, frames, height, width).
  at::Tensor decode(const at::Tensor& latents) const;

  at::ScalarType low() const { return redirect(options_.dtype, options_.precision); }  // the transformer's dtype
  const std::vector<int64_t>& latent_shape() const { return latent_shape_; }           // (1, channels, frames, h, w)

 private:
  void check_sizes() const;

  void open_image_encoder(const PipelineFolder& folder);

  const GenerationOptions& options_;
  Checkpoint text_, vae_;
  Umt5Config text_config_;
  ClipConfig image_config_;
  StoredName text_name_, vae_name_, image_name_;
  std::unique_ptr<Checkpoint> image_;
  WanCheckpoint transformer_;
  WanVaeConfig vae_config_;
  int64_t time_factor_, space_factor_;  // of the autoencoder
  std::vector<int64_t> latent_shape_;
};

}  // namespace parity
