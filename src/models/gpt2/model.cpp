#include "models/gpt2/model.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "models/gelu_new.hpp"
#include "models/own_pages.hpp"
#include "ops/one_pass.hpp"

namespace parity {
namespace {

constexpr int64_t kManyRows = 16;  // from here on a product is bound by arithmetic, not by reading the weights

bool many(const at::Tensor& x, const Probe& probe) { return !probe.active() && x.size(0) * x.size(1) >= kManyRows; }

TokenLayer token_layer_of(const Gpt2Block& b, const Gpt2Ops& ops, const Gpt2Config& config) {
  const auto norm = [](const Affine& w) {
    const auto wide = [](const at::Tensor& t) { return t.scalar_type() == at::kDouble ? t : t.to(at::kFloat); };
    return TokenNorm{wide(w.weight), wide(w.bias)};
  };
  const auto linear = [&](const Affine& w) { return TokenLinear{w.weight, ops.scale(w.weight), w.bias}; };
  return {norm(b.ln_1),     linear(b.attn_in), linear(b.attn_out), norm(b.ln_2),
          linear(b.mlp_in), linear(b.mlp_out), config.heads,       config.eps};
}

}  // namespace

Gpt2Model::Gpt2Model(const Gpt2Config& config, Precision precision, const WeightSource& source, Gpt2Ops ops)
    : config_(config), ops_(std::move(ops)) {
  const ShapedWeights weights("gpt2", gpt2_parameters(config), source);
  const auto load = [&](const std::string& name) {
    const auto found = weights.get(fmt::format("transformer.{}", name));
    return found.to(redirect(found.scalar_type(), precision));
  };
  const auto affine = [&](const std::string& name) { return Affine{load(name + ".weight"), load(name + ".bias")}; };
  const auto linear_of = [&](const std::string& name) {
    auto w = affine(name);
    w.weight = ops_.kept(ops_.outputs_first ? w.weight.t() : w.weight);
    return w;
  };
  wte_ = ops_.kept(load("wte.weight")), wpe_ = load("wpe.weight"), ln_f_ = affine("ln_f");
  for (int64_t i = 0; i < config.layers; ++i) {
    const auto block = fmt::format("h.{}.", i);
    blocks_.push_back({affine(block + "ln_1"), linear_of(block + "attn.c_attn"), linear_of(block + "attn.c_proj"),
                       affine(block + "ln_2"), linear_of(block + "mlp.c_fc"), linear_of(block + "mlp.c_proj")});
    if (ops_.token_layer) token_layers_.push_back(token_layer_of(blocks_.back(), ops_, config));
  }
  dtype_ = wpe_.scalar_type();
  give_back_free_memory();
}

KvCache Gpt2Model::cache(int64_t batch, int64_t positions) const {
  return {config_.layers, batch, config_.heads, positions, config_.head_dim(), dtype_};
}

at::Tensor Gpt2Model::linear(std::string_view name, const at::Tensor& x, const Affine& w, Probe& probe) const {
  const auto& product = many(x, probe) && ops_.prompt_linear ? ops_.prompt_linear : ops_.linear;
  const auto rows = product(x.reshape({-1, x.size(-1)}), w.weight, w.bias);
  return probe(name, rows.view({x.size(0), x.size(1), -1}));
}

at::Tensor Gpt2Model::norm(std::string_view name, const at::Tensor& x, const Affine& w, Probe& probe) const {
  return probe(name, at::layer_norm(x, {config_.dim}, w.weight, w.bias, config_.eps));
}

at::Tensor Gpt2Model::attention(int64_t layer, const at::Tensor& x, KvCache* cache, Probe& probe) const {
  const auto& w = blocks_[static_cast<size_t>(layer)];
  const Probe::Scope in_attention(probe, ".attn");
  const auto parts = linear(".c_attn", x, w.attn_in, probe).split(config_.dim, 2);
  const auto heads = [&](const at::Tensor& t) {
    return t.view({t.size(0), t.size(1), config_.heads, config_.head_dim()}).transpose(1, 2);
  };
  const auto q = heads(parts[0]);
  auto k = heads(parts[1]), v = heads(parts[2]);
  if (cache) std::tie(k, v) = cache->append(layer, ops_.cache_slot(cache->length()), k, v);
  const auto& attend = many(x, probe) && ops_.prompt_attention ? ops_.prompt_attention : ops_.attention;
  const auto y = probe("/attention.0", attend(q, k, v, {}));
  return linear(".c_proj", y.transpose(1, 2).reshape({x.size(0), x.size(1), config_.dim}), w.attn_out, probe);
}

at::Tensor Gpt2Model::feed_forward(const Gpt2Block& w, const at::Tensor& x, Probe& probe) const {
  const Probe::Scope in_mlp(probe, ".mlp");
  const bool by_libtorch = many(x, probe) && ops_.prompt_linear;
  if (!probe.active() && ops_.linear_gelu && !by_libtorch) {
    const auto y = ops_.linear_gelu(x.reshape({-1, config_.dim}), w.mlp_in.weight, w.mlp_in.bias);
    return linear(".c_proj", y.view({x.size(0), x.size(1), -1}), w.mlp_out, probe);
  }
  if (by_libtorch) return linear(".c_proj", ops::own_gelu_new(linear(".c_fc", x, w.mlp_in, probe)), w.mlp_out, probe);
  return linear(".c_proj", gelu_new(linear(".c_fc", x, w.mlp_in, probe), probe), w.mlp_out, probe);
}

at::Tensor Gpt2Model::embed(const at::Tensor& ids, int64_t first, Probe& probe) const {
  const int64_t tokens = ids.size(1);
  if (first + tokens > config_.positions)
    throw Error(fmt::format("[gpt2] {} tokens after {} are more than the configuration's {} positions", tokens, first,
                            config_.positions));
  const auto words = probe("transformer.wte", ops_.embedding(wte_, ids));
  const auto places = at::arange(first, first + tokens).unsqueeze(0);
  return probe("transformer/add.1", words + probe("transformer.wpe", at::embedding(wpe_, places)));
}

bool Gpt2Model::passes(const at::Tensor& ids, const KvCache* cache, const Probe& probe) const {
  return cache && ids.size(1) == 1 && ids.size(0) < kManyRows && !probe.active() && !token_layers_.empty();
}

at::Tensor Gpt2Model::layers_of_token(const at::Tensor& x, KvCache& cache) const {
  const auto tokens = x.view({x.size(0), config_.dim});
  const int64_t slot = ops_.cache_slot(cache.length());
  for (int64_t i = 0; i < config_.layers; ++i) {
    const auto [keys, values] = cache.room(i, slot, 1);
    ops_.token_layer(tokens, token_layers_[static_cast<size_t>(i)], {keys, values, cache.length() + 1, slot});
  }
  cache.advance(1);
  return x;
}

// (batch, tokens, dim), behind the last layer.
at::Tensor Gpt2Model::hidden(const at::Tensor& ids, KvCache* cache, Probe& probe) const {
  if (ids.dim() != 2)
    throw Error(fmt::format("[gpt2] the token ids have {} dimensions; (batch, tokens) is expected", ids.dim()));
  auto x = embed(ids, cache ? cache->length() : 0, probe);
  if (passes(ids, cache, probe)) return layers_of_token(x, *cache);
  for (int64_t i = 0; i < config_.layers; ++i) {
    const auto& w = blocks_[static_cast<size_t>(i)];
    const Probe::Scope in_block(probe, fmt::format("transformer.h.{}", i));
    x = probe("/add.0", attention(i, norm(".ln_1", x, w.ln_1, probe), cache, probe) + x);
    x = probe("", x + feed_forward(w, norm(".ln_2", x, w.ln_2, probe), probe));
  }
  if (cache) cache->advance(ids.size(1));
  return x;
}

at::Tensor Gpt2Model::next(const at::Tensor& ids, KvCache& cache) const {
  const c10::NoGradGuard no_grad;
  NoProbe off;
  const auto last = hidden(ids, &cache, off).narrow(1, ids.size(1) - 1, 1);
  return ops_.logits(norm("", last, ln_f_, off).reshape({-1, config_.dim}), wte_);
}

at::Tensor Gpt2Model::forward(const at::Tensor& ids, KvCache* cache, Probe& probe) const {
  const c10::NoGradGuard no_grad;
  const auto x = norm("transformer.ln_f", hidden(ids, cache, probe), ln_f_, probe);
  return probe("lm_head", ops_.logits(x.reshape({-1, config_.dim}), wte_).view({x.size(0), x.size(1), -1}));
}

}  // namespace parity
