// How matrix products and convolutions are computed: roundings of their operands, on the way, and before the addend.
#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "diagnose/faults/arithmetic.hpp"
#include "diagnose/faults/number_formats.hpp"

namespace parity {
namespace {

// Is something added to the product: a bias, or another addend?
bool adds(const ProgramIndex& program, int index) {
  const Op& op = program.op(index);
  if (op.kind == "addmm" || op.kind == "baddbmm") return true;
  return (op.kind == "convolution" || op.kind == "linear") && program.argument(index, 2) >= 0;
}

struct InputFormat {
  const char* name;
  Rounding rounding;
  at::ScalarType half = at::kFloat;  // kFloat: a result is never rounded to it
};
constexpr std::array kInputFormats{InputFormat{"tf32", to_tf32}, InputFormat{"tf32, truncated", to_tf32_truncated},
                                   InputFormat{"bf16", to_bf16, at::kBFloat16},
                                   InputFormat{"fp16", to_fp16, at::kHalf}};

Rewrite inputs_rounded(const InputFormat& format, bool result_too) {
  return [format, result_too](OpCall& call) {
    as_floats(call);
    const Operands names = operands_of(call.op);
    for (const std::string_view name : {names.left, names.right}) call.set(name, format.rounding(call.tensor(name)));
    Results results = call.run_again();
    if (result_too) results[0] = format.rounding(*results[0]);
    return results;
  };
}

// The first operand alone, as a module does that takes its input in half width and has its weight in fp32.
Rewrite input_rounded(Rounding rounding) {
  return [rounding](OpCall& call) {
    as_floats(call);
    const std::string_view name = operands_of(call.op).left;
    call.set(name, rounding(call.tensor(name)));
    return call.run_again();
  };
}

// Each operand as the sum of two bf16 numbers, the product of both smaller ones left out.
Results in_three_products(OpCall& call) {
  as_floats(call);
  const Operands names = operands_of(call.op);
  const at::Tensor a = call.tensor(names.left), b = call.tensor(names.right);
  const at::Tensor high_a = to_bf16(a), high_b = to_bf16(b), low_a = to_bf16(a - high_a), low_b = to_bf16(b - high_b);
  const auto product = [&](const at::Tensor& left, const at::Tensor& right) {
    call.set(names.left, left);
    call.set(names.right, right);
    return product_alone(call);
  };
  const at::Tensor small = product(high_a, low_b) + product(low_a, high_b);
  return with_addend(call, small + product(high_a, high_b));
}

// Both operands as (…, rows, K) and (…, K, columns), in at least fp32.
std::pair<at::Tensor, at::Tensor> matrices(OpCall& call) {
  as_floats(call);
  const Operands names = operands_of(call.op);
  at::Tensor a = call.tensor(names.left), b = call.tensor(names.right);
  if (call.op.kind == "linear") b = b.transpose(-2, -1);
  const at::ScalarType wide = a.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return {a.to(wide), b.to(wide)};
}

// What addmm and baddbmm multiply their product with.
at::Tensor scaled(OpCall& call, const at::Tensor& product) {
  const bool has_factor = call.op.kind == "addmm" || call.op.kind == "baddbmm";
  return has_factor ? product * call.value("alpha").toScalar().toDouble() : product;
}

constexpr int64_t kMostSteps = 1024;  // of a sum that is taken step by step

// A running sum in half width, to which `chunk` products at a time are added: what a matrix unit does.
Rewrite accumulated(int64_t chunk, Rounding rounding) {
  return [chunk, rounding](OpCall& call) {
    const auto [a, b] = matrices(call);
    const int64_t length = a.size(-1);
    if (length <= chunk || length / chunk > kMostSteps) throw std::runtime_error("one sum, or too many steps");
    at::Tensor sum;
    for (int64_t begin = 0; begin < length; begin += chunk) {
      const int64_t count = std::min(chunk, length - begin);
      const at::Tensor part = at::matmul(a.narrow(-1, begin, count), b.narrow(-2, begin, count));
      sum = rounding(sum.defined() ? sum + part : part);
    }
    return with_addend(call, scaled(call, sum));
  };
}

// K in `parts` whose sums are rounded before they are added, in fp32 or in half width.
Rewrite split(int64_t parts, Rounding rounding, bool added_in_half) {
  return [parts, rounding, added_in_half](OpCall& call) {
    const auto [a, b] = matrices(call);
    if (a.size(-1) < 2 * parts) throw std::runtime_error("too few products");
    const int64_t length = (a.size(-1) + parts - 1) / parts;
    at::Tensor sum;
    for (int64_t begin = 0; begin < a.size(-1); begin += length) {
      const int64_t count = std::min(length, a.size(-1) - begin);
      const at::Tensor part = rounding(at::matmul(a.narrow(-1, begin, count), b.narrow(-2, begin, count)));
      sum = sum.defined() ? sum + part : part;
      if (added_in_half) sum = rounding(sum);
    }
    return with_addend(call, scaled(call, sum));
  };
}

// Can the operands hold more than the format? bf16 in fp16 and fp16 in fp32 lose nothing.
bool narrows(const ProgramIndex& program, int index, const InputFormat& format) {
  const Op& op = program.op(index);
  const Value* left = program.value(program.argument(index, op.kind == "addmm" || op.kind == "baddbmm" ? 1 : 0));
  if (left == nullptr) return false;
  return left->dtype == at::kFloat || left->dtype == at::kDouble ||
         (left->dtype == at::kHalf && format.half == at::kBFloat16);
}

bool is_product(const ProgramIndex& program, int index) {
  const Op& op = program.op(index);
  return !operands_of(op).left.empty() && !op.outputs.empty() && op.outputs[0] && is_float(op.outputs[0]->dtype);
}

}  // namespace

// LibTorch's addmm rounds once, behind the sum. A product as an op of its own rounds before the addend, too: JAX, and
// LibTorch itself for some layouts of the input (mm or bmm, then add).
void bias_order(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (!is_product(program, index) || !is_half(op.outputs[0]->dtype) || !adds(program, index)) return;
  const at::ScalarType half = op.outputs[0]->dtype;
  add_arithmetic(to, program, index, "extra rounding: product before bias",
                 fmt::format("the product rounded to {} before its bias is added", short_dtype_name(half)),
                 [half](OpCall& call) {
                   as_floats(call);
                   return with_addend(call, product_alone(call).to(half));
                 });
}

void product_inputs(const ProgramIndex& program, int index, Hypotheses& to) {
  if (!is_product(program, index)) return;
  for (const InputFormat& f : kInputFormats) {
    if (!narrows(program, index, f)) continue;
    const std::string fault = fmt::format("product inputs: {}", f.name);
    add_arithmetic(to, program, index, fault, fmt::format("inputs of the product rounded to {}", f.name),
                   inputs_rounded(f, false));
    if (f.half == at::kFloat) continue;
    add_arithmetic(to, program, index, fault, fmt::format("inputs and result of the product rounded to {}", f.name),
                   inputs_rounded(f, true));
    add_arithmetic(to, program, index, fmt::format("extra rounding: input {}", f.name),
                   fmt::format("the product's first input alone rounded to {}", f.name), input_rounded(f.rounding));
  }
  if (program.op(index).outputs[0]->dtype == at::kFloat)
    add_arithmetic(to, program, index, "product inputs: bf16x3",
                   "each input split into two bf16 numbers, three of their products added", in_three_products);
}

void accumulation(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (!is_product(program, index) || op.kind == "convolution") return;
  constexpr std::array<int64_t, 7> kChunks{1, 4, 8, 16, 32, 64, 128};
  constexpr std::array<int64_t, 4> kParts{2, 3, 4, 8};
  for (const InputFormat& f : kInputFormats) {
    if (f.half == at::kFloat) continue;
    for (const int64_t parts : kParts)
      for (const bool half : {false, true})
        add_arithmetic(to, program, index, fmt::format("split K: {}", f.name),
                       fmt::format("{} partial sums rounded to {}, added in {}", parts, f.name, half ? f.name : "fp32"),
                       split(parts, f.rounding, half));
    for (const int64_t chunk : kChunks)
      add_arithmetic(to, program, index, fmt::format("accumulation: {}", f.name),
                     fmt::format("sum kept in {}, {} products at a time", f.name, chunk),
                     accumulated(chunk, f.rounding));
  }
}

}  // namespace parity
