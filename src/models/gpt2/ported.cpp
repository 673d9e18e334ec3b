#include "models/gpt2/ported.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.hpp"
#include "models/embedded_maps.hpp"
#include "models/gpt2/model.hpp"
#include "models/gpt2/self_pairs.hpp"
#include "models/own_pages.hpp"
#include "ops/own.hpp"

namespace parity {
namespace {

using Gpt2Kind = std::pair<std::string_view, std::string_view>;

// Ends of paths; the first that fits.
constexpr std::array kGpt2Ends{
    Gpt2Kind{".wte", "embedding"},   Gpt2Kind{".wpe", "embedding"},         Gpt2Kind{"transformer/add.1", "residual"},
    Gpt2Kind{".ln_1", "layer_norm"}, Gpt2Kind{".ln_2", "layer_norm"},       Gpt2Kind{".ln_f", "layer_norm"},
    Gpt2Kind{".c_attn", "linear"},   Gpt2Kind{".c_proj", "linear"},         Gpt2Kind{".c_fc", "linear"},
    Gpt2Kind{"lm_head", "linear"},   Gpt2Kind{"/attention.0", "attention"}, Gpt2Kind{".mlp.act", "gelu"},
};

// Blocks end with their second addition.
std::string_view gpt2_kind(std::string_view path) {
  for (const auto& [end, kind] : kGpt2Ends)
    if (path.ends_with(end)) return kind;
  if (path.find(".mlp.act/") != std::string_view::npos) return "elementwise";
  return path.starts_with("transformer.h.") ? "residual" : "";
}

class PortedGpt2 final : public PortedModel {
 public:
  PortedGpt2(const Dump& dump, Precision precision, Gpt2Ops ops)
      : dump_(dump),
        precision_(precision),
        weights_(weights_of(dump, [](const std::string& name) { return name; })),
        model_(gpt2_config(dump.provenance().value("config", nlohmann::json())), precision, weights_, std::move(ops)) {}

  at::Tensor forward(int call, Probe& probe) override { return model_.forward(ids(call), nullptr, probe); }
  std::vector<SelfPair> self_pairs() override {
    auto pairs = gpt2_cached_pairs(model_, ids(0));
    if (precision_ == Precision::fp64 || model_.dtype() != at::kFloat) return pairs;
    for (auto& pair : gpt2_int8_pairs(model_.config(), weights_, ids(0))) pairs.push_back(std::move(pair));
    return pairs;
  }
  at::Tensor ids(int call) const {
    if (!dump_.has_input("input_ids", call))
      throw Error(
          fmt::format("[gpt2] {}: forward was recorded without the argument 'input_ids'", dump_.file().string()));
    return dump_.input("input_ids", call);
  }
  std::string_view map() const override { return embedded_map("gpt2"); }
  std::string kind(std::string_view candidate_path) const override { return std::string(gpt2_kind(candidate_path)); }
  std::string description() const override {
    const auto& c = model_.config();
    return fmt::format("gpt2, {} layers, dim {}, {} heads", c.layers, c.dim, c.heads);
  }

 private:
  const Dump& dump_;
  Precision precision_;
  WeightSource weights_;
  Gpt2Model model_;
};

}  // namespace

bool is_gpt2(const Dump& dump) {
  return dump.model() == "GPT2LMHeadModel" && dump.has_weight("transformer.h.0.attn.c_attn.weight");
}

Gpt2Ops gpt2_ops(Kernels kernels) {
  Gpt2Ops ops;
  if (kernels == Kernels::aten) return ops;
  using at::Tensor;
  ops.outputs_first = true;
  ops.kept = in_own_pages;
  ops.linear = [](const Tensor& x, const Tensor& w, const Tensor& b) { return ops::own_linear(x, w, b); };
  ops.linear_gelu = [](const Tensor& x, const Tensor& w, const Tensor& b) {
    return ops::own_linear(x, w, b, ops::Activation::gelu_new);
  };
  ops.logits = [](const Tensor& x, const Tensor& w) { return ops::own_linear(x, w, {}); };
  ops.attention = ops::own_causal_attention;
  ops.token_layer = ops::token_layer;
  ops.prompt_linear = [](const Tensor& x, const Tensor& w, const Tensor& b) { return at::linear(x, w, b); };
  ops.prompt_attention = ops::causal_attention;
  return ops;
}

std::unique_ptr<PortedModel> port_gpt2(const Dump& dump, Precision precision, Gpt2Ops ops) {
  return std::make_unique<PortedGpt2>(dump, precision, std::move(ops));
}

}  // namespace parity
