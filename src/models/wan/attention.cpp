// The two attentions of a block: over the video's own tokens, and over text and image.
#include <fmt/format.h>

#include "models/wan/model.hpp"

namespace parity {

at::Tensor WanModel::heads(const at::Tensor& x) const {
  return x.view({x.size(0), x.size(1), config_.heads, config_.head_dim()});
}

at::Tensor WanModel::normed(std::string_view name, const at::Tensor& x, const at::Tensor& weight, Probe& probe) const {
  return probe(name, ops_.rms_norm(x, weight, config_.eps, path_.rms, precision_));
}

// The points are where recordings have values: the real form is written half by half, so its even and odd components
// are two; complex64's product is read as real numbers without an op, so the pairs are it; complex128's is rounded to
// fp32 afterwards.
at::Tensor WanModel::turned(int64_t which, const at::Tensor& x, const RopeTurn& turn, Probe& probe) const {
  auto y = ops_.rope(x, turn, precision_);
  if (!probe.active()) return y;
  const auto name = [which](std::string_view op) { return fmt::format("/{}.{}", op, which); };
  if (path_.rope == RopeForm::complex128) return probe(name("rope"), std::move(y));
  if (path_.rope == RopeForm::complex64)
    return at::view_as_real(probe(name("rope"), at::view_as_complex(y.unflatten(-1, {-1, 2})))).flatten(3);
  for (const int64_t half : {0, 1}) {
    const auto components = y.slice(-1, half, std::nullopt, 2);
    const auto seen = probe(name(half ? "rope_odd" : "rope_even"), components);
    if (!seen.is_same(components)) components.copy_(seen);
  }
  return y;
}

// 0 or 1: x's norm over all heads, the turn of each where there is one, the cast before attention.
at::Tensor WanModel::query_or_key(int64_t which, at::Tensor x, const at::Tensor& weight, const RopeTurn* turn,
                                  WanCast to, Probe& probe) const {
  const bool rounds_alike = path_.rms == RmsForm::round_once && (!turn || path_.rope == RopeForm::real);
  const auto stored = x.scalar_type();
  if (ops_.norm_turn && rounds_alike && !probe.active() && stored != at::kHalf &&
      casts_[static_cast<size_t>(to)].to == stored)
    return heads(ops_.norm_turn(std::move(x), weight, config_.eps, turn ? *turn : RopeTurn{}));
  auto y = heads(normed(which == 0 ? ".norm_q" : ".norm_k", x, weight, probe));
  if (turn) y = turned(which, y, *turn, probe);
  return cast(to, y, probe);
}

// (batch, tokens, heads, d) -> (batch, tokens, dim); the point sees SDPA's own layout (batch, heads, tokens, d).
at::Tensor WanModel::attend(std::string_view name, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& mask, Probe& probe) const {
  return ops::join_heads(probe(name, ops_.attention(q, k, v, mask)));
}

at::Tensor WanModel::self_attention(const WanAttentionWeights& w, const at::Tensor& x, const Conditions& c,
                                    Probe& probe) const {
  const Probe::Scope in_attention(probe, ".self_attn");
  auto q = query_or_key(0, linear(".q", x, w.q, probe), w.norm_q, &c.turn, WanCast::self_attn_q, probe);
  auto k = query_or_key(1, linear(".k", x, w.k, probe), w.norm_k, &c.turn, WanCast::self_attn_k, probe);
  auto v = heads(linear(".v", x, w.v, probe));
  auto y = attend("/attention.0", q, k, v, c.mask, probe);
  q = k = v = at::Tensor();
  return linear(".o", y, w.o, probe);
}

at::Tensor WanModel::cross_attention(const WanAttentionWeights& w, const at::Tensor& x, const Conditions& c,
                                     Probe& probe) const {
  const Probe::Scope in_attention(probe, ".cross_attn");
  const auto q = query_or_key(0, linear(".q", x, w.q, probe), w.norm_q, nullptr, WanCast::cross_attn_q, probe);
  const auto k = query_or_key(1, linear(".k", c.text, w.k, probe), w.norm_k, nullptr, WanCast::cross_attn_k, probe);
  const auto v = heads(linear(".v", c.text, w.v, probe));
  auto y = attend("/attention.0", q, k, v, {}, probe);
  if (c.image.defined()) {
    auto k_img = heads(normed(".norm_k_img", linear(".k_img", c.image, w.k_img, probe), w.norm_k_img, probe));
    k_img = cast(WanCast::cross_attn_k_img, k_img, probe);
    auto z = attend("/attention.1", q, k_img, heads(linear(".v_img", c.image, w.v_img, probe)), {}, probe);
    if (path_.attention_out == Slot::input) y = y.to(dtype(Slot::f32)), z = z.to(dtype(Slot::f32));
    y = cast(WanCast::cross_attn_o, probe("/add.0", ops_.add(std::move(y), z)), probe);
  }
  return linear(".o", y, w.o, probe);
}

}  // namespace parity
