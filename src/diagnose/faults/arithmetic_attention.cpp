// How attention is computed: keys and values cached in a narrower format, probabilities rounded before the product with
// the values, inputs of both products rounded. Fused attention is written out here; in a program that has it step by
// step the two products are looked at one by one.
#include "diagnose/faults/arithmetic_attention.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/dtype_kind.hpp"
#include "diagnose/faults/arithmetic.hpp"
#include "diagnose/faults/arithmetic_constants.hpp"

namespace parity {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

// Which axis of a cached operand holds a head's numbers of one token.
struct Cached {
  std::string_view name;
  int64_t width;
};

using CacheFormat = at::Tensor (*)(const at::Tensor& cached, int64_t width);

at::Tensor as_bf16(const at::Tensor& t, int64_t) { return to_bf16(t); }
at::Tensor as_fp16(const at::Tensor& t, int64_t) { return to_fp16(t); }
at::Tensor as_e4m3(const at::Tensor& t, int64_t) { return to_e4m3(t); }
at::Tensor as_e5m2(const at::Tensor& t, int64_t) { return to_e5m2(t); }
at::Tensor e4m3_tensor(const at::Tensor& t, int64_t) { return scaled_to(t, {}, kLargestE4m3, to_e4m3); }
at::Tensor e5m2_tensor(const at::Tensor& t, int64_t) { return scaled_to(t, {}, kLargestE5m2, to_e5m2); }
at::Tensor int8_tensor(const at::Tensor& t, int64_t) { return to_integers(t, {}, kLargestInt8); }
at::Tensor int8_token(const at::Tensor& t, int64_t w) { return to_integers(t, {w}, kLargestInt8); }
at::Tensor q8_0_cache(const at::Tensor& t, int64_t w) { return to_q8_0(t, w, kBlock32); }

// Batch entries that share a head share its scale; where batch and heads are one axis each entry has its own.
std::vector<int64_t> of_a_head(const at::Tensor& t) {
  return t.dim() == 4 ? std::vector<int64_t>{0, 2, 3} : std::vector<int64_t>{-2, -1};
}
at::Tensor e4m3_head(const at::Tensor& t, int64_t) { return scaled_to(t, of_a_head(t), kLargestE4m3, to_e4m3); }
at::Tensor e5m2_head(const at::Tensor& t, int64_t) { return scaled_to(t, of_a_head(t), kLargestE5m2, to_e5m2); }
at::Tensor int8_head(const at::Tensor& t, int64_t) { return to_integers(t, of_a_head(t), kLargestInt8); }

struct NamedCache {
  const char* name;
  CacheFormat format;
};
constexpr std::array kCaches{NamedCache{"fp16", as_fp16},
                             NamedCache{"bf16", as_bf16},
                             NamedCache{"fp8 e4m3", as_e4m3},
                             NamedCache{"fp8 e5m2", as_e5m2},
                             NamedCache{"fp8 e4m3 per tensor", e4m3_tensor},
                             NamedCache{"fp8 e5m2 per tensor", e5m2_tensor},
                             NamedCache{"fp8 e4m3 per head", e4m3_head},
                             NamedCache{"fp8 e5m2 per head", e5m2_head},
                             NamedCache{"int8 per tensor", int8_tensor},
                             NamedCache{"int8 per head", int8_head},
                             NamedCache{"int8 per token", int8_token},
                             NamedCache{"Q8_0", q8_0_cache}};

Rewrite cached_in(std::vector<Cached> operands, CacheFormat format) {
  return [operands = std::move(operands), format](OpCall& call) {
    as_floats(call);
    for (const Cached& c : operands) call.set(c.name, format(call.tensor(c.name), c.width));
    return call.run_again();
  };
}

// What the operands of an op hold of keys and values; empty: neither.
std::vector<Cached> cached_operands(const ProgramIndex& program, int index) {
  constexpr int kBetween = 8;  // scale, mask, softmax, casts and views
  const Op& op = program.op(index);
  if (is_fused_attention(op)) return {{"key", -1}, {"value", -1}};
  const Operands names = operands_of(op);
  if (names.left.empty() || op.kind == "convolution" || op.kind == "addmm" || op.kind == "linear") return {};
  const int64_t left = program.argument(index, op.kind == "baddbmm" ? 1 : 0);
  if (is_weight(program, program.argument(index, op.kind == "baddbmm" ? 2 : 1))) return {};  // a router's, say
  if (const int made = program.producer(left); made >= 0 && program.behind(made, "_softmax", kBetween / 2) >= 0)
    return {{names.right, -1}};                                                     // (…, tokens, width)
  if (program.ahead(index, "_softmax", kBetween) >= 0) return {{names.right, -2}};  // transposed: (…, width, tokens)
  return {};
}

Rewrite stepwise(AttentionSteps steps) {
  return [steps](OpCall& call) { return attention_in_steps(call, steps); };
}

struct Half {
  const char* name;
  Rounding rounding;
};
constexpr std::array kHalves{Half{"fp16", to_fp16}, Half{"bf16", to_bf16}};

void fused_steps(const ProgramIndex& program, int index, Hypotheses& to) {
  for (const Half& h : kHalves) {
    const std::string cache = fmt::format("kv cache: {}", h.name),
                      probabilities = fmt::format("attention probabilities: {}", h.name);
    add_arithmetic(to, program, index, cache, fmt::format("keys, values and queries rounded to {}", h.name),
                   stepwise({h.rounding, h.rounding, nullptr, false}));
    for (const bool before : {false, true}) {
      const char* when = before ? "before their sum divides" : "divided by their sum";
      add_arithmetic(to, program, index, cache,
                     fmt::format("keys, values, queries and probabilities ({}) rounded to {}", when, h.name),
                     stepwise({h.rounding, h.rounding, h.rounding, before}));
      add_arithmetic(to, program, index, probabilities, fmt::format("probabilities ({}) rounded to {}", when, h.name),
                     stepwise({nullptr, nullptr, h.rounding, before}));
    }
  }
  for (const Half& f : {Half{"tf32", to_tf32}, Half{"tf32, truncated", to_tf32_truncated}})
    for (const bool before : {false, true})
      add_arithmetic(to, program, index, fmt::format("product inputs: {}", f.name),
                     fmt::format("inputs of both products rounded to {}{}", f.name,
                                 before ? ", probabilities before their sum divides" : ""),
                     stepwise({f.rounding, f.rounding, f.rounding, before}));
}

}  // namespace

