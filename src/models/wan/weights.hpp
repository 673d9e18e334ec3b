// The model's parameters, fetched by name and brought into the dtype they are used in.
#pragma once
#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "core/precision.hpp"
#include "models/parameters.hpp"
#include "models/wan/config.hpp"
#include "models/wan/dtype_path.hpp"
#include "ops/rope_table.hpp"

namespace parity {

struct WanAttentionWeights {
  Affine q, k, v, o;          // (dim, dim), (dim)
  at::Tensor norm_q, norm_k;  // (dim)
  Affine k_img, v_img;        // image to video only
  at::Tensor norm_k_img;
};

struct WanBlockWeights {
  at::Tensor modulation;  // (1, 6, dim), fp32 or wider
  WanAttentionWeights self_attn, cross_attn;
  Affine norm3;       // (dim), undefined without cross_attn_norm
  Affine ffn0, ffn2;  // (ffn_dim, dim), (dim, ffn_dim)
};

struct WanWeights {
  Affine patch_embedding;  // (dim, channels, pt, ph, pw)
  Affine time0, time2, time_projection;
  Affine text0, text2;
  at::Tensor fps_embedding;  // (2, dim)
  Affine fps0, fps2;
  Affine image_norm1, image1, image3, image_norm2;
  at::Tensor image_position;  // (1, positions, image_dim) or undefined
  std::vector<WanBlockWeights> blocks;
  at::Tensor head_modulation;  // (1, 2, dim), as it is kept: added to the time embedding without a cast
  Affine head;
  RopeTable rope;  // recorded if the source has it, else computed
};

/// Loads all parameters, each in the dtype its layer computes in under `path`, `low` and `precision`; a parameter
/// already there is not copied. Throws Error naming the parameter when one is missing or has another shape than the
/// configuration says.
WanWeights load_wan_weights(const WanConfig& config, const WanDtypePath& path, at::ScalarType low, Precision precision,
                            const WeightSource& source);

}  // namespace parity
