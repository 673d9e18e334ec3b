#include "ops/token_layer.hpp"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <cstring>

#include "kernels/cpu/decode_attention.hpp"
#include "kernels/cpu/row_passes.hpp"
#include "ops/fused_attention.hpp"
#include "ops/gemv_shares.hpp"
#include "ops/own_element.hpp"

namespace parity {
namespace ops {
namespace {

using kernels::Activation;

// What adds as the stored type does.
template <class X>
struct AddsAs {
  using Type = X;
};
template <>
struct AddsAs<uint16_t> {
  using Type = at::BFloat16;
};

void check_linear(const TokenLinear& w, int64_t in, int64_t out, const at::Tensor& x) {
  const bool bytes = w.weight.scalar_type() == at::kChar;
  const bool fits = w.weight.sizes() == at::IntArrayRef({out, in}) && w.weight.is_contiguous() &&
                    w.bias.numel() == out && w.bias.is_contiguous() && w.bias.scalar_type() == x.scalar_type() &&
                    (bytes ? w.scale.defined() && w.scale.numel() == out && x.scalar_type() == at::kFloat
                           : w.weight.scalar_type() == x.scalar_type());
  if (!fits)
    throw Error(fmt::format("[token layer] weights [{}] do not fit {} -> {} of {}", fmt::join(w.weight.sizes(), ","),
                            in, out, dtype_name(x.scalar_type())));
}

void check_token(const at::Tensor& x, const TokenLayer& w, const TokenRows& rows) {
  const int64_t dim = x.size(-1), inner = w.mlp_in.weight.size(0);
  const bool fits = x.dim() == 2 && x.is_contiguous() && dim % w.heads == 0 &&
                    dim / w.heads <= kernels::kMaxHeadWidth && rows.keys.dim() == 4 &&
                    rows.keys.sizes() == rows.values.sizes() && rows.keys.is_contiguous() &&
                    rows.values.is_contiguous() && rows.keys.size(0) == x.size(0) && rows.keys.size(1) == w.heads &&
                    rows.keys.size(3) == dim / w.heads && rows.keys.scalar_type() == x.scalar_type() &&
                    rows.values.scalar_type() == x.scalar_type() && rows.slot >= 0 && rows.slot < rows.keys.size(2) &&
                    rows.length > 0 && rows.length <= rows.keys.size(2);
  if (!fits)
    throw Error(fmt::format("[token layer] keys [{}] do not fit tokens of [{}]", fmt::join(rows.keys.sizes(), ","),
                            fmt::join(x.sizes(), ",")));
  check_linear(w.attn_in, dim, 3 * dim, x), check_linear(w.attn_out, dim, dim, x);
  check_linear(w.mlp_in, dim, inner, x), check_linear(w.mlp_out, inner, dim, x);
}

template <class X>
void norm_rows(const X* x, X* y, int64_t batch, int64_t dim, const TokenNorm& w, double eps) {
  using C = kernels::RowNumber<X>;
  for (int64_t i = 0; i < batch; ++i)
    kernels::row_pass(
        kernels::NormAffine<X>{x + i * dim, y + i * dim, dim, pointer<C>(w.gain), pointer<C>(w.shift), eps});
}

// y = x weight^T + bias, outputs shared among the threads; `after(begin, end)` behind each share.
template <class X, class W, class After>
void product_of(const X* x, int64_t batch, const TokenLinear& w, X* y, Activation activation, const After& after) {
  const kernels::Gemv<X, W> g{x,
                              pointer<W>(w.weight),
                              pointer<X>(w.bias),
                              pointer<float>(w.scale),
                              y,
                              batch,
                              w.weight.size(1),
                              w.weight.size(0),
                              activation};
  over_outputs(g, after);
}

template <class X>
void attend_token(const X* qkv, X* out, int64_t batch, int64_t dim, const TokenLayer& w, const TokenRows& rows) {
  const int64_t head = dim / w.heads, positions = rows.keys.size(2);
  constexpr int64_t kShare = 16384;  // numbers of keys and values that are worth a thread
  const int64_t grain = std::max<int64_t>(1, kShare / (rows.length * head));
  at::parallel_for(0, batch * w.heads, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const X* q = qkv + i / w.heads * 3 * dim + i % w.heads * head;
      X* keys = pointer<X>(rows.keys) + i * positions * head;
      X* values = pointer<X>(rows.values) + i * positions * head;
      std::memcpy(keys + rows.slot * head, q + dim, static_cast<size_t>(head) * sizeof(X));
      std::memcpy(values + rows.slot * head, q + 2 * dim, static_cast<size_t>(head) * sizeof(X));
      kernels::attend(kernels::Attend<X>{q, keys, values, out + i * head, rows.length, head, head, head,
                                         1 / std::sqrt(static_cast<double>(head))});
    }
  });
}

template <class X, class W>
void pass(const at::Tensor& x, const TokenLayer& w, const TokenRows& rows) {
  const int64_t batch = x.size(0), dim = x.size(1), inner = w.mlp_in.weight.size(0);
  std::vector<X> memory(static_cast<size_t>(batch * (2 * dim + std::max(3 * dim, inner))));
  X *stream = pointer<X>(x), *normed = memory.data(), *part = normed + batch * dim, *wide = part + batch * dim;
  const auto add = [&](int64_t begin, int64_t end) {
    using A = typename AddsAs<X>::Type;
    for (int64_t row = 0; row < batch; ++row) {
      auto* to = static_cast<A*>(x.data_ptr()) + row * dim;
      const auto* from = static_cast<const A*>(static_cast<const void*>(part)) + row * dim;
      for (int64_t i = begin; i < end; ++i) to[i] = from[i] + to[i];
    }
  };
  const auto nothing = [](int64_t, int64_t) {};
  norm_rows(stream, normed, batch, dim, w.norm_1, w.eps);
  product_of<X, W>(normed, batch, w.attn_in, wide, Activation::none, nothing);
  attend_token(wide, normed, batch, dim, w, rows);
  product_of<X, W>(normed, batch, w.attn_out, part, Activation::none, add);
  norm_rows(stream, normed, batch, dim, w.norm_2, w.eps);
  product_of<X, W>(normed, batch, w.mlp_in, wide, Activation::gelu_new, nothing);
  product_of<X, W>(wide, batch, w.mlp_out, part, Activation::none, add);
}

}  // namespace

