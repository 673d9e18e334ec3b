// The sizes of a Wan-family transformer, read from a config.json or a recording's provenance, in either naming.
#pragma once
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "models/parameters.hpp"
#include "ops/rope_table.hpp"

namespace parity {

struct WanConfig {
  Grid patch{1, 2, 2};
  int64_t in_channels = 16, out_channels = 16;
  int64_t dim = 0, ffn_dim = 0, heads = 0, layers = 0;
  int64_t freq_dim = 256, text_dim = 4096;
  int64_t text_len = 512;       // text tokens of the context; the rest, before them, are image tokens
  int64_t image_tokens = 0;     // > 0: the originals' SkyReels-V2 cuts after this many tokens instead
  int64_t image_dim = 0;        // 0: text to video
  int64_t image_positions = 0;  // rows of the image embedder's positional table (two frames); 0: none
  int64_t rope_length = 1024;
  int64_t frames_per_block = 0;  // block-causal attention; 0: every token sees all
  bool sample_info = false;      // frame rate embedding
  bool cross_attn_norm = true;
  double eps = 1e-6;
  bool diffusers = false;  // naming and tensor layouts of diffusers' classes

  int64_t head_dim() const { return dim / heads; }
  bool image() const { return image_dim > 0; }
};

/// Keys of the originals (dim, num_heads, in_dim, …) or of diffusers (attention_head_dim, num_attention_heads,
/// in_channels, …). Throws Error naming the key when one is missing, of the wrong type or impossible (dim not a
/// multiple of heads, odd head size, …).
WanConfig wan_config(const nlohmann::json& config);

/// Every parameter's name (originals' naming) and shape, in the originals' order.
Parameters wan_parameters(const WanConfig& config);

}  // namespace parity
