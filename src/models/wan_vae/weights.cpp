#include "models/wan_vae/weights.hpp"

namespace parity {
namespace {

class VaeLoader {
 public:
  VaeLoader(const WanVaeConfig& config, Precision precision, const WeightSource& source)
      : weights_("wan-vae", wan_vae_parameters(config), source), precision_(precision) {}

  at::Tensor tensor(const std::string& name) const {
    const auto found = weights_.get(name);
    return found.to(redirect(found.scalar_type(), precision_));
  }
  Affine affine(const std::string& name) const { return {tensor(name + ".weight"), tensor(name + ".bias")}; }

  VaeLayerWeights layer(const VaeLayer& l) const {
    const auto name = [&](const char* part) { return l.path + part; };
    if (l.stage == VaeStage::residual)
      return VaeResidualWeights{tensor(name(".norm1.gamma")), affine(name(".conv1")), tensor(name(".norm2.gamma")),
                                affine(name(".conv2")), l.in == l.out ? Affine{} : affine(name(".conv_shortcut"))};
    if (l.stage == VaeStage::attention)
      return VaeAttentionWeights{tensor(name(".norm.gamma")), affine(name(".to_qkv")), affine(name(".proj"))};
    const bool time = l.stage == VaeStage::upsample_time || l.stage == VaeStage::downsample_time;
    return VaeResampleWeights{affine(name(".resample.1")), time ? affine(name(".time_conv")) : Affine{}};
  }

  VaeHalfWeights half(const VaeHalf& h) const {
    VaeHalfWeights out{
        affine(h.path + ".conv_in"), {}, tensor(h.path + ".norm_out.gamma"), affine(h.path + ".conv_out")};
    for (const VaeLayer& l : h.layers) out.layers.push_back(layer(l));
    return out;
  }

 private:
  ShapedWeights weights_;
  Precision precision_;
};

}  // namespace

WanVaeWeights load_wan_vae_weights(const WanVaeConfig& config, Precision precision, const WeightSource& source) {
  const VaeLoader loader(config, precision, source);
  return {loader.half(wan_vae_encoder(config)), loader.half(wan_vae_decoder(config)), loader.affine("quant_conv"),
          loader.affine("post_quant_conv")};
}

}  // namespace parity
