#include "ops/own.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "kernels/cpu/decode_attention.hpp"
#include "kernels/cpu/norm_rope.hpp"
#include "kernels/cpu/tile_attention.hpp"
#include "ops/gemv_shares.hpp"
#include "ops/own_element.hpp"

namespace parity::ops {
namespace {

// (batch, heads, rows, …): one row.
template <class T>
T* at_row(const at::Tensor& t, int64_t b, int64_t h, int64_t i) {
  return pointer<T>(t) + b * t.stride(0) + h * t.stride(1) + i * t.stride(2);
}

void check_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::ScalarType dtype) {
  const bool fits = x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1) && weight.is_contiguous() &&
                    x.scalar_type() == dtype &&
                    (!bias.defined() || (bias.numel() == weight.size(0) && bias.scalar_type() == dtype));
  if (!fits)
    throw Error(fmt::format("[linear] {} [{}] does not fit weights [{}]", dtype_name(x.scalar_type()),
                            fmt::join(x.sizes(), ","), fmt::join(weight.sizes(), ",")));
}

}  // namespace

at::Tensor own_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, Activation activation) {
  check_linear(x, weight, bias, weight.scalar_type());
  const auto rows = x.contiguous(), added = bias.defined() ? bias.contiguous() : bias;
  const auto y = at::empty({x.size(0), weight.size(0)}, x.options());
  with_element("linear", x, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    over_outputs<T, T>({pointer<T>(rows), pointer<T>(weight), pointer<T>(added), nullptr, pointer<T>(y), x.size(0),
                        x.size(1), weight.size(0), activation});
  });
  return y;
}

at::Tensor own_linear(const at::Tensor& x, const Int8Weight& weight, const at::Tensor& bias, Activation activation) {
  check_linear(x, weight.values, bias, at::kFloat);
  const auto rows = x.contiguous();
  const auto y = at::empty({x.size(0), weight.values.size(0)}, x.options());
  over_outputs<float, int8_t>({pointer<float>(rows), pointer<int8_t>(weight.values), pointer<float>(bias),
                               pointer<float>(weight.scale), pointer<float>(y), x.size(0), x.size(1),
                               weight.values.size(0), activation});
  return y;
}

Int8Weight quantise_rows(const at::Tensor& weight, const at::Tensor& values) {
  constexpr int64_t kNumbers = 1 << 16;  // at a time: what is between them and the bytes stays small
  const int64_t outputs = weight.size(0), rows = std::max<int64_t>(1, kNumbers / std::max<int64_t>(1, weight.size(1)));
  Int8Weight out{values.defined() ? values : at::empty(weight.sizes(), at::kChar), at::empty({outputs}, at::kFloat)};
  for (int64_t first = 0; first < outputs; first += rows) {
    const int64_t n = std::min(rows, outputs - first);
    const auto wide = weight.narrow(0, first, n).to(at::kFloat);
    const auto scale = (wide.abs().amax(1) / 127).clamp_min(std::numeric_limits<float>::min());
    out.values.narrow(0, first, n).copy_((wide / scale.unsqueeze(1)).round().clamp(-127, 127));
    out.scale.narrow(0, first, n).copy_(scale);
  }
  return out;
}

at::Tensor own_causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const CausalForm& form) {
  check_causal_attention(q, k, v, form);
  const int64_t heads = q.size(1), tokens = q.size(2), dim = q.size(3), keys = k.size(2);
  const int64_t group = heads / k.size(1);
  if (dim > kernels::kMaxHeadWidth) throw Error(fmt::format("[attention] heads of {} are too wide", dim));
  const auto inner = [](const at::Tensor& t) { return t.stride(3) == 1 ? t : t.contiguous(); };
  const auto qs = inner(q), ks = inner(k), vs = inner(v);
  const auto sinks = form.sinks.defined() ? form.sinks.to(q.scalar_type()).contiguous() : at::Tensor();
  // Memory as SDPA has it: tokens outside, so that the heads are joined by a view.
  const auto out = at::empty({q.size(0), tokens, heads, dim}, q.options()).transpose(1, 2);
  with_element("attention", q, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    at::parallel_for(0, q.size(0) * heads * tokens, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t b = row / (heads * tokens), h = row / tokens % heads, i = row % tokens;
        const int64_t last = keys - tokens + i + 1;
        const int64_t first = form.window > 0 ? std::max<int64_t>(0, last - form.window) : 0;
        kernels::attend(kernels::Attend<T>{at_row<T>(qs, b, h, i), at_row<T>(ks, b, h / group, first),
                                           at_row<T>(vs, b, h / group, first), at_row<T>(out, b, h, i), last - first,
                                           dim, ks.stride(2), vs.stride(2), 1 / std::sqrt(static_cast<double>(dim)),
                                           sinks.defined() ? pointer<T>(sinks) + h : nullptr});
      }
    });
  });
  return out;
}

