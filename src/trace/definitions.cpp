#include "trace/definitions.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace parity {
namespace {

// Arguments by name; the attention operators of the backends share names, not positions.
class Arguments {
 public:
  Arguments(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) : schema_(schema), stack_(stack) {}

  const c10::IValue* get(std::string_view name) const {
    const auto index = argument_index(schema_, name);
    return index && !stack_[*index].isNone() ? &stack_[*index] : nullptr;
  }
  at::Tensor tensor(std::string_view name) const {  // undefined when absent
    const c10::IValue* value = get(name);
    return value != nullptr && value->isTensor() ? value->toTensor() : at::Tensor();
  }
  at::Tensor required(std::string_view name) const {
    at::Tensor value = tensor(name);
    if (!value.defined()) throw Error(fmt::format("argument '{}' is not a tensor", name));
    return value;
  }
  bool flag(std::string_view name) const {
    const c10::IValue* value = get(name);
    return value != nullptr && (value->isBool() ? value->toBool() : value->isInt() && value->toInt() != 0);
  }
  std::optional<double> number(std::string_view name) const {
    const c10::IValue* value = get(name);
    return value == nullptr ? std::nullopt : std::optional(value->toScalar().toDouble());
  }

 private:
  const c10::FunctionSchema& schema_;
  const torch::jit::Stack& stack_;
};

// Fused kernels accumulate half-width inputs in fp32 and round once at the end.
at::ScalarType accumulation_dtype(at::ScalarType dtype) { return dtype == at::kDouble ? at::kDouble : at::kFloat; }

struct Attention {
  at::Tensor query, key, value;  // (batch, heads, length, dim), already in the accumulation dtype
  at::Tensor mask;               // added to the scores, or bool (true: attend); undefined: none
  bool causal;                   // query i sees keys 0..i
  double scale;
};

struct Attended {
  at::Tensor output, logsumexp;  // (batch, heads, length, dim), (batch, heads, length)
};

// Rows [begin, begin + count) of the queries. A row that may see nothing yields zeros, as every fused kernel has it.
Attended attend_rows(const Attention& a, int64_t begin, int64_t count) {
  at::Tensor scores = at::matmul(a.query.narrow(-2, begin, count), a.key.transpose(-2, -1)) * a.scale;
  if (a.mask.defined()) {
    const at::Tensor rows = a.mask.size(-2) == 1 ? a.mask : a.mask.narrow(-2, begin, count);
    if (rows.scalar_type() == at::kBool)
      scores.masked_fill_(rows.logical_not(), -std::numeric_limits<double>::infinity());
    else
      scores.add_(rows.to(scores.scalar_type()));
  }
  if (a.causal) {
    const auto whole = a.query.options().dtype(at::kLong);
    const at::Tensor row = at::arange(begin, begin + count, whole).unsqueeze(1),
                     column = at::arange(a.key.size(-2), whole);
    scores.masked_fill_(column > row, -std::numeric_limits<double>::infinity());
  }
  at::Tensor logsumexp = at::logsumexp(scores, -1);
  const at::Tensor blind = logsumexp.eq(-std::numeric_limits<double>::infinity()).unsqueeze(-1);
  const at::Tensor weights = at::softmax(scores, -1).masked_fill(blind, 0);  // not in place: its derivative needs them
  return {at::matmul(weights, a.value), std::move(logsumexp)};
}

// In slices of queries, so that the scores never need more than 64 MiB or one row.
Attended attend(const Attention& a) {
  constexpr int64_t kMostScores = (int64_t{64} << 20) / 8;
  const int64_t length = a.query.size(-2);
  const int64_t row =
      std::max<int64_t>(1, a.query.numel() / std::max<int64_t>(1, length * a.query.size(-1)) * a.key.size(-2));
  const int64_t step = std::max<int64_t>(1, kMostScores / row);
  std::vector<at::Tensor> outputs, logsumexps;
  for (int64_t begin = 0; begin < length; begin += step) {
    Attended rows = attend_rows(a, begin, std::min(step, length - begin));
    outputs.push_back(std::move(rows.output));
    logsumexps.push_back(std::move(rows.logsumexp));
  }
  if (outputs.empty()) return {at::empty_like(a.query), at::empty({0}, a.query.options())};
  return {at::cat(outputs, -2), at::cat(logsumexps, -1)};
}

at::Tensor with_heads(const at::Tensor& tensor,
                      int64_t heads) {  // grouped-query attention: each key head serves several
  if (tensor.size(1) == heads) return tensor;
  if (tensor.size(1) == 0 || heads % tensor.size(1) != 0)
    throw Error(fmt::format("{} query heads cannot share {} key heads", heads, tensor.size(1)));
  return tensor.repeat_interleave(heads / tensor.size(1), 1);
}

Results attention_of(const Arguments& given, bool heads_last, const char* mask_name) {
  const auto arrange = [&](const char* name) {
    const at::Tensor tensor = given.required(name);
    if (tensor.dim() != 4) throw Error(fmt::format("argument '{}' is not four-dimensional", name));
    return (heads_last ? tensor.transpose(1, 2) : tensor).to(accumulation_dtype(tensor.scalar_type()));
  };
  for (const char* name :
       {"cum_seq_q", "cu_seqlens_q", "block_table", "alibi_slopes", "window_size", "window_size_left"})
    if (const auto* value = given.get(name); value != nullptr && !(value->isInt() && value->toInt() < 0))
      throw Error(
          fmt::format("attention with '{}' has no definition here; record it with the SDPA math backend", name));
  if (given.number("dropout_p").value_or(0) > 0)
    throw Error("attention with dropout cannot be replayed; record in eval mode");
  Attention a{arrange("query"), arrange("key"), arrange("value"), given.tensor(mask_name), false, 0};
  a.key = with_heads(a.key, a.query.size(1));
  a.value = with_heads(a.value, a.query.size(1));
  a.causal =
      given.flag("is_causal") || given.number("custom_mask_type").value_or(0) == 1;  // 1: causal from the top left
  a.scale = given.number("scale").value_or(1 / std::sqrt(static_cast<double>(a.query.size(-1))));
  Attended result = attend(a);
  at::Tensor output = heads_last ? result.output.transpose(1, 2) : result.output;
  const bool wanted = given.get("compute_log_sumexp") == nullptr || given.flag("compute_log_sumexp");
  if (!wanted) result.logsumexp = result.logsumexp.slice(-1, 0, 0);  // empty, as the kernel has it (attention.cu)
  return {output.to(given.required("query").scalar_type()), std::move(result.logsumexp)};
}

Results sdpa_masked(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  return attention_of({schema, stack}, /*heads_last=*/false, "attn_mask");
}

Results sdpa_biased(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  return attention_of({schema, stack}, /*heads_last=*/false, "attn_bias");
}

Results attention_heads_last(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  return attention_of({schema, stack}, /*heads_last=*/true, "bias");
}

// Rows offs[g-1] .. offs[g] of `self` times matrix g (PyTorch aten/src/ATen/native/GroupedMMUtils.h: the 2-D by 3-D
// case); without offsets both are three-dimensional: a batched product.
Results grouped_mm(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  const Arguments given(schema, stack);
  const at::Tensor left = given.required("self"), right = given.required("mat2"), offsets = given.tensor("offs");
  if (!offsets.defined()) return {at::bmm(left, right)};
  if (left.dim() != 2 || right.dim() != 3 || given.tensor("bias").defined())
    throw Error("this form of grouped product has no definition here");
  at::Tensor output = at::zeros({left.size(0), right.size(2)}, left.options());
  const at::Tensor ends = offsets.to(at::kLong);
  for (int64_t g = 0, begin = 0; g < right.size(0); ++g) {
    const int64_t end = ends[g].item<int64_t>();
    if (end > begin) output.narrow(0, begin, end - begin).copy_(at::mm(left.narrow(0, begin, end - begin), right[g]));
    begin = end;
  }
  return {std::move(output)};
}

// (self · scale_a) (mat2 · scale_b) + bias, with scales of one number, a row or a column (PyTorch's _scaled_mm, tensor-
// and row-wise).
Results scaled_mm(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  const Arguments given(schema, stack);
  const at::Tensor left = given.required("self"), bias = given.tensor("bias");
  const at::ScalarType dtype = accumulation_dtype(left.scalar_type());
  at::Tensor output = at::mm(left.to(dtype), given.required("mat2").to(dtype));
  output = output * given.required("scale_a").to(dtype) * given.required("scale_b").to(dtype);
  if (bias.defined()) output = output + bias.to(dtype);
  return {std::move(output)};
}

// One layer of an LSTM in one direction over (time, batch, features), as oneDNN runs it: y, h and c
// (aten/src/ATen/native/ mkldnn/RNN.cpp). at::lstm takes another kernel in fp64, and everywhere when oneDNN is off.
Results lstm_layer(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  constexpr int64_t kLstm = 2;  // of dnnl's cells; LibTorch records no other
  const Arguments given(schema, stack);
  if (given.number("mode") != kLstm) throw Error("a oneDNN layer that is not an LSTM is not known here");
  const at::Tensor h = given.required("hx_"), c = given.required("cx_");
  const bool reverse = given.flag("reverse"), biases = given.flag("has_biases");
  std::vector<at::Tensor> weights{given.required("weight0"), given.required("weight1")};
  if (biases) weights.insert(weights.end(), {given.required("weight2"), given.required("weight3")});
  const at::Tensor input = reverse ? given.required("input").flip({0}) : given.required("input");
  const auto layered = [&](const at::Tensor& state) { return state.reshape({1, input.size(1), -1}); };
  auto [y, hy, cy] = at::lstm(input, {layered(h), layered(c)}, weights, biases, 1, 0, false, false, false);
  return {reverse ? y.flip({0}) : y, hy.reshape(h.sizes()), cy.reshape(c.sizes())};
}

// Counts of values in equal bins (aten/src/ATen/native/Histogram.cpp); a CPU has it for floats only.
Results histogram(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  const Arguments given(schema, stack);
  const at::Tensor values = given.required("self");
  const auto number = [&](const char* name, double other) { return given.number(name).value_or(other); };
  const auto bins = static_cast<int64_t>(number("bins", 100));
  return {at::histc(values.to(at::kDouble), bins, number("min", 0), number("max", 0)).to(values.scalar_type())};
}

constexpr std::array kDefinitions{
    Definition{"aten::_scaled_dot_product_flash_attention_for_cpu", true, false, sdpa_masked},
    Definition{"aten::_scaled_dot_product_flash_attention", false, true, sdpa_masked},
    Definition{"aten::_scaled_dot_product_efficient_attention", false, true, sdpa_biased},
    Definition{"aten::_scaled_dot_product_cudnn_attention", false, true, sdpa_biased},
    Definition{"aten::_scaled_dot_product_fused_attention_overrideable", false, false, sdpa_biased},
    Definition{"aten::_scaled_dot_product_attention_math_for_mps", false, false, sdpa_masked},
    Definition{"aten::_flash_attention_forward", false, true, attention_heads_last},
    Definition{"aten::_efficient_attention_forward", false, true, attention_heads_last},
    Definition{"aten::_grouped_mm", true, true, grouped_mm},
    Definition{"aten::_scaled_mm", true, true, scaled_mm},
    Definition{"aten::histc", true, true, histogram},
    Definition{"aten::mkldnn_rnn_layer", true, false, lstm_layer},
};

}  // namespace

const Definition* find_definition(std::string_view op) {
  for (const Definition& definition : kDefinitions)
    if (definition.op == op) return &definition;
  return nullptr;
}

}  // namespace parity
