#include "models/wan_vae/ported.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/error.hpp"
#include "models/embedded_maps.hpp"
#include "models/wan_vae/model.hpp"
#include "models/wan_vae/self_pairs.hpp"

namespace parity {
namespace {

// forward's arguments, by what is done with them.
struct VaeTask {
  std::string_view input, name;
  bool encodes, decodes, scaled;
};
constexpr std::array kVaeTasks{
    VaeTask{"latents", "decode", false, true, true}, VaeTask{"z", "decode, unscaled", false, true, false},
    VaeTask{"video", "encode", true, false, true}, VaeTask{"x", "encode, unscaled", true, false, false},
    VaeTask{"sample", "encode and decode", true, true, false}};

const VaeTask& task_of(const Dump& dump) {
  for (const VaeTask& task : kVaeTasks)
    if (dump.has_input(std::string(task.input), 0)) return task;
  throw Error(
      fmt::format("[wan-vae] {}: forward was recorded with none of the arguments 'latents', 'z' (decode), 'video', 'x' "
                  "(encode), 'sample' (both)",
                  dump.file().string()));
}

using VaeKind = std::pair<std::string_view, std::string_view>;

// The last part of a path without its number; the first that fits. Residual blocks end with their addition, as
// attention does.
constexpr std::array kVaeKinds{
    VaeKind{".resample.0", "copy"},   VaeKind{".resample.1", "conv"},    VaeKind{"/attention.0", "attention"},
    VaeKind{".to_qkv", "conv"},       VaeKind{".proj", "conv"},          VaeKind{".nonlinearity", "silu"},
    VaeKind{".norm1", "rms_norm"},    VaeKind{".norm2", "rms_norm"},     VaeKind{".norm", "rms_norm"},
    VaeKind{".norm_out", "rms_norm"}, VaeKind{".conv_shortcut", "conv"}, VaeKind{".conv1", "conv"},
    VaeKind{".conv2", "conv"},        VaeKind{".conv_in", "conv"},       VaeKind{".conv_out", "conv"},
    VaeKind{".time_conv", "conv"},    VaeKind{"quant_conv", "conv"},     VaeKind{"/add.0", "elementwise"},
    VaeKind{"/div.0", "elementwise"}, VaeKind{"/sub.0", "elementwise"},
};

std::string_view vae_kind(std::string_view path) {
  if (path.empty()) return "elementwise";  // cut off to [-1, 1], or scaled
  for (const auto& [end, kind] : kVaeKinds)
    if (path.ends_with(end)) return kind;
  return std::isdigit(static_cast<unsigned char>(path.back())) ? "residual" : "";
}

class PortedWanVae final : public PortedModel {
 public:
  PortedWanVae(const Dump& dump, Precision precision, WanVaeOps ops)
      : dump_(dump),
        task_(task_of(dump)),
        precision_(precision),
        model_(wan_vae_config(dump.provenance().value("config", nlohmann::json())), precision,
               weights_of(dump, [](const std::string& name) { return name; }), std::move(ops)) {}

  at::Tensor forward(int call, Probe& probe) override {
    auto x = input(call);
    if (task_.encodes) x = model_.encode(x, VaeWay::chunks, probe);
    if (!task_.decodes) return task_.scaled ? model_.to_transformer(x, probe) : x;
    if (task_.encodes) x = x.narrow(1, 0, model_.config().latent_channels);  // the distribution's most likely value
    return model_.decode(task_.scaled ? model_.from_transformer(x, probe) : x, VaeWay::chunks, probe);
  }
  std::vector<SelfPair> self_pairs() override {
    NoProbe off;
    const auto x = input(0);
    if (task_.encodes) return wan_vae_encode_pairs(model_, x);
    return wan_vae_decode_pairs(model_, task_.scaled ? model_.from_transformer(x, off) : x);
  }
  std::string_view map() const override { return embedded_map("wan_vae"); }
  std::string kind(std::string_view candidate_path) const override { return std::string(vae_kind(candidate_path)); }
  std::string description() const override {
    const auto& c = model_.config();
    return fmt::format("wan-vae, {}, {} levels, {} channels at full size", task_.name, c.widths.size(),
                       task_.decodes ? c.decoder_dim : c.encoder_dim);
  }

 private:
  at::Tensor input(int call) const {
    const auto x = dump_.input(std::string(task_.input), call);
    return x.to(redirect(x.scalar_type(), precision_));
  }

  const Dump& dump_;
  const VaeTask& task_;
  Precision precision_;
  WanVaeModel model_;
};

}  // namespace

bool is_wan_vae(const Dump& dump) {
  return dump.model() == "AutoencoderKLWan" && dump.has_weight("post_quant_conv.weight");
}

WanVaeOps wan_vae_ops(Kernels kernels) {
  WanVaeOps ops;
  if (kernels == Kernels::aten) return ops;
  ops.causal_conv = ops::own_causal_conv3d;
  ops.conv = ops::own_conv2d;
  ops.attention = [](const auto& q, const auto& k, const auto& v) { return ops::own_attention(q, k, v, {}); };
  return ops;
}

WanVaeOps fast_wan_vae_ops() {
  WanVaeOps ops;
  ops.causal_conv = ops::causal_conv3d_at_once;
  ops.attention = [](const auto& q, const auto& k, const auto& v) { return ops::own_attention(q, k, v, {}); };
  return ops;
}

std::unique_ptr<PortedModel> port_wan_vae(const Dump& dump, Precision precision, WanVaeOps ops) {
  return std::make_unique<PortedWanVae>(dump, precision, std::move(ops));
}

}  // namespace parity
