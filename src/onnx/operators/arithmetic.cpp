// Operators element by element that compute, compare or select.
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "onnx/dtypes.hpp"
#include "onnx/operator.hpp"

namespace parity::onnx {
namespace {

using Binary = at::Tensor (*)(const at::Tensor&, const at::Tensor&);
using Scalar = at::Tensor (*)(const at::Tensor&, const at::Scalar&);
using Unary = at::Tensor (*)(const at::Tensor&);

// A constant of rank 0 is a number of the program, as in PyTorch's `x + 1e-5`.
template <Binary tensors, Scalar with_number>
Tensors numeric(const Call& call) {
  if (const auto number = call.literal(1)) return {with_number(call[0], *number)};
  return {tensors(call[0], call[1])};
}

template <Binary tensors>
Tensors binary(const Call& call) {
  return {tensors(call[0], call[1])};
}

template <Unary function>
Tensors unary(const Call& call) {
  return {function(call[0])};
}

// of any number of inputs
template <Binary tensors>
Tensors folded(const Call& call) {
  at::Tensor result = call[0];
  for (size_t i = 1; i < call.inputs(); ++i) result = tensors(result, call[i]);
  return {result};
}

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); }
at::Tensor add_number(const at::Tensor& a, const at::Scalar& b) { return at::add(a, b); }
at::Tensor sub(const at::Tensor& a, const at::Tensor& b) { return at::sub(a, b); }
at::Tensor sub_number(const at::Tensor& a, const at::Scalar& b) { return at::sub(a, b); }
at::Tensor mul(const at::Tensor& a, const at::Tensor& b) { return at::mul(a, b); }
at::Tensor mul_number(const at::Tensor& a, const at::Scalar& b) { return at::mul(a, b); }

// Integers: the quotient without its fraction, as C has it.
at::Tensor div(const at::Tensor& a, const at::Tensor& b) {
  return at::isFloatingType(a.scalar_type()) ? at::div(a, b) : at::div(a, b, "trunc");
}
at::Tensor div_number(const at::Tensor& a, const at::Scalar& b) {
  return at::isFloatingType(a.scalar_type()) ? at::div(a, b) : at::div(a, b, "trunc");
}

// fmod 0: the sign of the divisor, as Python has it; 1: that of the dividend, as C has it.
Tensors mod(const Call& call) {
  return {call.flag("fmod") ? at::fmod(call[0], call[1]) : at::remainder(call[0], call[1])};
}

// The result has the base's dtype, whatever the exponent's.
Tensors pow(const Call& call) {
  const at::Tensor& base = call[0];
  if (const auto number = call.literal(1); number && at::isFloatingType(base.scalar_type()))
    return {at::pow(base, *number)};
  return {at::pow(base, call[1]).to(base.scalar_type())};
}

Tensors mean(const Call& call) {
  const at::Tensor sum = folded<add>(call)[0];
  return {call.inputs() == 1 ? sum : at::div(sum, static_cast<int64_t>(call.inputs()))};
}

// Where the two limits contradict each other the upper one holds, in both.
Tensors clip(const Call& call) {
  const auto least = call.literal(1), most = call.literal(2);
  if ((least || !call.has(1)) && (most || !call.has(2))) {
    if (!least && !most) return {call[0]};
    return {at::clamp(call[0], least, most)};
  }
  const auto limit = [&](size_t input) {
    return call.has(input) ? std::optional<at::Tensor>(call[input]) : std::nullopt;
  };
  return {at::clamp(call[0], limit(1), limit(2))};
}

Tensors is_inf(const Call& call) {
  const bool positive = call.flag("detect_positive", true), negative = call.flag("detect_negative", true);
  if (positive && negative) return {at::isinf(call[0])};
  if (positive) return {at::isposinf(call[0])};
  return {negative ? at::isneginf(call[0]) : at::zeros_like(call[0], at::kBool)};
}

Tensors select(const Call& call) { return {at::where(call[0], call[1], call[2])}; }

Tensors shift(const Call& call) {
  const bool left = call.text("direction", "") == "LEFT";
  return {left ? at::bitwise_left_shift(call[0], call[1]) : at::bitwise_right_shift(call[0], call[1])};
}

struct Float8 {
  at::ScalarType dtype;
  double most;
};

// ONNX rounds what a float8 cannot hold to its largest number (`saturate`, the default), ATen to NaN or infinity.
constexpr Float8 kFloat8[] = {{at::kFloat8_e4m3fn, 448}, {at::kFloat8_e5m2, 57344}};

at::Tensor converted(const Call& call, at::ScalarType dtype) {
  at::Tensor from = call[0];
  if (call.flag("saturate", true) && at::isFloatingType(from.scalar_type()))
    for (const Float8& f : kFloat8)
      if (f.dtype == dtype) from = at::clamp(from, -f.most, f.most);
  return from.to(dtype);
}

Tensors cast(const Call& call) {
  const Attribute* to = call.find("to");
  if (to == nullptr || !to->integer) throw Error("its attribute 'to' is missing");
  return {converted(call, dtype_of(*to->integer))};
}

Tensors cast_like(const Call& call) { return {converted(call, call[1].scalar_type())}; }

constexpr LoweringRow kRows[] = {
    {"Add", numeric<add, add_number>},
    {"Sub", numeric<sub, sub_number>},
    {"Mul", numeric<mul, mul_number>},
    {"Div", numeric<div, div_number>},
    {"Mod", mod},
    {"Pow", pow},
    {"Sum", folded<add>},
    {"Mean", mean},
    {"Max", folded<at::maximum>},
    {"Min", folded<at::minimum>},
    {"Clip", clip},
    {"Neg", unary<at::neg>},
    {"Abs", unary<at::abs>},
    {"Sign", unary<at::sign>},
    {"Sqrt", unary<at::sqrt>},
    {"Reciprocal", unary<at::reciprocal>},
    {"Exp", unary<at::exp>},
    {"Log", unary<at::log>},
    {"Ceil", unary<at::ceil>},
    {"Floor", unary<at::floor>},
    {"Round", unary<at::round>},  // halves to even, in both
    {"Sin", unary<at::sin>},
    {"Cos", unary<at::cos>},
    {"Tan", unary<at::tan>},
    {"Asin", unary<at::asin>},
    {"Acos", unary<at::acos>},
    {"Atan", unary<at::atan>},
    {"Sinh", unary<at::sinh>},
    {"Cosh", unary<at::cosh>},
    {"Asinh", unary<at::asinh>},
    {"Acosh", unary<at::acosh>},
    {"Atanh", unary<at::atanh>},
    {"Erf", unary<at::erf>},
    {"IsNaN", unary<at::isnan>},
    {"IsInf", is_inf},
    {"Not", unary<at::logical_not>},
    {"And", binary<at::logical_and>},
    {"Or", binary<at::logical_or>},
    {"Xor", binary<at::logical_xor>},
    {"Equal", binary<at::eq>},
    {"Less", binary<at::lt>},
    {"LessOrEqual", binary<at::le>},
    {"Greater", binary<at::gt>},
    {"GreaterOrEqual", binary<at::ge>},
    {"BitwiseAnd", binary<at::bitwise_and>},
    {"BitwiseOr", binary<at::bitwise_or>},
    {"BitwiseXor", binary<at::bitwise_xor>},
    {"BitwiseNot", unary<at::bitwise_not>},
    {"BitShift", shift},
    {"Where", select},
    {"Cast", cast},
    {"CastLike", cast_like},
};

}  // namespace

std::span<const LoweringRow> arithmetic() { return kRows; }

}  // namespace parity::onnx