void token_layer(const at::Tensor& x, const TokenLayer& layer, const TokenRows& rows) {
  check_token(x, layer, rows);
  if (layer.attn_in.weight.scalar_type() == at::kChar) return pass<float, int8_t>(x, layer, rows);
  with_element("token layer", x, [&](auto* element) {
    using X = std::remove_pointer_t<decltype(element)>;
    pass<X, X>(x, layer, rows);
  });
}

}  // namespace ops

namespace {

constexpr int64_t kHeads = 3, kLength = 9;  // one row of keys more than is seen

// In the order of a case's arguments, behind x (1, dim): gain, shift, in, its bias, out, its bias, twice; keys, values.
TokenLayer layer_of(const OpCase& c) {
  const auto wide = [](const at::Tensor& t) { return t.scalar_type() == at::kDouble ? t : t.to(at::kFloat); };
  const auto& in = c.in;
  return {{wide(in[1]), wide(in[2])},
          {in[3], {}, in[4]},
          {in[5], {}, in[6]},
          {wide(in[7]), wide(in[8])},
          {in[9], {}, in[10]},
          {in[11], {}, in[12]},
          kHeads};
}

at::Tensor run_own(const OpCase& c) {
  const auto x = c.in[0].clone();
  ops::token_layer(x, layer_of(c), {c.in[13].clone(), c.in[14].clone(), kLength, kLength - 1});
  return x;
}

// LibTorch's, one by one.
at::Tensor run(const OpCase& c) {
  const auto& in = c.in;
  const int64_t dim = in[0].size(1), head = dim / kHeads;
  const auto norm = [&](const at::Tensor& x, int i) { return at::layer_norm(x, {dim}, in[i], in[i + 1], 1e-5); };
  const auto parts = at::linear(norm(in[0], 1), in[3], in[4]).view({3, kHeads, 1, head});
  const auto seen = [&](int i, const at::Tensor& own) {
    return at::cat({in[i].narrow(2, 0, kLength - 1)[0], own}, 1).unsqueeze(0);
  };
  const auto y = ops::fused_attention(parts[0].unsqueeze(0), seen(13, parts[1]), seen(14, parts[2]), {});
  const auto x = at::linear(y.reshape({1, dim}), in[5], in[6]) + in[0];
  auto h = at::linear(norm(x, 7), in[9], in[10]);
  h = h * 0.5 * ((std::sqrt(2 / M_PI) * (h + 0.044715 * h.pow(3.0))).tanh() + 1.0);
  return x + at::linear(h, in[11], in[12]);
}

using Row = std::vector<long double>;

Row row_of(const at::Tensor& t) {
  const auto flat = t.reshape(-1);
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

Row normed(const Row& x, const Row& gain, const Row& shift) {
  long double mean = 0, square = 0;
  for (const auto v : x) mean += v / x.size();
  for (const auto v : x) square += (v - mean) * (v - mean) / x.size();
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - mean) / std::sqrt(square + 1e-5L) * gain[i] + shift[i];
  return y;
}

Row product(const Row& x, const Row& weight, Row sum) {
  for (size_t o = 0; o < sum.size(); ++o)
    for (size_t i = 0; i < x.size(); ++i) sum[o] += x[i] * weight[o * x.size() + i];
  return sum;
}

Row attended(const Row& qkv, const at::Tensor& keys, const at::Tensor& values) {
  const auto ks = keys.accessor<double, 4>(), vs = values.accessor<double, 4>();
  const size_t dim = qkv.size() / 3, head = dim / kHeads;
  Row out(dim, 0);
  for (int64_t h = 0; h < kHeads; ++h) {
    long double total = 0;
    Row sum(head, 0);
    for (int64_t j = 0; j < kLength; ++j) {
      const bool own = j == kLength - 1;
      long double dot = 0;
      for (size_t e = 0; e < head; ++e)
        dot += qkv[h * head + e] * (own ? qkv[dim + h * head + e] : static_cast<long double>(ks[0][h][j][e]));
      const long double weight = std::exp(dot / std::sqrt(static_cast<long double>(head)));
      total += weight;
      for (size_t e = 0; e < head; ++e)
        sum[e] += weight * (own ? qkv[2 * dim + h * head + e] : static_cast<long double>(vs[0][h][j][e]));
    }
    for (size_t e = 0; e < head; ++e) out[h * head + e] = sum[e] / total;
  }
  return out;
}

at::Tensor reference(const OpCase& c) {
  const auto arg = [&](int i) { return row_of(c.in[i]); };
  const Row x = arg(0);
  Row y = product(normed(x, arg(1), arg(2)), arg(3), arg(4));
  y = product(attended(y, c.in[13], c.in[14]), arg(5), arg(6));
  for (size_t i = 0; i < y.size(); ++i) y[i] += x[i];
  Row h = product(normed(y, arg(7), arg(8)), arg(9), arg(10));
  for (auto& v : h) v = v / 2 * (1 + std::tanh(std::sqrt(2 / M_PIl) * (v + 0.044715L * v * v * v)));
  h = product(h, arg(11), arg(12));
  const auto out = at::empty_like(c.in[0]);
  for (size_t i = 0; i < y.size(); ++i) out.mutable_data_ptr<double>()[i] = static_cast<double>(y[i] + h[i]);
  return out;
}

OpCase one_token(std::string name, int64_t dim, uint64_t seed) {
  const double small = 1 / std::sqrt(static_cast<double>(dim));
  const auto vector = [&](int64_t n, double shift = 0) { return spread({n}, ++seed, .2, shift); };
  const auto matrix = [&](int64_t out, int64_t in) { return spread({out, in}, ++seed, small); };
  const auto rows = [&] { return spread({1, kHeads, kLength + 1, dim / kHeads}, ++seed); };
  return {std::move(name),
          {spread({1, dim}, seed), vector(dim, 1), vector(dim), matrix(3 * dim, dim), vector(3 * dim), matrix(dim, dim),
           vector(dim), vector(dim, 1), vector(dim), matrix(4 * dim, dim), vector(4 * dim), matrix(dim, 4 * dim),
           vector(dim), rows(), rows()}};
}

std::vector<OpCase> cases() { return {one_token("heads of 20", 60, 301), one_token("heads of 64", 192, 331)}; }

}  // namespace

const OpRow& token_layer_row() {
  // Worst measured, at 'heads of 64': fp64 6.5 u and fp32 4.5 u on an emulated Nehalem (2.8 u, 3 u with AVX-512), bf16
  // 1.01 u; own: fp64 4.8 u and fp32 3.4 u on an emulated Nehalem (3 u, 3 u), bf16 1.11 u.
  static const OpRow row{"gpt-2 layer, one token",
                         reference,
                         run,
                         cases,
                         {{at::kDouble, {}, 13}, {at::kFloat, {}, 9}, {at::kBFloat16, {}, 2}},
                         {{"own", run_own, {{at::kDouble, {}, 9.7}, {at::kFloat, {}, 6.8}, {at::kBFloat16, {}, 2.2}}}}};
  return row;
}

}  // namespace parity
