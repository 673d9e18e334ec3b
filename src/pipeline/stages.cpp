#include "pipeline/stages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "models/clip/model.hpp"
#include "models/clip/original.hpp"
#include "models/umt5/model.hpp"
#include "models/umt5/original.hpp"
#include "models/wan_vae/model.hpp"
#include "models/wan_vae/names.hpp"
#include "models/wan_vae/original.hpp"

namespace parity {
namespace {

const StoredName kSameName = [](const std::string& name) { return name; };

// The checkpoint must outlive the source.
WeightSource source_of(const Checkpoint& stored, at::ScalarType dtype, const StoredName& stored_name = kSameName) {
  return {[&stored, dtype, stored_name](const std::string& name) { return stored.load(stored_name(name), dtype); },
          [&stored, stored_name](const std::string& name) { return stored.has(stored_name(name)); }};
}

// transformers before 5 has everything inside a module of its own, and so have the published checkpoints.
StoredName clip_names(const Checkpoint& stored) {
  const bool inside = stored.has("vision_model.embeddings.class_embedding");
  return [inside](const std::string& name) { return inside ? "vision_model." + name : name; };
}

at::Tensor zero_padding(at::Tensor embeds, const at::Tensor& mask) {
  if (!mask.defined()) return embeds;
  const int64_t used = mask.gt(0).sum().item<int64_t>(), tokens = embeds.size(1);
  embeds.narrow(1, used, tokens - used).zero_();
  return embeds;
}

}  // namespace

StageLoader::StageLoader(const PipelineFolder& folder, const GenerationOptions& options)
    : options_(options),
      text_(folder.stage("text_encoder")),
      vae_(folder.stage("vae")),
      transformer_(folder.stage("transformer")),
      vae_config_(
          wan_vae_config(folder.original() ? wan_vae_original_config(vae_, folder.settings("vae")) : vae_.json())) {
  text_config_ =
      umt5_config(folder.original() ? umt5_original_config(text_, folder.settings("text_encoder")) : text_.json());
  text_name_ = vae_name_ = kSameName;
  if (folder.original()) {
    text_name_ = umt5_original_name;
    vae_name_ = [this](const std::string& name) { return wan_vae_original_name(vae_config_, name); };
  }
  text_.check(umt5_parameters(text_config_), text_name_,
              [](const std::string& name) { return name == "encoder.embed_tokens.weight"; });
  vae_.check(wan_vae_parameters(vae_config_), vae_name_);
  if (folder.takes_image()) open_image_encoder(folder);
  const auto& halves = vae_config_.halves_time;
  time_factor_ = int64_t{1} << std::count(halves.begin(), halves.end(), true);
  space_factor_ = int64_t{1} << halves.size();
  check_sizes();
  latent_shape_ = {1, vae_config_.latent_channels, (options.frames - 1) / time_factor_ + 1,
                   options.height / space_factor_, options.width / space_factor_};
}

void StageLoader::open_image_encoder(const PipelineFolder& folder) {
  image_ = std::make_unique<Checkpoint>(folder.stage("image_encoder"));
  if (folder.original()) take_clip_original_apart(*image_);
  image_config_ =
      clip_config(folder.original() ? clip_original_config(*image_, folder.settings("image_encoder")) : image_->json());
  image_name_ = folder.original() ? clip_original_name : clip_names(*image_);
  image_->check(clip_parameters(image_config_), image_name_, [](const std::string& name) {
    return name.ends_with("embeddings.position_ids") || clip_original_surplus(name);
  });
}

void StageLoader::check_sizes() const {
  const auto& c = transformer_.config();
  const auto& patch = c.patch;
  if (options_.frames < 1 || (options_.frames - 1) % (time_factor_ * patch[0]) != 0)
    throw Error(
        fmt::format("{} frames: one more than a multiple of {} is needed", options_.frames, time_factor_ * patch[0]));
  if (options_.height < 1 || options_.height % (space_factor_ * patch[1]) != 0 || options_.width < 1 ||
      options_.width % (space_factor_ * patch[2]) != 0)
    throw Error(fmt::format("{} x {} pixels: multiples of {} and {} are needed", options_.height, options_.width,
                            space_factor_ * patch[1], space_factor_ * patch[2]));
  const int64_t joined = vae_config_.latent_channels + (image_ ? time_factor_ + vae_config_.latent_channels : 0);
  if (c.in_channels != joined || c.out_channels != vae_config_.latent_channels)
    throw Error(fmt::format("{}: takes {} channels and gives {}, the autoencoder's latents make {} and {}",
                            transformer_.file().string(), c.in_channels, c.out_channels, joined,
                            vae_config_.latent_channels));
  if (const int64_t width = text_config_.dim; c.text_dim != width)
    throw Error(fmt::format("{}: reads texts of width {}, the text encoder's have {}", transformer_.file().string(),
                            c.text_dim, width));
}

at::Tensor StageLoader::embed_text(const at::Tensor& ids, const at::Tensor& mask) const {
  const Umt5Model model(text_config_, options_.precision, source_of(text_, options_.dtype, text_name_));
  NoProbe off;
  return zero_padding(model.forward({ids, mask}, off).to(low()), mask);
}

at::Tensor StageLoader::embed_image(const at::Tensor& pixels) const {
  const ClipModel model(image_config_, options_.precision, source_of(*image_, options_.vae_dtype, image_name_));
  NoProbe off;
  return model.forward(pixels, off).penultimate.to(low());
}

at::Tensor StageLoader::condition(const at::Tensor& image) const {
  const WanVaeModel model(vae_config_, options_.precision, source_of(vae_, options_.vae_dtype, vae_name_));
  NoProbe off;
  const auto first = image.to(model.dtype()).unsqueeze(2);
  auto rest = first.sizes().vec();
  rest[2] = options_.frames - 1;
  const auto encoded = model.encode(at::cat({first, at::zeros(rest, first.options())}, 2), VaeWay::chunks, off);
  const auto latents = model.to_transformer(encoded.to(redirect(at::kFloat, options_.precision)), off);
  auto shape = latents.sizes().vec();
  shape[1] = time_factor_;
  const auto given = at::zeros(shape, latents.options());
  given.narrow(2, 0, 1).fill_(1);
  return at::cat({given, latents}, 1);
}

std::unique_ptr<WanModel> StageLoader::transformer() const {
  const std::string said = transformer_.dtype_path();
  const auto& path = wan_dtype_path(said.empty() ? "wan" : said);  // the originals say nothing: autocast, fp32 weights
  return std::make_unique<WanModel>(transformer_.config(), path, options_.dtype, options_.precision,
                                    transformer_.weights(path, options_.dtype));
}

at::Tensor StageLoader::decode(const at::Tensor& latents) const {
  const WanVaeModel model(vae_config_, options_.precision, source_of(vae_, options_.vae_dtype, vae_name_));
  NoProbe off;
  return model.decode(model.from_transformer(latents.to(model.dtype()), off), VaeWay::chunks, off);
}

}  // namespace parity
