#include "models/clip/ported.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.hpp"
#include "models/clip/model.hpp"
#include "models/embedded_maps.hpp"
#include "ops/own.hpp"
#include "trace/program.hpp"

namespace parity {
namespace {

using ClipKind = std::pair<std::string_view, std::string_view>;

// Ends of paths; the first that fits.
constexpr std::array kClipEnds{
    ClipKind{"embeddings/_to_copy.0", "cast"},
    ClipKind{".patch_embedding", "conv"},
    ClipKind{"embeddings/cat.0", "copy"},
    ClipKind{".position_embedding", "embedding"},
    ClipKind{"embeddings", "residual"},
    ClipKind{"pre_layrnorm", "layer_norm"},
    ClipKind{".layer_norm1", "layer_norm"},
    ClipKind{".layer_norm2", "layer_norm"},
    ClipKind{"post_layernorm", "layer_norm"},
    ClipKind{"/attention.0", "attention"},
    ClipKind{".mlp.activation_fn", "gelu"},
    ClipKind{"_proj", "linear"},
    ClipKind{".mlp.fc1", "linear"},
    ClipKind{".mlp.fc2", "linear"},
    ClipKind{"penultimate", "copy"},
};

// Layers end with their second addition.
std::string_view clip_kind(std::string_view path) {
  for (const auto& [end, kind] : kClipEnds)
    if (path.ends_with(end)) return kind;
  return path.starts_with("encoder.layers.") ? "residual" : "";
}

// transformers before 5 has everything inside a module of its own, and so have the published checkpoints.
constexpr const char* kClipInside = "vision_model.";

std::string clip_prefix(const Dump& dump) {
  return dump.has_weight(std::string(kClipInside) + "embeddings.class_embedding") ? kClipInside : "";
}

// The root's results in the order of the output: the last hidden state, the pooled one, then all hidden states.
std::string penultimate_path(const ClipConfig& config) { return fmt::format("[{}]", 2 + config.layers - 1); }

class PortedClip final : public PortedModel {
 public:
  PortedClip(const Dump& dump, Precision precision, ClipOps ops)
      : dump_(dump),
        precision_(precision),
        weights_(weights_of(dump, [prefix = clip_prefix(dump)](const std::string& name) { return prefix + name; })),
        model_(clip_config(dump.provenance().value("config", nlohmann::json())), precision, weights_, std::move(ops)),
        map_(embedded_map(clip_prefix(dump).empty() ? "clip_vision" : "clip_vision_inside")) {
    if (const auto path = penultimate_path(model_.config()); load_program(dump).find(path))
      map_ += fmt::format("{} = penultimate\n", path);
  }

  at::Tensor forward(int call, Probe& probe) override { return model_.forward(pixels(call), probe).last_hidden; }
  std::vector<SelfPair> self_pairs() override {
    std::vector<SelfPair> pairs;
    ClipOps ops;
    ops.attention = [&pairs](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreForm& form) {
      const auto y = ops::encoder_attention(q, k, v, form);
      pairs.push_back({fmt::format("attention/layer.{}", pairs.size()), "attention", y.contiguous(),
                       ops::own_encoder_attention(q, k, v, form).contiguous()});
      return y;
    };
    NoProbe off;
    ClipModel(model_.config(), precision_, weights_, ops).forward(pixels(0), off);
    return pairs;
  }
  at::Tensor pixels(int call) const {
    if (!dump_.has_input("pixel_values", call))
      throw Error(
          fmt::format("[clip] {}: forward was recorded without the argument 'pixel_values'", dump_.file().string()));
    return dump_.input("pixel_values", call);
  }
  std::string_view map() const override { return map_; }
  std::string kind(std::string_view candidate_path) const override { return std::string(clip_kind(candidate_path)); }
  std::string description() const override {
    const auto& c = model_.config();
    return fmt::format("clip, {} layers, dim {}, {} heads, {} tokens", c.layers, c.dim, c.heads, c.tokens());
  }

 private:
  const Dump& dump_;
  Precision precision_;
  WeightSource weights_;
  ClipModel model_;
  std::string map_;
};

}  // namespace

bool is_clip_vision(const Dump& dump) {
  return dump.model() == "CLIPVisionModel" && dump.has_weight(clip_prefix(dump) + "embeddings.class_embedding");
}

ClipOps clip_ops(Kernels kernels) {
  ClipOps ops;
  if (kernels == Kernels::aten) return ops;
  ops.patch_embedding = ops::own_patch_embedding;
  ops.linear = [](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return ops::own_linear(x, weight, bias);
  };
  ops.attention = ops::own_encoder_attention;
  return ops;
}

std::unique_ptr<PortedModel> port_clip_vision(const Dump& dump, Precision precision, ClipOps ops) {
  return std::make_unique<PortedClip>(dump, precision, std::move(ops));
}

}  // namespace parity
