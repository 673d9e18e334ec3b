#include "trace/reorder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace parity {
namespace {

using Kernel = std::function<Results(const torch::jit::Stack&)>;

struct Call {
  const c10::FunctionSchema& schema;
  torch::jit::Stack stack;  // a copy, changed before the kernel is called

  c10::IValue* find(std::string_view name) {
    const auto index = argument_index(schema, name);
    return index && !stack[*index].isNone() ? &stack[*index] : nullptr;
  }
  at::Tensor tensor(std::string_view name) {
    c10::IValue* value = find(name);
    return value != nullptr && value->isTensor() ? value->toTensor() : at::Tensor();
  }
  void flip(std::string_view name, int64_t axis) {
    c10::IValue* value = find(name);
    if (value != nullptr && value->isTensor() && value->toTensor().defined()) *value = value->toTensor().flip({axis});
  }
};

std::optional<Results> product(Call call, const Kernel& kernel, std::string_view left, std::string_view right) {
  call.flip(left, -1);
  call.flip(right, -2);
  return kernel(call.stack);
}

std::optional<Results> mm(Call call, const Kernel& kernel) { return product(std::move(call), kernel, "self", "mat2"); }
std::optional<Results> addmm(Call call, const Kernel& kernel) {
  return product(std::move(call), kernel, "mat1", "mat2");
}
std::optional<Results> baddbmm(Call call, const Kernel& kernel) {
  return product(std::move(call), kernel, "batch1", "batch2");
}

// Input channels in the opposite order.
std::optional<Results> convolution(Call call, const Kernel& kernel) {
  const c10::IValue *groups = call.find("groups"), *transposed = call.find("transposed");
  if (groups == nullptr || groups->toInt() != 1 || (transposed != nullptr && transposed->toBool())) return std::nullopt;
  call.flip("input", 1);
  call.flip("weight", 1);
  return kernel(call.stack);
}

// Statistics over the last axis reversed; only a norm over one axis.
std::optional<Results> norm(Call call, const Kernel& kernel) {
  const c10::IValue* shape = call.find("normalized_shape");
  if (shape == nullptr || shape->toIntVector().size() != 1) return std::nullopt;
  for (const char* name : {"input", "weight", "bias"}) call.flip(name, -1);
  Results results = kernel(call.stack);
  if (!results.empty() && results[0]) results[0] = results[0]->flip({-1}).contiguous();
  return results;
}

std::optional<Results> softmax(Call call, const Kernel& kernel) {
  const int64_t axis = call.find("dim")->toInt();
  if (call.tensor("self").dim() == 0) return std::nullopt;
  call.flip("self", axis);
  Results results = kernel(call.stack);
  results[0] = results[0]->flip({axis}).contiguous();
  return results;
}

std::optional<Results> sum(Call call, const Kernel& kernel) {
  const at::Tensor self = call.tensor("self");
  if (self.dim() == 0 || !at::isFloatingType(self.scalar_type())) return std::nullopt;
  std::vector<int64_t> axes(self.dim());
  for (int64_t i = 0; i < self.dim(); ++i) axes[i] = i;
  if (c10::IValue* given = call.find("dim"); given != nullptr && given->isIntList() && !given->toIntVector().empty())
    axes = given->toIntVector();
  *call.find("self") = self.flip(axes);
  return kernel(call.stack);
}

// softmax(q k^T scale + mask) v, every step rounded to the inputs' dtype.
std::optional<Results> attention(Call call, const Kernel&) {
  const at::Tensor q = call.tensor("query"), k = call.tensor("key"), v = call.tensor("value");
  if (!q.defined() || q.dim() != 4 || q.size(1) != k.size(1)) return std::nullopt;
  at::Tensor mask = call.tensor("attn_mask").defined() ? call.tensor("attn_mask") : call.tensor("attn_bias");
  const c10::IValue *given = call.find("scale"), *causal = call.find("is_causal");
  const double scale = given != nullptr ? given->toScalar().toDouble() : 1 / std::sqrt(static_cast<double>(q.size(-1)));
  at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) * scale;
  if (causal != nullptr && causal->toBool()) mask = at::ones({q.size(2), k.size(2)}, at::kBool).tril();
  if (mask.defined())
    scores = mask.scalar_type() == at::kBool
                 ? scores.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity())
                 : scores + mask.to(scores.scalar_type());
  // Fused kernels put the heads beside the width: (batch, length, heads, width) in memory.
  return Results{at::matmul(at::softmax(scores, -1), v).transpose(1, 2).contiguous().transpose(1, 2)};
}

struct Reordering {
  std::string_view op;
  std::optional<Results> (*run)(Call call, const Kernel& kernel);
};

constexpr std::array kReorderings{
    Reordering{"aten::mm", mm},
    Reordering{"aten::bmm", mm},
    Reordering{"aten::addmm", addmm},
    Reordering{"aten::baddbmm", baddbmm},
    Reordering{"aten::convolution", convolution},
    Reordering{"aten::native_layer_norm", norm},
    Reordering{"aten::_fused_rms_norm", norm},
    Reordering{"aten::_softmax", softmax},
    Reordering{"aten::sum.dim_IntList", sum},
    Reordering{"aten::mean.dim", sum},
    Reordering{"aten::var.correction", sum},
    Reordering{"aten::var_mean.correction", sum},
    Reordering{"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
    Reordering{"aten::_scaled_dot_product_flash_attention", attention},
    Reordering{"aten::_scaled_dot_product_efficient_attention", attention},
    Reordering{"aten::_scaled_dot_product_cudnn_attention", attention},
    Reordering{"aten::_scaled_dot_product_fused_attention_overrideable", attention},
};

}  // namespace

std::optional<Results> run_reordered(const Op& op, const c10::FunctionSchema& schema, const torch::jit::Stack& stack,
                                     const Kernel& kernel) {
  const auto found =
      std::find_if(kReorderings.begin(), kReorderings.end(), [&](const Reordering& r) { return r.op == op.name; });
  return found == kReorderings.end() ? std::nullopt : found->run(Call{schema, stack}, kernel);
}

}  // namespace parity
