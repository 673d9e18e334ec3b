#include "models/wan/ported.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/wan/inputs.hpp"
#include "models/wan/kinds.hpp"
#include "models/wan/maps.hpp"
#include "models/wan/names.hpp"

namespace parity {
namespace {

const nlohmann::json& configuration(const Dump& dump) {
  static const nlohmann::json none;
  const auto found = dump.provenance().find("config");
  return found == dump.provenance().end() ? none : *found;
}

bool diffusers_names(const Dump& dump) { return dump.has_weight("condition_embedder.time_proj.weight"); }

WeightSource wan_weights_of(const Dump& dump) {
  const bool diffusers = diffusers_names(dump);
  return weights_of(dump, [diffusers](const std::string& name) { return diffusers ? wan_diffusers_name(name) : name; });
}

std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool under_autocast(const Dump& dump) {
  const auto found = dump.provenance().find("autocast");
  return found != dump.provenance().end() && found->is_object() && found->value("enabled", false);
}

WanConfig config_of(const Dump& dump) {
  auto config = wan_config(configuration(dump));
  if (config.diffusers != diffusers_names(dump))
    throw Error(fmt::format("[wan] {}: configuration and weights follow different namings", dump.file().string()));
  // SkyReels-V2 cuts the context after a fixed number of image tokens, Wan2.1 before a fixed number of text tokens.
  if (wan_dtype_path_of(dump).name == "wan") config.image_tokens = 0;
  return config;
}

class PortedWan final : public PortedModel {
 public:
  PortedWan(const Dump& dump, Precision precision, WanOps ops)
      : dump_(dump),
        low_(wan_low_dtype(dump)),
        model_(config_of(dump), wan_dtype_path_of(dump), low_, precision, wan_weights_of(dump), std::move(ops)) {
    const auto& config = model_.config();
    const auto inputs = wan_inputs(dump, 0, config);
    WanMapTraits traits;
    traits.half = low_ != at::kFloat;
    traits.fps_tensor = dump.has_input("fps", 0);
    auto latents = inputs.latents.scalar_type();
    if (inputs.condition.defined()) latents = c10::promoteTypes(latents, inputs.condition.scalar_type());
    traits.latents_cast = latents != low_;
    if (config.diffusers) {
      const auto time = dump.weight("condition_embedder.time_embedder.linear_1.weight").scalar_type();
      traits.time_half = time != at::kFloat, traits.time_cast = time != low_;
    }
    map_ = wan_map(config, model_.path(), traits);
  }

  at::Tensor forward(int call, Probe& probe) override {
    return model_.forward(wan_inputs(dump_, call, model_.config()), probe);
  }
  std::string_view map() const override { return map_; }
  std::string kind(std::string_view candidate_path) const override { return std::string(wan_kind(candidate_path)); }
  std::string description() const override {
    const auto& c = model_.config();
    return fmt::format("wan, cast placement {}, {} layers, dim {}, {}{}", model_.path().name, c.layers, c.dim,
                       c.image() ? "i2v" : "t2v", c.frames_per_block ? ", block-causal" : "");
  }

 private:
  const Dump& dump_;
  at::ScalarType low_;
  WanModel model_;
  std::string map_;
};

}  // namespace

bool is_wan_transformer(const Dump& dump) {
  for (const auto* name : {"WanTransformer3DModel", "SkyReelsV2Transformer3DModel", "WanOriginal", "WanModel"})
    if (dump.model() == name) return true;
  return dump.has_weight("blocks.0.cross_attn.norm_k.weight") || dump.has_weight("condition_embedder.time_proj.weight");
}

const WanDtypePath& wan_dtype_path_of(const Dump& dump) {
  if (diffusers_names(dump)) {
    const auto type = text_of(configuration(dump), "_class_name");
    return wan_dtype_path(
        dump.model() == "SkyReelsV2Transformer3DModel" || type == "SkyReelsV2Transformer3DModel" ? "dsky" : "dwan");
  }
  if (const auto named = text_of(configuration(dump), "dtype_path"); !named.empty()) return wan_dtype_path(named);
  if (dump.weight("blocks.0.self_attn.q.weight").scalar_type() == at::kFloat) return wan_dtype_path("wan");
  return wan_dtype_path(under_autocast(dump) ? "sky_ac" : "sky_noac");
}

at::ScalarType wan_low_dtype(const Dump& dump) {
  if (const auto low = text_of(configuration(dump), "low"); !low.empty()) return parse_dtype(low);
  if (under_autocast(dump)) return parse_dtype(text_of(dump.provenance().at("autocast"), "dtype"));
  return dump.weight(diffusers_names(dump) ? "blocks.0.attn1.to_q.weight" : "blocks.0.self_attn.q.weight")
      .scalar_type();
}

WanOps wan_ops(Kernels kernels) {
  WanOps ops;
  if (kernels == Kernels::aten) return ops;
  ops.patch_embedding = ops::own_patch_embedding;
  ops.linear = ops::own_linear_nd;
  ops.attention = ops::own_attention;
  return ops;
}

WanOps fast_wan_ops() {
  WanOps ops;
  ops.attention = ops::own_attention;
  ops.gelu = [](at::Tensor x, GeluForm form) {
    return form == GeluForm::tanh ? ops::own_gelu_tanh(std::move(x)) : ops::gelu(std::move(x), form);
  };
  ops.norm_modulate = ops::norm_modulate;
  ops.gate_residual = ops::gate_residual;
  ops.norm_turn = ops::norm_turn;
  return ops;
}

std::unique_ptr<PortedModel> port_wan(const Dump& dump, Precision precision, WanOps ops) {
  return std::make_unique<PortedWan>(dump, precision, std::move(ops));
}

std::unique_ptr<PortedModel> port_wan(const Dump& dump, Precision precision) {
  return port_wan(dump, precision, WanOps{});
}

}  // namespace parity
