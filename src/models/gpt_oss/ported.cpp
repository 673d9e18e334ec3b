#include "models/gpt_oss/ported.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.hpp"
#include "models/embedded_maps.hpp"
#include "models/gpt_oss/model.hpp"
#include "models/gpt_oss/self_pairs.hpp"
#include "ops/own.hpp"

namespace parity {
namespace {

using GptOssKind = std::pair<std::string_view, std::string_view>;

// Ends of paths; the first that fits.
constexpr std::array kGptOssEnds{
    GptOssKind{".embed_tokens", "embedding"},
    GptOssKind{"norm", "rms_norm"},
    GptOssKind{"_proj", "linear"},
    GptOssKind{"lm_head", "linear"},
    GptOssKind{"/cat.0", "rope"},
    GptOssKind{"/cat.1", "rope"},
    GptOssKind{"/attention.0", "attention"},
    GptOssKind{".router", "linear"},
    GptOssKind{".router/topk.0", "copy"},
    GptOssKind{".router[2]", "copy"},
    GptOssKind{".router[1]", "elementwise"},
    GptOssKind{"/index.0", "copy"},
    GptOssKind{"/index.1", "copy"},
    GptOssKind{"/index.4", "copy"},
    GptOssKind{"/_grouped_mm.0", "linear"},
    GptOssKind{"/_grouped_mm.1", "linear"},
};

std::string_view gpt_oss_kind(std::string_view path) {
  for (const auto& [end, kind] : kGptOssEnds)
    if (path.ends_with(end)) return kind;
  if (path.find("rotary_emb") != std::string_view::npos) return "rope";
  if (path.find(".experts") != std::string_view::npos) return "elementwise";
  return path.starts_with("model.layers.") ? "residual" : "";
}

class PortedGptOss final : public PortedModel {
 public:
  PortedGptOss(const Dump& dump, Precision precision, GptOssOps ops)
      : dump_(dump),
        precision_(precision),
        ops_(std::move(ops)),
        weights_(weights_of(dump, [](const std::string& name) { return name; })),
        model_(gpt_oss_config(dump.provenance().value("config", nlohmann::json())), precision, weights_, ops_) {}

  at::Tensor forward(int call, Probe& probe) override { return model_.forward(ids(call), nullptr, probe); }
  std::vector<SelfPair> self_pairs() override {
    return gpt_oss_pairs({model_.config(), precision_, weights_, ops_}, ids(0));
  }
  at::Tensor ids(int call) const {
    if (!dump_.has_input("input_ids", call))
      throw Error(
          fmt::format("[gpt_oss] {}: forward was recorded without the argument 'input_ids'", dump_.file().string()));
    return dump_.input("input_ids", call);
  }
  std::string_view map() const override { return embedded_map("gpt_oss"); }
  std::string kind(std::string_view candidate_path) const override { return std::string(gpt_oss_kind(candidate_path)); }
  std::string description() const override {
    const auto& c = model_.config();
    return fmt::format("gpt-oss, {} layers, dim {}, {} heads over {}, {} of {} experts", c.layers, c.dim, c.heads,
                       c.key_heads, c.experts_per_token, c.experts);
  }

 private:
  const Dump& dump_;
  Precision precision_;
  GptOssOps ops_;
  WeightSource weights_;
  GptOssModel model_;
};

}  // namespace

bool is_gpt_oss(const Dump& dump) {
  return dump.model() == "GptOssForCausalLM" && dump.has_weight("model.layers.0.mlp.experts.gate_up_proj");
}

GptOssOps gpt_oss_ops(Kernels kernels) {
  GptOssOps ops;
  if (kernels == Kernels::aten) return ops;
  using at::Tensor;
  ops.outputs_first = true;
  ops.linear = [](const Tensor& x, const Tensor& w, const Tensor& b) { return ops::own_linear(x, w, b); };
  ops.expert_product = [](const Tensor& x, const Tensor& w) { return ops::own_linear(x, w, Tensor()); };
  ops.attention = ops::own_causal_attention;
  return ops;
}

std::unique_ptr<PortedModel> port_gpt_oss(const Dump& dump, Precision precision, GptOssOps ops) {
  return std::make_unique<PortedGptOss>(dump, precision, std::move(ops));
}

}  // namespace parity
