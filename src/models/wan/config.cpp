#include "models/wan/config.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/config_keys.hpp"

namespace parity {
namespace {

constexpr ConfigKeys kKeys{"wan", "a Wan or SkyReels-V2 transformer's"};

template <typename T>
T take(const nlohmann::json& config, const char* key, std::optional<T> otherwise = std::nullopt) {
  return kKeys.take<T>(config, key, otherwise);
}

int64_t count(const nlohmann::json& config, const char* key, std::optional<int64_t> otherwise = std::nullopt) {
  return take<int64_t>(config, key, otherwise);
}

WanConfig from_diffusers(const nlohmann::json& j) {
  WanConfig c;
  c.diffusers = true;
  c.heads = count(j, "num_attention_heads");
  c.dim = c.heads * count(j, "attention_head_dim");
  c.in_channels = count(j, "in_channels", 16), c.out_channels = count(j, "out_channels", c.in_channels);
  c.layers = count(j, "num_layers"), c.image_dim = count(j, "image_dim", 0);
  c.image_positions = count(j, "pos_embed_seq_len", 0);
  c.rope_length = count(j, "rope_max_seq_len", 1024);
  // A block of one frame is causal in the originals and bidirectional in diffusers.
  const auto block = count(j, "num_frame_per_block", 1);
  c.frames_per_block = block > 1 ? block : 0;
  return c;
}

WanConfig from_original(const nlohmann::json& j) {
  WanConfig c;
  c.dim = count(j, "dim"), c.heads = count(j, "num_heads"), c.layers = count(j, "num_layers");
  c.in_channels = count(j, "in_dim", 16), c.out_channels = count(j, "out_dim", 16);
  c.text_len = count(j, "text_len", 512), c.rope_length = count(j, "rope_len", 1024);
  const auto type = take<std::string>(j, "model_type", "t2v");
  if (type != "t2v") c.image_dim = count(j, "image_dim", 1280), c.image_tokens = count(j, "image_tokens", 257);
  if (type == "flf2v") c.image_positions = int64_t{2} * 257;
  c.frames_per_block = count(j, "num_frame_per_block", 0);
  return c;
}

void check(const WanConfig& c) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw Error("[wan] impossible configuration: " + what);
  };
  require(c.heads > 0 && c.dim > 0 && c.dim % c.heads == 0,
          fmt::format("dim {} is not a multiple of {} heads", c.dim, c.heads));
  require(c.head_dim() % 2 == 0 && c.head_dim() >= 6,
          fmt::format("heads of {} cannot be turned along three axes", c.head_dim()));
  require(c.layers > 0 && c.layers < 1000, fmt::format("{} layers", c.layers));
  require(c.ffn_dim > 0 && c.text_dim > 0 && c.freq_dim > 0 && c.freq_dim % 2 == 0,
          "sizes must be positive, freq_dim even");
  for (const auto p : c.patch) require(p > 0, "a patch without extent");
}

}  // namespace

WanConfig wan_config(const nlohmann::json& config) {
  if (!config.is_object())
    throw Error("[wan] the recording has no model configuration: record it with the model's config");
  auto c = config.contains("num_attention_heads") ? from_diffusers(config) : from_original(config);
  const auto patch = take<std::vector<int64_t>>(config, "patch_size", std::vector<int64_t>{1, 2, 2});
  if (patch.size() != 3) throw Error(fmt::format("[wan] patch_size has {} numbers, not 3", patch.size()));
  std::copy(patch.begin(), patch.end(), c.patch.begin());
  c.ffn_dim = count(config, "ffn_dim"), c.freq_dim = count(config, "freq_dim", 256),
  c.text_dim = count(config, "text_dim", 4096);
  c.sample_info = take<bool>(config, "inject_sample_info", false);
  c.cross_attn_norm = take<bool>(config, "cross_attn_norm", true);
  c.eps = take<double>(config, "eps", 1e-6);
  check(c);
  return c;
}

Parameters wan_parameters(const WanConfig& c) {
  Parameters all;
  const auto affine = [&](const std::string& name, std::vector<int64_t> weight) {
    const auto out = weight[0];
    all.emplace_back(name + ".weight", std::move(weight));
    all.emplace_back(name + ".bias", std::vector<int64_t>{out});
  };
  const auto attention = [&](const std::string& name, bool image) {
    for (const auto* part : {".q", ".k", ".v", ".o"}) affine(name + part, {c.dim, c.dim});
    for (const auto* part : {".norm_q", ".norm_k"})
      all.emplace_back(name + part + ".weight", std::vector<int64_t>{c.dim});
    if (!image) return;
    for (const auto* part : {".k_img", ".v_img"}) affine(name + part, {c.dim, c.dim});
    all.emplace_back(name + ".norm_k_img.weight", std::vector<int64_t>{c.dim});
  };
  affine("patch_embedding", {c.dim, c.in_channels, c.patch[0], c.patch[1], c.patch[2]});
  affine("text_embedding.0", {c.dim, c.text_dim}), affine("text_embedding.2", {c.dim, c.dim});
  affine("time_embedding.0", {c.dim, c.freq_dim}), affine("time_embedding.2", {c.dim, c.dim});
  affine("time_projection.1", {6 * c.dim, c.dim});
  if (c.sample_info) {
    all.emplace_back("fps_embedding.weight", std::vector<int64_t>{2, c.dim});
    affine("fps_projection.0", {c.dim, c.dim}), affine("fps_projection.2", {6 * c.dim, c.dim});
  }
  for (int64_t i = 0; i < c.layers; ++i) {
    const auto block = fmt::format("blocks.{}.", i);
    all.emplace_back(block + "modulation", std::vector<int64_t>{1, 6, c.dim});
    attention(block + "self_attn", false), attention(block + "cross_attn", c.image());
    if (c.cross_attn_norm) affine(block + "norm3", {c.dim});
    affine(block + "ffn.0", {c.ffn_dim, c.dim}), affine(block + "ffn.2", {c.dim, c.ffn_dim});
  }
  all.emplace_back("head.modulation", std::vector<int64_t>{1, 2, c.dim});
  affine("head.head", {c.out_channels * c.patch[0] * c.patch[1] * c.patch[2], c.dim});
  if (!c.image()) return all;
  affine("img_emb.proj.0", {c.image_dim}), affine("img_emb.proj.1", {c.image_dim, c.image_dim});
  affine("img_emb.proj.3", {c.dim, c.image_dim}), affine("img_emb.proj.4", {c.dim});
  if (c.image_positions) all.emplace_back("img_emb.emb_pos", std::vector<int64_t>{1, c.image_positions, c.image_dim});
  return all;
}

}  // namespace parity
