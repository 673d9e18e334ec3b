#include "models/gpt_oss/experts.hpp"

namespace parity {
namespace {

using at::indexing::None;
using at::indexing::Slice;

at::Tensor product(const GptOssOps& ops, const at::Tensor& x, const ExpertMatrices& w, int64_t expert) {
  if (!w.packed.values.defined()) return ops.expert_product(x, w.plain[expert]);
  return ops::own_linear(x, Mxfp4Weight{w.packed.values[expert], w.packed.scales[expert]}, {});
}

// Rows sorted by expert; `ends`: behind each expert's last row. -> (rows, out)
at::Tensor grouped_product(const GptOssOps& ops, const at::Tensor& x, const ExpertMatrices& w, int64_t out,
                           const at::Tensor& ends) {
  const auto y = at::empty({x.size(0), out}, x.options());
  const auto* end = ends.const_data_ptr<int64_t>();
  for (int64_t e = 0, begin = 0; e < ends.size(0); begin = end[e++])
    if (end[e] > begin)
      y.narrow(0, begin, end[e] - begin).copy_(product(ops, x.narrow(0, begin, end[e] - begin), w, e));
  return y;
}

}  // namespace

at::Tensor clamped_swiglu(const GptOssConfig& c, const at::Tensor& gate_up, Probe& probe) {
  const auto gate = probe("/clamp.0", gate_up.index({"...", Slice(None, None, 2)}).clamp_max(c.swiglu_limit));
  const auto up = probe("/clamp.1", gate_up.index({"...", Slice(1, None, 2)}).clamp(-c.swiglu_limit, c.swiglu_limit));
  auto y = probe("/mul.0", gate * c.swiglu_alpha);
  y = probe("/mul.1", gate * probe("/sigmoid.0", y.sigmoid()));
  return probe("/mul.2", probe("/add.0", up + 1) * y);
}

at::Tensor grouped_experts(const GptOssConfig& c, const GptOssOps& ops, const ExpertWeights& w, const at::Tensor& x,
                           const Routing& routing, Probe& probe) {
  const Probe::Scope in_experts(probe, ".experts");
  const auto [expert, place] = at::sort(routing.chosen.reshape(-1));
  const auto ends = at::bincount(expert, {}, c.experts).cumsum(0);
  auto y = probe("/index.0", x.index({place.floor_divide(c.experts_per_token)}));
  const auto share = probe("/index.1", routing.weights.reshape(-1).index({place}));
  y = probe("/_grouped_mm.0", grouped_product(ops, y, w.gate_up, 2 * c.inner, ends));
  y = probe("/add_.0", y + w.gate_up_bias.index({expert}));
  y = clamped_swiglu(c, y, probe);
  y = probe("/_grouped_mm.1", grouped_product(ops, y, w.down, c.dim, ends));
  y = probe("/add_.1", y + w.down_bias.index({expert}));
  y = probe("/mul.3", y * share.unsqueeze(-1));
  const auto back = at::empty_like(place).index_put_({place}, at::arange(place.size(0)));
  y = probe("/index.4", y.index({back}));
  return probe("", y.view({x.size(0), c.experts_per_token, c.dim}).sum(1));
}

at::Tensor looped_experts(const GptOssConfig& c, const GptOssOps& ops, const ExpertWeights& w, const at::Tensor& x,
                          const Routing& routing) {
  NoProbe off;
  const auto out = at::zeros_like(x);
  for (int64_t e = 0; e < c.experts; ++e) {
    const auto found = (routing.chosen == e).nonzero();  // (tokens of this expert, 2): row, place
    if (found.size(0) == 0) continue;
    const auto row = found.select(1, 0), place = found.select(1, 1);
    auto y = product(ops, x.index({row}), w.gate_up, e) + w.gate_up_bias[e];
    y = product(ops, clamped_swiglu(c, y, off), w.down, e) + w.down_bias[e];
    out.index_add_(0, row, y * routing.weights.index({row, place}).unsqueeze(-1));
  }
  return out;
}

}  // namespace parity
