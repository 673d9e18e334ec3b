// Linear layers and convolutions: bias, transposed or permuted weights, another layer's weights.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/dtype_kind.hpp"
#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/constants.hpp"
#include "diagnose/faults/number_formats.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

// The weight behind a matrix argument: itself, or what a `t` or `transpose` took.
const Leaf* weight_behind(const ProgramIndex& program, int64_t id) { return program.leaf_behind(id, 1); }

std::string weight_name(const Leaf& leaf) {
  for (const std::string& name : leaf.names)
    if (name.starts_with("weights/")) return name.substr(8);
  return "";
}

std::string up_one(const std::string& name, int parts) {  // "a.b.to_q.weight", 2 -> "a.b"
  size_t end = name.size();
  for (int i = 0; i < parts && end != std::string::npos && end > 0; ++i) end = name.rfind('.', end - 1);
  return end == std::string::npos ? "" : name.substr(0, end);
}

// Other weights altogether. In half width a residual may hide them.
void add_gross(Hypotheses& to, const ProgramIndex& program, int index, std::string fault, const std::string& what,
               Rewrite rewrite) {
  add_fault(to, program, index, std::move(fault), what, std::move(rewrite));
  const Op& op = program.op(index);
  to.back().gross = !op.outputs.empty() && op.outputs[0] && !is_half(op.outputs[0]->dtype);
}

// Is it what an embedding looks words up in? A head may be tied to it, or be taken for tied.
bool is_lookup_table(const ProgramIndex& program, const Leaf& leaf) {
  const auto& ops = program.program().ops;
  for (size_t i = 0; i < ops.size(); ++i)
    if (ops[i].name == "aten::embedding" && program.argument(static_cast<int>(i), 0) == leaf.value.id) return true;
  return false;
}

const Leaf* bias_of(const ProgramIndex& program, const Leaf& weight) {
  constexpr std::string_view kWeight = "weight";
  std::string name = weight_name(weight);
  if (!name.ends_with(kWeight)) return nullptr;
  name.replace(name.size() - kWeight.size(), kWeight.size(), "bias");
  name = "weights/" + name;
  for (const Leaf& leaf : program.program().leaves)
    if (leaf.value.shape.size() == 1 && std::find(leaf.names.begin(), leaf.names.end(), name) != leaf.names.end())
      return &leaf;
  return nullptr;
}

// Where a product's bias is added: by its own op, or by a sum behind it where the rows do not lie together.
struct BiasUse {
  const Leaf* bias;
  int op;
  const char* argument;
};

std::optional<BiasUse> use_of_bias(const ProgramIndex& program, int index, const Leaf& weight) {
  constexpr size_t kOperands = 4;  // addmm has its bias first, convolutions and norms after the weight
  constexpr int kSteps = 3;        // product, views, sum
  const Leaf* bias = bias_of(program, weight);
  if (bias == nullptr) return std::nullopt;
  const int64_t id = bias->value.id;
  for (size_t position = 0; position < kOperands; ++position)
    if (program.argument(index, position) == id) return BiasUse{bias, index, position == 0 ? "self" : "bias"};
  for (const int sum : program.consumers(id))
    if (sum > index && program.op(sum).name == "aten::add.Tensor" &&
        program.behind(sum, program.op(index).kind, kSteps) == index)
      return BiasUse{bias, sum, program.argument(sum, 0) == id ? "self" : "other"};
  return std::nullopt;
}

// The hypothesis before, which has another layer's weight, and that layer's bias with it.
void with_its_bias(const ProgramIndex& program, int index, const BiasUse& own, const Leaf& other, Hypotheses& to) {
  const Leaf* theirs = bias_of(program, other);
  if (theirs == nullptr || theirs->value.shape != own.bias->value.shape) return;
  FaultHypothesis both = to.back();
  both.rank = 3;  // of equal inputs a stale value is the same numbers: behind it (jobs/port_findings.cpp)
  both.what += " with its bias";
  const Rewrite weight = both.deviation.rewrites.at(index);
  const auto set = [id = theirs->value.id, argument = own.argument](OpCall& call) {
    call.set(argument, call.leaf(id));
  };
  both.deviation.rewrites[own.op] = [set, weight = own.op == index ? weight : nullptr](OpCall& call) {
    set(call);
    return weight ? weight(call) : call.run_again();
  };
  to.push_back(std::move(both));
}

