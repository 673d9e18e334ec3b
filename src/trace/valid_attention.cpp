// Attention by other valid algorithms: eager with its intermediate roundings, tiled with an online softmax, with P
// rounded or not. Fused kernels do any of these; which one is not a matter of right or wrong.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "trace/valid.hpp"

namespace parity {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

struct Inputs {
  at::Tensor query, key, value;  // (batch, heads, length, width), as many heads each
  at::Tensor mask;               // added to the scores, or bool (true: attend); undefined: none
  double scale;
};

// What is rounded to the inputs' dtype on the way, and how many keys are taken at once (0: all).
struct Form {
  Arithmetic arithmetic;
  bool round_scores, round_softmax, split_scale;
  int64_t tile;
  bool round_p;
};

constexpr std::array kForms{
    Form{Arithmetic::reordered, true, true, false, 0, true},      // every step rounded: the coarsest in use
    Form{Arithmetic::split, true, false, false, 0, true},         // eager: softmax in fp32, P rounded
    Form{Arithmetic::blocked, false, false, false, 64, true},     // tiled, P rounded before the product with V
    Form{Arithmetic::pairwise, false, false, false, 16, false},   // tiled, P kept
    Form{Arithmetic::interleaved, true, true, true, 0, true},     // ATen's math path: root of the scale on q and on k
    Form{Arithmetic::transposed, false, false, false, 0, false},  // all in fp32, rounded at the end
};

at::Tensor masked(at::Tensor scores, const at::Tensor& mask) {
  if (!mask.defined()) return scores;
  return mask.scalar_type() == at::kBool ? scores.masked_fill(mask.logical_not(), kNothing)
                                         : scores + mask.to(scores.scalar_type());
}

// A row that may see nothing yields zeros, as every fused kernel has it.
at::Tensor probabilities(const at::Tensor& scores) {
  const at::Tensor blind = scores.eq(kNothing).all(-1, true);
  return at::softmax(scores, -1).masked_fill(blind, 0);
}

at::Tensor eager(const Inputs& in, const Form& form) {
  const at::ScalarType own = in.query.scalar_type(), wide = sum_dtype(own);
  const at::ScalarType kept = form.round_scores ? own : wide;
  at::Tensor scores;
  if (form.split_scale) {
    const double root = std::sqrt(std::abs(in.scale));
    scores = at::matmul(in.query * root, (in.key * (in.scale < 0 ? -root : root)).transpose(-2, -1));
  } else {
    scores = at::matmul(in.query.to(kept), in.key.to(kept).transpose(-2, -1)) * in.scale;
  }
  scores = masked(scores, in.mask);
  const at::Tensor p = probabilities(scores.to(form.round_softmax ? own : wide)).to(form.round_p ? own : wide);
  return at::matmul(p, in.value.to(p.scalar_type())).to(own);
}

// Online softmax (Milakov & Gimelshein 2018): keys tile by tile, the output rescaled when the maximum grows.
at::Tensor tiled(const Inputs& in, const Form& form) {
  const at::ScalarType own = in.query.scalar_type(), wide = sum_dtype(own);
  const at::Tensor q = in.query.to(wide), k = in.key.to(wide), v = in.value.to(wide);
  const at::Tensor all = masked(at::matmul(q, k.transpose(-2, -1)) * in.scale, in.mask);
  at::Tensor largest = at::full({}, -std::numeric_limits<float>::max(), q.options());
  at::Tensor total, output;
  for (int64_t begin = 0; begin < k.size(-2); begin += form.tile) {
    const int64_t count = std::min(form.tile, k.size(-2) - begin);
    const at::Tensor scores = all.narrow(-1, begin, count);
    const at::Tensor now = at::maximum(largest, scores.amax({-1}, true)), p = (scores - now).exp();
    const at::Tensor shrink = (largest - now).exp();
    const at::Tensor weights = form.round_p ? p.to(own).to(wide) : p;
    const at::Tensor seen = at::matmul(weights, v.narrow(-2, begin, count));
    total = total.defined() ? total * shrink + p.sum({-1}, true) : p.sum({-1}, true);
    output = output.defined() ? output * shrink + seen : seen;
    largest = now;
  }
  const at::Tensor blind = all.eq(kNothing).all(-1, true);
  return (output / total).masked_fill(blind, 0).to(own);
}

// Heads of a grouped key or value, each for its group of queries.
at::Tensor for_each_query_head(const at::Tensor& t, int64_t heads) {
  return t.size(1) == heads ? t : t.repeat_interleave(heads / t.size(1), 1);
}

std::optional<Inputs> inputs_of(ValidCall& call) {
  Inputs in;
  in.query = call.tensor("query");
  const at::Tensor k = call.tensor("key"), v = call.tensor("value");
  if (!in.query.defined() || in.query.dim() != 4 || k.dim() != 4 || v.dim() != 4) return std::nullopt;
  if (k.size(1) == 0 || in.query.size(1) % k.size(1) != 0 || k.size(1) != v.size(1) || k.size(2) == 0)
    return std::nullopt;
  in.key = for_each_query_head(k, in.query.size(1));
  in.value = for_each_query_head(v, in.query.size(1));
  in.mask = call.tensor("attn_mask").defined() ? call.tensor("attn_mask") : call.tensor("attn_bias");
  in.scale = call.number("scale", 1 / std::sqrt(static_cast<double>(in.query.size(-1))));
  const c10::IValue* causal = call.find("is_causal");
  if (causal != nullptr && causal->toBool())
    in.mask = at::ones({in.query.size(2), k.size(2)}, k.options().dtype(at::kBool)).tril();
  return in;
}

const Form* form_of(Arithmetic arithmetic) {
  const auto form =
      std::find_if(kForms.begin(), kForms.end(), [&](const Form& f) { return f.arithmetic == arithmetic; });
  return form == kForms.end() ? nullptr : &*form;
}

std::optional<Results> attention(ValidCall call) {
  const Form* form = form_of(call.arithmetic);
  const auto in = inputs_of(call);
  if (form == nullptr || !in) return std::nullopt;
  const at::Tensor out = form->tile > 0 ? tiled(*in, *form) : eager(*in, *form);
  // Fused kernels put the heads beside the width: (batch, length, heads, width) in memory.
  return Results{out.transpose(1, 2).contiguous().transpose(1, 2)};
}

// LibTorch's attention in steps, which keeps half widths in fp32 throughout: rounded where the other forms round. What
// multiplies the scores comes before here, so that their product is rounded once where eager code rounds it twice.
std::optional<Results> softmax_of_widened(ValidCall call) {
  const Form* form = form_of(call.arithmetic);
  if (form == nullptr || !call.op.widened_from) return std::nullopt;
  const at::Tensor scores = call.tensor("self");
  const auto through = [&](const at::Tensor& t, bool rounded) {
    return rounded ? t.to(*call.op.widened_from).to(t.scalar_type()) : t;
  };
  const at::Tensor p = through(probabilities(through(scores, form->round_scores)), form->round_softmax);
  return Results{through(p, form->round_p)};
}

constexpr std::array kAttention{
    ValidForm{"aten::_safe_softmax", softmax_of_widened},
    ValidForm{"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
    ValidForm{"aten::_scaled_dot_product_flash_attention", attention},
    ValidForm{"aten::_scaled_dot_product_efficient_attention", attention},
    ValidForm{"aten::_scaled_dot_product_cudnn_attention", attention},
    ValidForm{"aten::_scaled_dot_product_fused_attention_overrideable", attention},
};

}  // namespace

std::span<const ValidForm> valid_attention() { return kAttention; }

}  // namespace parity