at::Tensor own_encoder_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreForm& form) {
  check_encoder_attention(q, k, v, form);
  const int64_t heads = q.size(1), tokens = q.size(2), dim = q.size(3), keys = k.size(2);
  const auto inner = [](const at::Tensor& t) { return t.stride(3) == 1 ? t : t.contiguous(); };
  const auto qs = inner(q), ks = inner(k), vs = inner(v);
  const auto bias = form.bias.defined() ? inner(form.bias.to(q.scalar_type())).expand({q.size(0), heads, tokens, keys})
                                        : at::Tensor();
  const auto out = at::empty({q.size(0), tokens, heads, dim}, q.options()).transpose(1, 2);
  const int64_t tiles = (tokens + kernels::kTileQueries - 1) / kernels::kTileQueries;
  with_element("attention", q, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    at::parallel_for(0, q.size(0) * heads * tiles, 1, [&](int64_t begin, int64_t end) {
      std::vector<std::conditional_t<std::is_same_v<T, double>, double, float>> work;
      for (int64_t t = begin; t < end; ++t) {
        const int64_t b = t / (heads * tiles), h = t / tiles % heads, i = t % tiles * kernels::kTileQueries;
        kernels::attend(kernels::TileAttend<T>{.q = at_row<T>(qs, b, h, i),
                                               .k = at_row<T>(ks, b, h, 0),
                                               .v = at_row<T>(vs, b, h, 0),
                                               .out = at_row<T>(out, b, h, i),
                                               .queries = std::min(kernels::kTileQueries, tokens - i),
                                               .keys = keys,
                                               .dim = dim,
                                               .q_step = qs.stride(2),
                                               .k_step = ks.stride(2),
                                               .v_step = vs.stride(2),
                                               .out_step = out.stride(2),
                                               .scale = form.scale,
                                               .bias = bias.defined() ? at_row<T>(bias, b, h, i) : nullptr,
                                               .bias_step = bias.defined() ? bias.stride(2) : 0},
                        work);
      }
    });
  });
  return out;
}

at::Tensor own_norm_rope(const at::Tensor& x, const at::Tensor& weight, double eps, const at::Tensor& cos,
                         const at::Tensor& sin) {
  const auto rows = x.contiguous();
  const auto y = at::empty_like(rows);
  const int64_t dim = x.size(1);
  const bool turns = cos.defined();
  if (x.dim() != 2 || (weight.defined() && weight.numel() != dim) ||
      (turns && (cos.size(0) != x.size(0) || 2 * cos.size(1) != dim || cos.sizes() != sin.sizes())))
    throw Error(fmt::format("[norm and rope] rows [{}] do not fit", fmt::join(x.sizes(), ",")));
  const auto gain = weight.defined() ? weight.to(x.scalar_type()).contiguous() : weight;
  const auto c = turns ? cos.to(x.scalar_type()).contiguous() : cos;
  const auto s = turns ? sin.to(x.scalar_type()).contiguous() : sin;
  with_element("norm and rope", x, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    at::parallel_for(0, x.size(0), 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        kernels::norm_rope(kernels::NormRope<T>{pointer<T>(rows) + i * dim, pointer<T>(y) + i * dim, dim,
                                                pointer<T>(gain), eps, turns ? pointer<T>(c) + i * dim / 2 : nullptr,
                                                turns ? pointer<T>(s) + i * dim / 2 : nullptr});
    });
  });
  return y;
}

}  // namespace parity::ops