bool is_fused_attention(const Op& op) { return op.kind.find("scaled_dot_product") != std::string::npos; }

at::Tensor for_queries(const at::Tensor& t, int64_t heads) {
  return t.size(1) == heads ? t : t.repeat_interleave(heads / t.size(1), 1);
}

at::Tensor masked_scores(const OpCall& call, at::Tensor scores) {
  const c10::IValue causal = call.value("is_causal");
  if (causal.isBool() && causal.toBool())
    scores = scores.masked_fill(
        at::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool)).tril().logical_not(), kNothing);
  at::Tensor mask = call.tensor("attn_mask").defined() ? call.tensor("attn_mask") : call.tensor("attn_bias");
  if (!mask.defined()) return scores;
  return mask.scalar_type() == at::kBool ? scores.masked_fill(mask.logical_not(), kNothing)
                                         : scores + mask.to(scores.scalar_type());
}

double attention_scale(const OpCall& call) {
  const c10::IValue given = call.value("scale");
  return given.isNone() ? 1 / std::sqrt(static_cast<double>(call.tensor("query").size(-1)))
                        : given.toScalar().toDouble();
}

Results attention_in_steps(OpCall& call, const AttentionSteps& steps) {
  as_floats(call);
  at::Tensor q = call.tensor("query"), k = call.tensor("key"), v = call.tensor("value");
  if (q.dim() != 4 || k.dim() != 4 || k.size(1) == 0 || q.size(1) % k.size(1) != 0)
    throw std::runtime_error("not (batch, heads, tokens, width)");
  const at::ScalarType wide = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto rounded = [&](const at::Tensor& t, Rounding r) { return r == nullptr ? t.to(wide) : r(t.to(wide)); };
  q = rounded(q, steps.query);
  k = for_queries(rounded(k, steps.cached), q.size(1));
  v = for_queries(rounded(v, steps.cached), q.size(1));
  const at::Tensor scores = masked_scores(call, at::matmul(q, k.transpose(-2, -1)) * attention_scale(call));
  const at::Tensor shifted = scores - scores.amax({-1}, true).nan_to_num(0, 0, 0);
  const at::Tensor weights = steps.exponential != nullptr ? steps.exponential(shifted) : shifted.exp();
  const at::Tensor sum = weights.sum({-1}, true).clamp_min(std::numeric_limits<float>::min());
  const at::Tensor out = steps.before_division ? at::matmul(rounded(weights, steps.probabilities), v) / sum
                                               : at::matmul(rounded(weights / sum, steps.probabilities), v);
  Results results = call.run_again();
  results.at(0) = out.to(result_dtype(call)).transpose(1, 2).contiguous().transpose(1, 2);
  return results;
}

void cached_keys_and_values(const ProgramIndex& program, int index, Hypotheses& to) {
  const std::vector<Cached> operands = cached_operands(program, index);
  if (operands.empty()) return;
  for (const NamedCache& c : kCaches) {
    add_arithmetic(to, program, index, fmt::format("kv cache: {}", c.name),
                   fmt::format("keys and values held in {}", c.name), cached_in(operands, c.format));
    to.back().by_elements = true;
  }
}

void attention_steps(const ProgramIndex& program, int index, Hypotheses& to) {
  if (is_fused_attention(program.op(index))) fused_steps(program, index, to);
}

// Probabilities of attention written out: the softmax's result, read by a product.
void attention_probabilities(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  constexpr int kBefore = 4;
  if (op.kind != "_softmax" || op.outputs.empty() || !op.outputs[0] || is_half(op.outputs[0]->dtype)) return;
  if (program.ahead(index, "bmm", kBefore) < 0 && program.ahead(index, "matmul", kBefore) < 0) return;
  for (const Half& h : kHalves)
    add_arithmetic(to, program, index, fmt::format("attention probabilities: {}", h.name),
                   fmt::format("probabilities rounded to {}", h.name), [rounding = h.rounding](OpCall& call) {
                     as_floats(call);
                     return Results{rounding(*call.run_again().at(0))};
                   });
}

}  // namespace parity
