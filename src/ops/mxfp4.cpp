#include "ops/mxfp4.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "kernels/cpu/mxfp4_gemv.hpp"

namespace parity {
namespace ops {
namespace {

constexpr int64_t kBias = 127;          // of the exponents
constexpr double kLargestExponent = 2;  // of e2m1: 6 = 1.5 * 2^2

at::Tensor magnitudes(at::ScalarType dtype) {
  return at::tensor({0., .5, 1., 1.5, 2., 3., 4., 6.}, at::kDouble).to(dtype);
}

template <class T>
void fused(const at::Tensor& x, const Mxfp4Weight& w, const at::Tensor& bias, const at::Tensor& y) {
  const kernels::Mxfp4Gemv<T> g{static_cast<const T*>(x.const_data_ptr()),
                                w.values.const_data_ptr<uint8_t>(),
                                w.scales.const_data_ptr<uint8_t>(),
                                bias.defined() ? static_cast<const T*>(bias.const_data_ptr()) : nullptr,
                                static_cast<T*>(y.mutable_data_ptr()),
                                x.size(0),
                                x.size(1),
                                y.size(1)};
  constexpr int64_t kShare = 65536;  // weights a thread: less is faster done than handed over
  at::parallel_for(0, g.outputs, std::max<int64_t>(8, kShare / g.inputs),
                   [&g](int64_t begin, int64_t end) { kernels::mxfp4_gemv(g, begin, end); });
}

}  // namespace

Mxfp4Weight quantise_mxfp4(const at::Tensor& weight) {
  if (weight.dim() != 2 || weight.size(1) % kMxfp4Block != 0)
    throw Error(fmt::format("[mxfp4] weights [{}] are not blocks of {}", fmt::join(weight.sizes(), ","), kMxfp4Block));
  const auto blocks = weight.to(at::kFloat).reshape({weight.size(0), -1, kMxfp4Block});
  const auto largest = blocks.abs().amax(-1, /*keepdim=*/true);
  const auto exponent = (largest.log2().floor() - kLargestExponent).clamp(-kBias, kBias);
  const auto scaled = blocks / at::exp2(exponent);
  const auto code = (scaled.abs().unsqueeze(-1) - magnitudes(at::kFloat)).abs().argmin(-1) + 8 * (scaled < 0);
  const auto pairs = code.view({weight.size(0), -1, 2});
  return {(pairs.select(2, 0) + 16 * pairs.select(2, 1)).to(at::kByte).contiguous(),
          (exponent.squeeze(-1) + kBias).to(at::kByte).contiguous()};
}

at::Tensor dequantise(const Mxfp4Weight& weight, at::ScalarType dtype) {
  const auto table = at::cat({magnitudes(dtype), -magnitudes(dtype)});
  const auto codes = at::stack({weight.values & 15, weight.values.bitwise_right_shift(4)}, -1).to(at::kLong);
  const auto scale = at::exp2(weight.scales.to(at::kDouble) - kBias).unsqueeze(-1);
  const auto values = table.index({codes.view({weight.values.size(0), -1, kMxfp4Block})});
  return (values * scale.to(dtype)).view({weight.values.size(0), -1});
}

at::Tensor own_linear(const at::Tensor& x, const Mxfp4Weight& weight, const at::Tensor& bias) {
  const int64_t outputs = weight.values.size(0);
  const bool fits = x.dim() == 2 && x.size(1) % kMxfp4Block == 0 && 2 * weight.values.size(1) == x.size(1) &&
                    kMxfp4Block * weight.scales.size(1) == x.size(1) && weight.scales.size(0) == outputs &&
                    weight.values.is_contiguous() && weight.scales.is_contiguous() &&
                    (!bias.defined() || (bias.numel() == outputs && bias.scalar_type() == x.scalar_type()));
  if (!fits)
    throw Error(fmt::format("[mxfp4] [{}] does not fit weights of [{}] bytes", fmt::join(x.sizes(), ","),
                            fmt::join(weight.values.sizes(), ",")));
  const auto y = at::empty({x.size(0), outputs}, x.options());
  const auto rows = x.contiguous(), added = bias.defined() ? bias.contiguous() : bias;
  if (x.scalar_type() == at::kDouble)
    fused<double>(rows, weight, added, y);
  else if (x.scalar_type() == at::kFloat)
    fused<float>(rows, weight, added, y);
  else if (x.scalar_type() == at::kBFloat16)
    fused<uint16_t>(rows, weight, added, y);
  else
    throw Error(fmt::format("[mxfp4] our own kernel has no {}", dtype_name(x.scalar_type())));
  return y;
}

}  // namespace ops

namespace {

// Four bits by the format's definition: sign, two bits of exponent (bias 1), one of mantissa.
double e2m1(int code) {
  const int exponent = code >> 1 & 3, mantissa = code & 1;
  const double magnitude = exponent == 0 ? 0.5 * mantissa : std::ldexp(1 + 0.5 * mantissa, exponent - 1);
  return code & 8 ? -magnitude : magnitude;
}

at::Tensor reference(const OpCase& c) {
  const auto xs = c.in[0].accessor<double, 2>(), bytes = c.in[1].accessor<double, 2>();
  const auto exponents = c.in[2].accessor<double, 2>();
  const auto bs = c.in[3].accessor<double, 1>();
  const auto out = at::empty({xs.size(0), bytes.size(0)}, at::kDouble);
  auto ys = out.accessor<double, 2>();
  for (int64_t row = 0; row < xs.size(0); ++row)
    for (int64_t o = 0; o < bytes.size(0); ++o) {
      long double sum = bs[o];
      for (int64_t i = 0; i < xs.size(1); ++i) {
        const int byte = static_cast<int>(bytes[o][i / 2]), exponent = static_cast<int>(exponents[o][i / 32]) - 127;
        sum += static_cast<long double>(xs[row][i]) * std::ldexp(e2m1(i % 2 == 0 ? byte & 15 : byte >> 4), exponent);
      }
      ys[row][o] = static_cast<double>(sum);
    }
  return out;
}

Mxfp4Weight bytes_of(const OpCase& c) { return {c.in[1].to(at::kByte), c.in[2].to(at::kByte)}; }
at::Tensor run(const OpCase& c) {
  return at::linear(c.in[0], ops::dequantise(bytes_of(c), c.in[0].scalar_type()), c.in[3]);
}
at::Tensor run_own(const OpCase& c) { return ops::own_linear(c.in[0], bytes_of(c), c.in[3]); }

// Every byte occurs; exponents from 2^-9 to 2^3.
OpCase bytes(std::string name, int64_t rows, int64_t in, int64_t out, uint64_t seed) {
  const auto any = (spread({out, in / 2}, seed, 97.0).abs().floor()).remainder(256);
  const auto exponent = (spread({out, in / 32}, seed + 1, 3.0, 124.0)).round().clamp(118, 130);
  return {std::move(name), {spread({rows, in}, seed + 2), any, exponent, spread({out}, seed + 3)}};
}

std::vector<OpCase> cases() {
  return {bytes("one token", 1, 96, 61, 101), bytes("some tokens", 5, 320, 37, 111),
          bytes("gpt-oss's width", 1, 2880, 24, 121)};
}

}  // namespace

const OpRow& linear_mxfp4_row() {
  // Worst measured, all at 'gpt-oss's width': fp64 14 u, fp32 5.8 u, bf16 0.49 u; own: fp64 5 u, fp32 2.4 u, bf16 0.49
  // u; with vectors of 128 bits, on an emulated Nehalem, fp64 14 u, fp32 6.0 u (scripts/op_bounds).
  static const OpRow row{"linear, mxfp4",
                         reference,
                         run,
                         cases,
                         {{at::kDouble, {}, 27}, {at::kFloat, {}, 12}, {at::kBFloat16, {}, 0.7}},
                         {{"own", run_own, {{at::kDouble, {}, 28}, {at::kFloat, {}, 12}, {at::kBFloat16, {}, 0.7}}}}};
  return row;
}

}  // namespace parity
