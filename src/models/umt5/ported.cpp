#include "models/umt5/ported.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.hpp"
#include "models/embedded_maps.hpp"
#include "models/umt5/model.hpp"
#include "models/umt5/self_pairs.hpp"
#include "ops/own.hpp"

namespace parity {
namespace {

using Umt5Kind = std::pair<std::string_view, std::string_view>;

// Ends of paths; the first that fits.
constexpr std::array kUmt5Ends{
    Umt5Kind{".embed_tokens", "embedding"},  Umt5Kind{"layer_norm", "rms_norm"},
    Umt5Kind{"/buckets.0", "copy"},          Umt5Kind{".relative_attention_bias", "embedding"},
    Umt5Kind{"/padded_bias.0", "copy"},      Umt5Kind{"/attention.0", "attention"},
    Umt5Kind{".DenseReluDense.act", "gelu"}, Umt5Kind{".layer.0", "residual"},
    Umt5Kind{".layer.1", "residual"},        Umt5Kind{".DenseReluDense/mul.0", "elementwise"},
};

std::string_view umt5_kind(std::string_view path) {
  for (const auto& [end, kind] : kUmt5Ends)
    if (path.ends_with(end)) return kind;
  return path.find(".act/") != std::string_view::npos ? "elementwise" : "linear";
}

class PortedUmt5 final : public PortedModel {
 public:
  PortedUmt5(const Dump& dump, Precision precision, Umt5Ops ops)
      : dump_(dump),
        precision_(precision),
        weights_(weights_of(dump, [](const std::string& name) { return name; })),
        model_(umt5_config(dump.provenance().value("config", nlohmann::json())), precision, weights_, std::move(ops)),
        map_(embedded_map("umt5")) {
    if (umt5_sees(inputs(0).mask).defined()) map_ += embedded_map("umt5_padded");
  }

  at::Tensor forward(int call, Probe& probe) override { return model_.forward(inputs(call), probe); }
  std::vector<SelfPair> self_pairs() override {
    auto pairs = umt5_cut_pairs(model_, inputs(0));
    for (auto& pair : umt5_attention_pairs(model_.config(), precision_, weights_, inputs(0)))
      pairs.push_back(std::move(pair));
    return pairs;
  }
  Umt5Inputs inputs(int call) const {
    if (!dump_.has_input("input_ids", call))
      throw Error(
          fmt::format("[umt5] {}: forward was recorded without the argument 'input_ids'", dump_.file().string()));
    const bool masked = dump_.has_input("attention_mask", call);
    return {dump_.input("input_ids", call), masked ? dump_.input("attention_mask", call) : at::Tensor()};
  }
  std::string_view map() const override { return map_; }
  std::string kind(std::string_view candidate_path) const override { return std::string(umt5_kind(candidate_path)); }
  std::string description() const override {
    const auto& c = model_.config();
    return fmt::format("umt5, {} layers, dim {}, {} heads of {}", c.layers, c.dim, c.heads, c.head_dim);
  }

 private:
  const Dump& dump_;
  Precision precision_;
  WeightSource weights_;
  Umt5Model model_;
  std::string map_;
};

}  // namespace

bool is_umt5(const Dump& dump) {
  return dump.model() == "UMT5EncoderModel" &&
         dump.has_weight("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
}

Umt5Ops umt5_ops(Kernels kernels) {
  Umt5Ops ops;
  if (kernels == Kernels::aten) return ops;
  ops.linear = [](const at::Tensor& x, const at::Tensor& weight) { return ops::own_linear(x, weight, {}); };
  ops.attention = ops::own_encoder_attention;
  return ops;
}

std::unique_ptr<PortedModel> port_umt5(const Dump& dump, Precision precision, Umt5Ops ops) {
  return std::make_unique<PortedUmt5>(dump, precision, std::move(ops));
}

}  // namespace parity