// Weights of the same shape that a port might have loaded instead: neighbours in the module, another layer's, the
// embedding's.
void other_weights(const ProgramIndex& program, int index, const char* argument, const Leaf& own, bool transposed,
                   Hypotheses& to) {
  const std::string name = weight_name(own);
  if (name.empty()) return;
  const std::optional<BiasUse> bias = use_of_bias(program, index, own);
  int tried = 0;
  for (const Leaf& leaf : program.program().leaves) {
    if (&leaf == &own || leaf.value.shape != own.value.shape || tried > 12) continue;
    const std::string other = weight_name(leaf);
    const bool neighbour = !other.empty() && up_one(other, 2) == up_one(name, 2);
    const bool layer = !neighbour && !other.empty() && without_numbers(other) == without_numbers(name);
    const bool tied = !neighbour && !layer && !other.empty() && is_lookup_table(program, leaf);
    if (!neighbour && !layer && !tied) continue;
    ++tried;
    add_gross(to, program, index,
              tied                  ? "tied weights"
              : neighbour && !layer ? "weights swapped"
                                    : "wrong layer's weights",
              fmt::format("{} instead of {}", other, name), [id = leaf.value.id, argument, transposed](OpCall& call) {
                const at::Tensor weight = call.leaf(id);
                call.set(argument, transposed ? weight.t() : weight);
                return call.run_again();
              });
    if (bias) with_its_bias(program, index, *bias, leaf, to);
  }
}

// Query heads in the order of the other way to share key heads: rows of whole heads, by the view that makes heads of
// them.
void head_order(const ProgramIndex& program, int index, Hypotheses& to) {
  constexpr int kViews = 3;  // the product's rows as (batch, tokens) first
  const int64_t whole = program.op(index).outputs[0]->shape.back();
  std::vector<int64_t> apart{1, 0};
  for (int step = 0, at = index; step < kViews && apart[apart.size() - 2] * apart.back() != whole; ++step) {
    at = program.ahead(at, "view", 2);
    if (at < 0 || program.op(at).outputs.empty() || !program.op(at).outputs[0]) return;
    apart = program.op(at).outputs[0]->shape;
    if (apart.size() < 2) return;
  }
  if (apart[apart.size() - 2] * apart.back() != whole) return;
  const int64_t heads = apart[apart.size() - 2], width = apart.back();
  for (int64_t groups = 2; groups < heads && groups <= 16; ++groups)
    if (heads % groups == 0)
      add_gross(to, program, index, "permuted heads", fmt::format("heads group by group, {} groups", groups),
                [heads, groups, width](OpCall& call) {
                  Results results = call.run_again();
                  results[0] = results[0]->unflatten(-1, {groups, heads / groups, width}).transpose(-2, -3).flatten(-3);
                  return results;
                });
}

// Moves values too far for what is tried as arithmetic (arithmetic_weights.cpp), in half width, too.
void unsigned_bytes(const ProgramIndex& program, int index, const char* argument, Hypotheses& to) {
  add_gross(to, program, index, "weights: int8 asymmetric per channel, zero point of unsigned bytes left out",
            "weights held so", [argument](OpCall& call) {
              call.set(argument, to_int8_asymmetric(call.tensor(argument), 0, {.none = true}));
              return call.run_again();
            });
  to.back().gross = true;
}

void weight_faults(const ProgramIndex& program, int index, const char* argument, size_t position, Hypotheses& to) {
  const int64_t id = program.argument(index, position);
  const Leaf* weight = weight_behind(program, id);
  if (weight == nullptr || weight->value.shape.size() != 2) return;
  const auto& shape = weight->value.shape;
  if (shape[0] == shape[1] && shape[0] > 1)
    add_gross(to, program, index, "transposed weight", "square weight transposed", [argument](OpCall& call) {
      call.set(argument, call.tensor(argument).t());
      return call.run_again();
    });
  const bool transposed = weight->value.id != id;
  other_weights(program, index, argument, *weight, transposed, to);
  head_order(program, index, to);
  unsigned_bytes(program, index, argument, to);
  const int64_t out = transposed ? shape[0] : shape[1];
  for (const int64_t heads : {2, 3, 4, 6, 8, 12, 16})
    if (out % heads == 0 && out / heads >= 4)
      for (const bool inverse : {false, true})
        add_gross(to, program, index, "permuted heads",
                  fmt::format("output axis as ({}) on one side", inverse ? "width, heads" : "heads, width"),
                  [heads, inverse](OpCall& call) {
                    Results results = call.run_again();
                    const int64_t width = results[0]->size(-1) / heads;
                    const at::Tensor parts =
                        inverse ? results[0]->unflatten(-1, {width, heads}) : results[0]->unflatten(-1, {heads, width});
                    results[0] = parts.transpose(-1, -2).flatten(-2);
                    return results;
                  });
}

