#include "models/umt5/model.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "core/error.hpp"
#include "models/gelu_new.hpp"

namespace parity {
namespace {

// torch.finfo(dtype).min
double lowest_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBFloat16:
      return std::numeric_limits<c10::BFloat16>::lowest();
    case at::kFloat:
      return std::numeric_limits<float>::lowest();
    case at::kDouble:
      return std::numeric_limits<double>::lowest();
    default:  // fp16 clamps infinities between the layers and keeps wo in fp32
      throw Error(
          fmt::format("[umt5] weights in {} are not written here, only bf16, fp32 and fp64", dtype_name(dtype)));
  }
}

void check_text(const Umt5Inputs& inputs) {
  if (inputs.ids.dim() != 2)
    throw Error(fmt::format("[umt5] the token ids have {} dimensions; (batch, tokens) is expected", inputs.ids.dim()));
  if (inputs.mask.defined() && inputs.mask.sizes() != inputs.ids.sizes())
    throw Error(fmt::format("[umt5] an attention mask [{}] does not fit token ids [{}]",
                            fmt::join(inputs.mask.sizes(), ", "), fmt::join(inputs.ids.sizes(), ", ")));
}

}  // namespace

at::Tensor umt5_sees(const at::Tensor& mask) {
  if (!mask.defined()) return {};
  const auto sees = mask.to(at::kBool);
  return sees.all().item<bool>() ? at::Tensor() : sees.unsqueeze(1).unsqueeze(1);
}

Umt5Model::Umt5Model(const Umt5Config& config, Precision precision, const WeightSource& weights, Umt5Ops ops)
    : config_(config), precision_(precision), ops_(std::move(ops)) {
  const ShapedWeights shaped("umt5", umt5_parameters(config), weights);
  const auto load = [&](const std::string& name) {
    const auto found = shaped.get(name + ".weight");
    return found.to(redirect(found.scalar_type(), precision));
  };
  lowest_ = lowest_of(shaped.get("shared.weight").scalar_type());
  words_ = load("shared"), final_norm_ = load("encoder.final_layer_norm");
  for (int64_t i = 0; i < config.layers; ++i) {
    const auto layer = [&](const char* name) { return load(fmt::format("encoder.block.{}.layer.{}", i, name)); };
    const auto [gate, up] = ops_.gate_and_up(layer("1.DenseReluDense.wi_0"), layer("1.DenseReluDense.wi_1"));
    blocks_.push_back({layer("0.layer_norm"), layer("0.SelfAttention.q"), layer("0.SelfAttention.k"),
                       layer("0.SelfAttention.v"), layer("0.SelfAttention.o"),
                       layer("0.SelfAttention.relative_attention_bias"), layer("1.layer_norm"), gate, up,
                       layer("1.DenseReluDense.wo")});
  }
}

at::Tensor Umt5Model::linear(std::string_view name, const at::Tensor& x, const at::Tensor& weight, Probe& probe) const {
  const auto rows = ops_.linear(x.reshape({-1, x.size(-1)}), weight);
  return probe(name, rows.view({x.size(0), x.size(1), -1}));
}

at::Tensor Umt5Model::norm(std::string_view name, const at::Tensor& x, const at::Tensor& weight, Probe& probe) const {
  return probe(name, ops_.norm(x, weight, config_.eps, RmsForm::t5, precision_));
}

// (batch or 1, heads, tokens, tokens)
at::Tensor Umt5Model::bias(const Umt5Block& w, int64_t tokens, const at::Tensor& sees, Probe& probe) const {
  const auto buckets = probe("/buckets.0", ops_.buckets(tokens, config_.buckets, precision_));
  auto bias = probe(".relative_attention_bias", ops::relative_position_bias(w.bias, buckets));
  bias = bias.permute({2, 0, 1}).unsqueeze(0);
  return (sees.defined() ? probe("/padded_bias.0", ops_.padded_bias(bias, sees, lowest_)) : bias).contiguous();
}

at::Tensor Umt5Model::attention(int64_t layer, const at::Tensor& x, const at::Tensor& sees, Probe& probe) const {
  const auto& w = blocks_[static_cast<size_t>(layer)];
  const Probe::Scope in_attention(probe, ".SelfAttention");
  const auto heads = [&](std::string_view name, const at::Tensor& weight) {
    const auto y = linear(name, x, weight, probe);
    return y.view({x.size(0), x.size(1), config_.heads, config_.head_dim}).transpose(1, 2);
  };
  const auto q = heads(".q", w.q), k = heads(".k", w.k), v = heads(".v", w.v);
  const auto& table = blocks_[static_cast<size_t>(ops_.table_of(layer))];
  const ScoreForm form{1, bias(table, x.size(1), sees, probe)};
  const auto y = probe("/attention.0", ops_.attention(q, k, v, form));
  return linear(".o", y.transpose(1, 2).reshape({x.size(0), x.size(1), config_.heads_dim()}), w.o, probe);
}

at::Tensor Umt5Model::feed_forward(const Umt5Block& w, const at::Tensor& x, Probe& probe) const {
  const Probe::Scope in_mlp(probe, ".DenseReluDense");
  auto gate = linear(".wi_0", x, w.gate, probe);
  gate = ops_.gelu ? probe(".act", ops_.gelu(gate)) : gelu_new(gate, probe);
  const auto up = linear(".wi_1", x, w.up, probe);
  return linear(".wo", probe("/mul.0", gate * up), w.down, probe);
}

at::Tensor Umt5Model::forward(const Umt5Inputs& inputs, Probe& probe) const {
  const c10::NoGradGuard no_grad;
  check_text(inputs);
  const auto sees = umt5_sees(inputs.mask);
  auto x = probe("encoder.embed_tokens", at::embedding(words_, inputs.ids));
  for (int64_t i = 0; i < config_.layers; ++i) {
    const auto& w = blocks_[static_cast<size_t>(i)];
    const Probe::Scope in_block(probe, fmt::format("encoder.block.{}", i));
    {
      const Probe::Scope in_layer(probe, ".layer.0");
      x = probe("", x + attention(i, norm(".layer_norm", x, w.norm1, probe), sees, probe));
    }
    const Probe::Scope in_layer(probe, ".layer.1");
    x = probe("", x + feed_forward(w, norm(".layer_norm", x, w.norm2, probe), probe));
  }
  return norm("encoder.final_layer_norm", x, final_norm_, probe);
}

}  // namespace parity
