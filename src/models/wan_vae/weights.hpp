// The autoencoder's parameters, fetched by diffusers' names.
#pragma once
#include <variant>
#include <vector>

#include "core/precision.hpp"
#include "models/parameters.hpp"
#include "models/wan_vae/config.hpp"

namespace parity {

struct VaeResidualWeights {
  at::Tensor norm1;  // (in, 1, 1, 1)
  Affine conv1;      // (out, in, 3, 3, 3), (out)
  at::Tensor norm2;
  Affine conv2;
  Affine shortcut;  // (out, in, 1, 1, 1), undefined where the channels stay
};

struct VaeAttentionWeights {
  at::Tensor norm;      // (channels, 1, 1)
  Affine to_qkv, proj;  // (3 channels, channels, 1, 1), (channels, channels, 1, 1)
};

struct VaeResampleWeights {
  Affine conv;       // (out, in, 3, 3)
  Affine time_conv;  // (2 in or in, in, 3, 1, 1), undefined where time stays
};

using VaeLayerWeights = std::variant<VaeResidualWeights, VaeAttentionWeights, VaeResampleWeights>;

struct VaeHalfWeights {
  Affine conv_in;
  std::vector<VaeLayerWeights> layers;
  at::Tensor norm_out;
  Affine conv_out;
};

struct WanVaeWeights {
  VaeHalfWeights encoder, decoder;
  Affine quant_conv, post_quant_conv;
};

/// Throws Error naming the parameter when one is missing or has another shape than the configuration says.
WanVaeWeights load_wan_vae_weights(const WanVaeConfig& config, Precision precision, const WeightSource& source);

}  // namespace parity