void kernel_axes(const ProgramIndex& program, int index, const Leaf& weight, Hypotheses& to) {
  const auto& shape = weight.value.shape;
  if (shape.size() == 4 && shape[2] == shape[3] && shape[2] > 1)
    add_gross(to, program, index, "transposed weight", "the kernel's height and width exchanged", [](OpCall& call) {
      call.set("weight", call.tensor("weight").transpose(-1, -2));
      return call.run_again();
    });
}

// Another norm's gain.
void vector_weights(const ProgramIndex& program, int index, Hypotheses& to) {
  const std::string& name = program.op(index).name;
  std::vector<std::pair<const char*, size_t>> arguments{{"weight", name == "aten::native_layer_norm" ? 2 : 1}};
  if (name == "aten::mul.Tensor") arguments = {{"self", 0}, {"other", 1}};
  for (const auto& [argument, position] : arguments)
    if (const Leaf* own = program.leaf(program.argument(index, position)); own && own->value.shape.size() == 1)
      other_weights(program, index, argument, *own, false, to);
}

}  // namespace

// A fused projection's equal parts in another order, a product of another size, weights rounded on the way.
void result_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (op.outputs.empty() || !op.outputs[0] || op.outputs[0]->shape.size() < 2) return;
  const bool conv = op.kind == "convolution";
  const bool gated = holds_gate_and_up(program, op.outputs[0]->id, 2);
  const int64_t axis = conv ? 1 : -1, width = conv ? op.outputs[0]->shape[1] : op.outputs[0]->shape.back();
  for (const int64_t parts : {2, 3})
    for (int64_t i = 0; width % parts == 0 && width / parts > 1 && i < parts; ++i)
      for (int64_t j = i + 1; j < parts; ++j)
        add_gross(to, program, index, gated && parts == 2 ? "gate and up exchanged" : "weights swapped",
                  fmt::format("parts {} and {} of {} exchanged", i, j, parts), [i, j, parts, axis](OpCall& call) {
                    Results results = call.run_again();
                    std::vector<at::Tensor> chunks = results[0]->chunk(parts, axis);
                    std::swap(chunks[i], chunks[j]);
                    results[0] = at::cat(chunks, axis);
                    return results;
                  });
  const char* bias = op.kind == "addmm" ? "self" : "bias";
  add_fault(
      to, program, index, "gain", "the product before its bias scaled",
      [bias, conv](OpCall& call) {
        Results results = call.run_again();
        const at::Tensor b = call.op.kind == "mm" ? at::Tensor() : call.tensor(bias);
        if (!b.defined()) throw std::runtime_error("no bias: the gain of all values says it");
        std::vector<int64_t> shape(conv ? results[0]->dim() - 1 : 1, 1);
        shape[0] = b.size(0);
        const at::Tensor own = b.view(shape);
        results[0] = *results[0] + kTried * (*results[0] - own);
        return results;
      },
      false);
  to.back().rank = 2;
  to.back().step = kTried;
}

void linear_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const std::string& name = program.op(index).name;
  if (name == "aten::addmm" || name == "aten::mm" || name == "aten::convolution") result_faults(program, index, to);
  if (name == "aten::embedding")
    if (const Leaf* table = weight_behind(program, program.argument(index, 0)))
      other_weights(program, index, "weight", *table, false, to);
  if (name == "aten::addmm") {
    add_fault(to, program, index, "missing bias", "bias left out", [](OpCall& call) {
      call.set("beta", at::Scalar(0));
      return call.run_again();
    });
    weight_faults(program, index, "mat2", 2, to);
  }
  if (name == "aten::mul.Tensor" || name.starts_with("aten::native_")) vector_weights(program, index, to);
  if (name == "aten::mm") weight_faults(program, index, "mat2", 1, to);
  if (name == "aten::convolution") {
    if (const Leaf* weight = program.leaf(program.argument(index, 1))) {
      other_weights(program, index, "weight", *weight, false, to);
      kernel_axes(program, index, *weight, to);
    }
    if (program.argument(index, 2) >= 0)
      add_fault(to, program, index, "missing bias", "convolution's bias left out", [](OpCall& call) {
        call.set("bias", c10::IValue());
        return call.run_again();
      });
  }
}

}  // namespace parity
