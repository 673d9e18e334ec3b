#include "diagnose/faults/arithmetic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/dtype_kind.hpp"

namespace parity {
namespace {

constexpr size_t kMostPlaces = 64;  // of one change in a stretch

using Family = void (*)(const ProgramIndex& program, int index, Hypotheses& to);

// In the order in which they are tried.
const std::array<std::vector<Family>, 3> kTiers{
    std::vector<Family>{bias_order, attention_probabilities, product_inputs, narrow_results},
    std::vector<Family>{attention_steps, cached_keys_and_values, narrow_weights},
    std::vector<Family>{approximated_functions, flushed_denormals, accumulation}};

// The same change at all of its places: a port that rounds one linear's inputs rounds all of them.
Hypotheses everywhere(const Hypotheses& single) {
  std::map<std::pair<std::string, std::string>, std::vector<const FaultHypothesis*>> groups;
  for (const FaultHypothesis& h : single) groups[{h.fault, h.what}].push_back(&h);
  Hypotheses all;
  for (const auto& [name, group] : groups) {
    if (group.size() < 2 || group.size() > kMostPlaces) continue;
    FaultHypothesis& h = all.emplace_back(*group.front());
    h.place += fmt::format(" and {} more places", group.size() - 1);
    ++h.rank;
    for (const FaultHypothesis* one : group)
      h.deviation.rewrites.insert(one->deviation.rewrites.begin(), one->deviation.rewrites.end());
  }
  return all;
}

bool adds_scaled(const Op& op) { return op.kind == "addmm" || op.kind == "baddbmm"; }

bool is_wide(const at::Tensor& t) { return t.defined() && t.scalar_type() == at::kDouble; }

}  // namespace

std::vector<Hypotheses> arithmetic_changes(const ProgramIndex& program, const std::vector<size_t>& ops, size_t lane) {
  std::vector<Hypotheses> tiers;
  for (const auto& families : kTiers) {
    Hypotheses single;
    for (const size_t op : ops)
      for (const Family family : families) {
        try {
          if (program.op(static_cast<int>(op)).opaque.empty()) family(program, static_cast<int>(op), single);
        } catch (const std::exception&) {  // arguments that it did not expect: it has nothing to say about this op
        }
      }
    Hypotheses all = everywhere(single);
    all.insert(all.end(), single.begin(), single.end());
    for (FaultHypothesis& h : all) h.deviation.lane = lane;
    tiers.push_back(std::move(all));
  }
  return tiers;
}

void add_arithmetic(Hypotheses& to, const ProgramIndex& program, int index, std::string fault, std::string what,
                    Rewrite rewrite) {
  FaultHypothesis h{std::move(fault), std::move(what), program.place(index), Gate::dtype_path};
  h.exact = h.arithmetic = true;
  h.rank = 1;  // a fault of the catalogue that explains as much says more
  h.deviation.rewrites[index] = std::move(rewrite);
  to.push_back(std::move(h));
}

void as_floats(OpCall& call) {
  if (!call.unrounded) return;
  for (c10::IValue& argument : call.arguments)
    if (argument.isTensor() && is_wide(argument.toTensor())) argument = argument.toTensor().to(at::kFloat);
}

at::ScalarType result_dtype(const OpCall& call) {
  const at::ScalarType recorded = call.op.outputs.at(0)->dtype;
  const bool oracle = !call.unrounded && std::any_of(call.arguments.begin(), call.arguments.end(), [](const auto& a) {
    return a.isTensor() && is_wide(a.toTensor());
  });
  return oracle ? at::kDouble : recorded;
}

Operands operands_of(const Op& op) {
  struct Product {
    std::string_view kind;
    Operands operands;
  };
  static constexpr std::array kProducts{Product{"mm", {"self", "mat2"}},
                                        Product{"bmm", {"self", "mat2"}},
                                        Product{"addmm", {"mat1", "mat2"}},
                                        Product{"baddbmm", {"batch1", "batch2"}},
                                        Product{"convolution", {"input", "weight"}},
                                        Product{"linear", {"input", "weight"}},
                                        Product{"matmul", {"self", "other"}}};
  for (const Product& p : kProducts)
    if (op.kind == p.kind) return p.operands;
  return {};
}

at::Tensor product_alone(OpCall& call) {
  OpCall alone = call;
  if (adds_scaled(call.op))
    alone.set("beta", c10::Scalar(0));
  else if (call.tensor("bias").defined())
    alone.set("bias", c10::IValue());
  return *alone.run_again().at(0);
}

Results with_addend(const OpCall& call, at::Tensor product) {
  const at::ScalarType wide = is_wide(product) ? at::kDouble : at::kFloat;
  product = product.to(wide);
  if (adds_scaled(call.op)) {
    const double beta = call.value("beta").toScalar().toDouble();
    if (beta != 0) product = product + call.tensor("self").to(wide) * beta;
  } else if (const at::Tensor bias = call.tensor("bias"); bias.defined()) {
    std::vector<int64_t> shape(product.dim(), 1);
    shape[call.op.kind == "convolution" ? product.dim() - call.value("stride").toIntVector().size() - 1
                                        : product.dim() - 1] = bias.numel();
    product = product + bias.to(wide).view(shape);
  }
  return {product.to(result_dtype(call))};
}

}  // namespace parity
