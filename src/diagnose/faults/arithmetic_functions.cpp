// Functions approximated: exp, reciprocal root, tanh and erf as fast libraries, shaders and hand-written kernels have
// them, and tables of half-width numbers. Each is computed as its source does, in fp32, so that a port that uses it has
// nearly the same bits.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/dtype_kind.hpp"
#include "diagnose/faults/arithmetic.hpp"
#include "diagnose/faults/arithmetic_attention.hpp"
#include "diagnose/faults/arithmetic_constants.hpp"
#include "diagnose/faults/number_formats.hpp"

namespace parity {
namespace {

using Function = at::Tensor (*)(const at::Tensor&);

at::Tensor with_bits(const at::Tensor& bits) { return bits.to(at::kInt).contiguous().view(at::kFloat); }

at::Tensor horner(const at::Tensor& x, const auto& coefficients) {  // the highest power first
  at::Tensor sum = at::full_like(x, coefficients[0]);
  for (size_t i = 1; i < coefficients.size(); ++i) sum = sum * x + coefficients[i];
  return sum;
}

at::Tensor exp_by_exp2(const at::Tensor& x) { return (x * static_cast<float>(kLog2E)).exp2(); }

// 2^whole from the exponent's bits, 2^fraction by a polynomial.
at::Tensor exp_by_polynomial(const at::Tensor& x) {
  const at::Tensor y = (x.to(at::kFloat) * static_cast<float>(kLog2E)).clamp_min(-kLeastExponent);
  const at::Tensor whole = y.floor();
  return at::ldexp(horner(y - whole, kExp2Polynomial), whole).masked_fill(x.lt(-kLeastExponent / kLog2E), 0);
}

at::Tensor exp_by_bits(const at::Tensor& x) {
  const at::Tensor line =
      x.to(at::kFloat) * static_cast<float>(kSchraudolphSlope) + static_cast<float>(kSchraudolphOffset);
  return with_bits(line.clamp_min(0).to(at::kInt));
}

at::Tensor exp_by_power(const at::Tensor& x) {
  at::Tensor power = (1 + x / kPower).clamp_min(0);
  for (int i = 0; i < kPowerDoublings; ++i) power = power * power;
  return power;
}

template <int steps>
at::Tensor rsqrt_by_bits(const at::Tensor& x) {
  const at::Tensor floats = x.to(at::kFloat).contiguous();
  at::Tensor y = with_bits(kRsqrtMagic - at::bitwise_right_shift(floats.view(at::kInt), 1));
  for (int i = 0; i < steps; ++i) y = y * (kThreeHalves - floats * kHalfStep * y * y);
  return y;
}

at::Tensor rsqrt_in_fp16(const at::Tensor& x) { return to_fp16(to_fp16(x).rsqrt()); }

at::Tensor tanh_by_pade(const at::Tensor& x) {
  const at::Tensor s = x * x;
  return (x * (27 + s) / (27 + 9 * s)).clamp(-1, 1);
}

at::Tensor tanh_by_fraction(const at::Tensor& x) {  // Lambert's continued fraction, seven levels
  const at::Tensor s = x * x;
  return (x * horner(s, kLambertAbove) / horner(s, kLambertBelow)).clamp(-1, 1);
}

at::Tensor erf_of_hastings(const at::Tensor& x) {  // Abramowitz and Stegun 7.1.26
  const at::Tensor magnitude = x.abs(), t = 1 / (1 + kHastingsP * magnitude);
  return x.sign() * (1 - horner(t, kHastings) * t * (-magnitude * magnitude).exp());
}

at::Tensor erf_of_hastings_short(const at::Tensor& x) {  // Abramowitz and Stegun 7.1.25
  const at::Tensor magnitude = x.abs(), t = 1 / (1 + kHastingsShortP * magnitude);
  return x.sign() * (1 - horner(t, kHastingsShort) * t * (-magnitude * magnitude).exp());
}

struct Approximation {
  std::string_view function;  // "exp", "rsqrt", "tanh" or "erf"
  const char* what;
  Function compute;
};
constexpr std::array kApproximations{
    Approximation{"exp", "exp(x) as exp2(x log2 e)", exp_by_exp2},
    Approximation{"exp", "exp by a cubic polynomial of the fraction of x log2 e", exp_by_polynomial},
    Approximation{"exp", "exp by Schraudolph's line through the bits", exp_by_bits},
    Approximation{"exp", "exp(x) as (1 + x / 1024)^1024", exp_by_power},
    Approximation{"rsqrt", "reciprocal root by its bits and one Newton step", rsqrt_by_bits<1>},
    Approximation{"rsqrt", "reciprocal root by its bits and two Newton steps", rsqrt_by_bits<2>},
    Approximation{"rsqrt", "reciprocal root in fp16", rsqrt_in_fp16},
    Approximation{"tanh", "tanh as x (27 + x^2) / (27 + 9 x^2)", tanh_by_pade},
    Approximation{"tanh", "tanh by seven levels of its continued fraction", tanh_by_fraction},
    Approximation{"erf", "erf by Abramowitz and Stegun 7.1.26", erf_of_hastings},
    Approximation{"erf", "erf by Abramowitz and Stegun 7.1.25", erf_of_hastings_short}};

bool is_tanh_gelu(const Op& op) { return op.kwargs.value("approximate", std::string("none")) == "tanh"; }

// Which function an op's kernel calls; "": none of them.
std::string_view function_of(const Op& op) {
  if (op.kind == "gelu") return is_tanh_gelu(op) ? "tanh" : "erf";
  for (const std::string_view kind : {"exp", "rsqrt", "tanh", "erf"})
    if (op.kind == kind) return kind;
  for (const std::string_view kind : {"_softmax", "silu", "sigmoid"})
    if (op.kind == kind) return "exp";
  for (const std::string_view kind : {"native_layer_norm", "_fused_rms_norm"})
    if (op.kind == kind) return "rsqrt";
  return is_fused_attention(op) ? "exp" : "";
}

at::Tensor gelu_with(const OpCall& call, const at::Tensor& x, Function f) {
  if (is_tanh_gelu(call.op)) return kHalfStep * x * (1 + f(kRootTwoOverPi * (x + kGeluCubic * x * x * x)));
  return kHalfStep * x * (1 + f(x * kRootHalf));
}

// The mean over the last `count` axes, where one is taken, and the gain behind.
at::Tensor norm_with(const OpCall& call, const at::Tensor& x, Function f) {
  const bool centred = call.op.kind == "native_layer_norm";
  std::vector<int64_t> axes;
  for (int64_t i = call.value("normalized_shape").toIntVector().size(); i > 0; --i) axes.push_back(-i);
  const at::Tensor deviation = centred ? x - x.mean(axes, true) : x;
  const c10::IValue given = call.value("eps");
  const double eps = given.isNone() ? std::numeric_limits<float>::epsilon() : given.toScalar().toDouble();
  at::Tensor y = deviation * f(deviation.square().mean(axes, true) + eps);
  if (const at::Tensor weight = call.tensor("weight"); weight.defined()) y = y * weight;
  if (const at::Tensor bias = call.tensor("bias"); bias.defined()) y = y + bias;
  return y;
}

at::Tensor softmax_with(const OpCall& call, const at::Tensor& x, Function f) {
  const int64_t axis = call.value("dim").toInt();
  const at::Tensor e = f(x - x.amax({axis}, true));
  return e / e.sum({axis}, true);
}

Rewrite approximated(Function f) {
  return [f](OpCall& call) {
    if (is_fused_attention(call.op)) return attention_in_steps(call, {nullptr, nullptr, nullptr, true, f});
    as_floats(call);
    at::Tensor x =
        call.tensor(call.op.kind.starts_with("native") || call.op.kind.starts_with("_fused") ? "input" : "self");
    if (is_half(x.scalar_type())) x = x.to(at::kFloat);
    const std::string& kind = call.op.kind;
    Results results = call.run_again();
    at::Tensor y;
    if (kind == "gelu")
      y = gelu_with(call, x, f);
    else if (kind == "silu")
      y = x / (1 + f(-x));
    else if (kind == "sigmoid")
      y = 1 / (1 + f(-x));
    else if (kind == "_softmax")
      y = softmax_with(call, x, f);
    else if (call.value("normalized_shape").isIntList())
      y = norm_with(call, x, f);
    else
      y = f(x);
    results.at(0) = y.to(result_dtype(call));
    return results;
  };
}

constexpr const char* kTable = "fast math: fp16 table";

// ggml's GELU, and others': one entry for every half-width argument.
Results from_table(OpCall& call) {
  as_floats(call);
  call.set("self", to_fp16(call.tensor("self")));
  Results results = call.run_again();
  results[0] = to_fp16(*results[0]);
  return results;
}

// A GELU written out, 0.5 x (1 + tanh(…)), from such a table: the last product has half of the argument.
void written_out_from_table(const ProgramIndex& program, int tanh_op, Hypotheses& to) {
  constexpr int kSum = 2, kCube = 5;  // steps from the tanh to the last product, and back to x^3
  const int cube = program.behind(tanh_op, "pow", kCube), last = program.ahead(tanh_op, "mul", kSum);
  if (cube < 0 || last < 0 || program.number(cube, 1) != 3) return;
  const int half = program.producer(program.argument(last, 0));
  if (half < 0 || program.op(half).kind != "mul" || program.number(half, 1) != kHalfStep) return;
  add_arithmetic(to, program, last, kTable, "gelu from a table of fp16 numbers", [](OpCall& call) {
    as_floats(call);
    Results results = call.run_again();
    results[0] = to_fp16(at::gelu(to_fp16(2 * call.tensor("self")), "tanh"));
    return results;
  });
}

}  // namespace

void approximated_functions(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const std::string_view function = function_of(op);
  if (function.empty() || op.outputs.empty() || !op.outputs[0] || op.outputs[0]->dtype == at::kDouble) return;
  for (const Approximation& a : kApproximations)
    if (a.function == function)
      add_arithmetic(to, program, index, fmt::format("fast math: {}", function), a.what, approximated(a.compute));
  if (op.kind == "gelu" || op.kind == "silu" || op.kind == "tanh" || op.kind == "exp" || op.kind == "sigmoid")
    add_arithmetic(to, program, index, kTable, fmt::format("{} from a table of fp16 numbers", op.kind), from_table);
  if (op.kind == "tanh") written_out_from_table(program, index, to);
}

}  // namespace parity
