// Matrix products, convolutions and plain sums by other valid arithmetics: the summed axis reversed, or divided into
// parts whose sums, in the accumulation dtype, are added before the one rounding at the end.
#include <array>

#include "trace/definitions.hpp"
#include "trace/settings.hpp"
#include "trace/valid.hpp"

namespace parity {
namespace {

at::Tensor part_of(const at::Tensor& t, int64_t axis, const SumPart& part) {
  return t.slice(axis, part.begin, part.step == 1 ? part.begin + part.length : t.size(axis), part.step);
}

// sum += left x right, as its kernel has it: the product of few terms is summed in registers first.
void add_product(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  if (sum.dim() == 2)
    sum.addmm_(left, right);
  else
    sum.baddbmm_(left, right);
}

// One after the other into one sum; pairwise: every two parts so, then sums of equally many parts as soon as there are
// two, so that few are held.
at::Tensor sum_of_products(Arithmetic arithmetic, const std::vector<SumPart>& parts, const at::Tensor& left,
                           const at::Tensor& right) {
  const size_t together = arithmetic == Arithmetic::pairwise ? 2 : parts.size();
  std::vector<std::pair<size_t, at::Tensor>> sums;  // of how many leaves
  const auto join_last = [&] {
    auto last = std::move(sums.back());
    sums.pop_back();
    sums.back().second.add_(last.second);
    sums.back().first += last.first;
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    const at::Tensor a = part_of(left, -1, parts[i]), b = part_of(right, -2, parts[i]);
    if (i % together == 0)
      sums.emplace_back(1, at::matmul(a, b));
    else
      add_product(sums.back().second, a, b);
    const bool whole = (i + 1) % together == 0 || i + 1 == parts.size();
    while (whole && sums.size() > 1 && sums.back().first == sums[sums.size() - 2].first) join_last();
  }
  while (sums.size() > 1) join_last();
  return std::move(sums.back().second);
}

constexpr int64_t kColumns = 2048;  // of a result made at once: its partial sums stay near the processor

at::Tensor product(Arithmetic arithmetic, const at::Tensor& left, const at::Tensor& right) {
  if (arithmetic == Arithmetic::transposed)  // the other operand's rows are walked
    return at::matmul(right.transpose(-2, -1).contiguous(), left.transpose(-2, -1).contiguous()).transpose(-2, -1);
  const std::vector<SumPart> parts = sum_parts(arithmetic, left.size(-1));
  if (right.dim() != 2) return sum_of_products(arithmetic, parts, left, right);
  at::Tensor result = at::empty({left.size(0), right.size(1)}, left.options());
  for (int64_t begin = 0; begin < right.size(1); begin += kColumns) {
    const auto columns = [&](const at::Tensor& t) { return t.slice(1, begin, begin + kColumns); };
    columns(result).copy_(sum_of_products(arithmetic, parts, left, columns(right)));
  }
  return result;
}

std::optional<Results> multiply(ValidCall call, std::string_view left, std::string_view right, bool added) {
  if (call.arithmetic == Arithmetic::reordered) {
    call.flip(left, -1);
    call.flip(right, -2);
    return call.kernel(call.stack);
  }
  const at::Tensor a = call.tensor(left), b = call.tensor(right);
  if (!a.defined() || !b.defined() || !at::isFloatingType(a.scalar_type()) || a.size(-1) == 0) return std::nullopt;
  const at::ScalarType wide = sum_dtype(a.scalar_type());
  at::Tensor result = product(call.arithmetic, a.to(wide), b.to(wide));
  if (added) {
    const double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
    if (alpha != 1) result = result * alpha;
    if (beta != 0) result = result + call.tensor("self").to(wide) * beta;
  }
  return Results{result.to(a.scalar_type()).contiguous()};
}

std::optional<Results> mm(ValidCall call) { return multiply(std::move(call), "self", "mat2", false); }
std::optional<Results> addmm(ValidCall call) { return multiply(std::move(call), "mat1", "mat2", true); }
std::optional<Results> baddbmm(ValidCall call) { return multiply(std::move(call), "batch1", "batch2", true); }

// Input channels in the opposite order, or in parts; bias with the last. A transposed convolution also as LibTorch has
// it without oneDNN (other machines; a switch): products rounded to the tensor's dtype, overlapping ones added in it.
std::optional<Results> convolution(ValidCall call) {
  const c10::IValue *groups = call.find("groups"), *of_transposed = call.find("transposed");
  const bool transposed = of_transposed != nullptr && of_transposed->toBool();
  if (transposed && call.arithmetic == Arithmetic::transposed) {
    const OtherKernels without_onednn(false);
    return call.kernel(call.stack);
  }
  if (groups == nullptr || groups->toInt() != 1) return std::nullopt;
  const int64_t weight_axis = transposed ? 0 : 1;  // of the input channels
  if (call.arithmetic == Arithmetic::reordered) {
    call.flip("input", 1);
    call.flip("weight", weight_axis);
    return call.kernel(call.stack);
  }
  const at::Tensor input = call.tensor("input"), weight = call.tensor("weight"), bias = call.tensor("bias");
  if (!input.defined() || !at::isFloatingType(input.scalar_type())) return std::nullopt;
  const at::ScalarType wide = sum_dtype(input.scalar_type());
  std::vector<at::Tensor> sums;
  for (const SumPart& part : sum_parts(call.arithmetic, input.size(1))) {
    *call.find("input") = part_of(input, 1, part).to(wide).contiguous(input.suggest_memory_format());
    *call.find("weight") = part_of(weight, weight_axis, part).to(wide).contiguous();
    if (bias.defined()) *call.find("bias") = sums.empty() ? bias.to(wide) : at::zeros_like(bias, wide);
    sums.push_back(*call.kernel(call.stack).at(0));
  }
  return Results{added_up(call.arithmetic, std::move(sums)).to(input.scalar_type())};
}

// Step by step, as LibTorch has it without oneDNN.
std::optional<Results> lstm_layer(ValidCall call) {
  if (call.arithmetic != Arithmetic::transposed) return std::nullopt;
  const OtherKernels without_onednn(false);
  return find_definition("aten::mkldnn_rnn_layer")->compute(call.schema, call.stack);
}

std::vector<int64_t> summed_axes(ValidCall& call, const at::Tensor& self) {
  std::vector<int64_t> axes(self.dim());
  for (int64_t i = 0; i < self.dim(); ++i) axes[i] = i;
  if (c10::IValue* given = call.find("dim"); given != nullptr && given->isIntList() && !given->toIntVector().empty())
    axes = given->toIntVector();
  return axes;
}

std::optional<Results> reversed_sum(ValidCall call) {
  const at::Tensor self = call.tensor("self");
  if (!self.defined() || self.dim() == 0 || !at::isFloatingType(self.scalar_type())) return std::nullopt;
  *call.find("self") = self.flip(summed_axes(call, self));
  return call.kernel(call.stack);
}

// Over one axis, in parts; a mean is its sum over the length.
std::optional<Results> sum_or_mean(ValidCall call, bool mean) {
  if (call.arithmetic == Arithmetic::reordered) return reversed_sum(std::move(call));
  const at::Tensor self = call.tensor("self");
  if (!self.defined() || self.dim() == 0 || !at::isFloatingType(self.scalar_type())) return std::nullopt;
  const std::vector<int64_t> axes = summed_axes(call, self);
  if (axes.size() != 1 || (call.find("dtype") != nullptr && call.find("dtype")->isInt())) return std::nullopt;
  const c10::IValue* keep = call.find("keepdim");
  const int64_t length = self.size(axes[0]);
  std::vector<at::Tensor> sums;
  for (const SumPart& part : sum_parts(call.arithmetic, length))
    sums.push_back(part_of(self, axes[0], part).to(sum_dtype(self.scalar_type())).sum(axes, keep && keep->toBool()));
  at::Tensor result = added_up(call.arithmetic, std::move(sums));
  if (mean) result = result / static_cast<double>(length);
  return Results{result.to(self.scalar_type()).contiguous()};
}

std::optional<Results> sum(ValidCall call) { return sum_or_mean(std::move(call), false); }
std::optional<Results> mean(ValidCall call) { return sum_or_mean(std::move(call), true); }
std::optional<Results> variance(ValidCall call) {
  return call.arithmetic == Arithmetic::reordered ? reversed_sum(std::move(call)) : std::nullopt;
}

constexpr std::array kProducts{
    ValidForm{"aten::mm", mm},
    ValidForm{"aten::bmm", mm},
    ValidForm{"aten::addmm", addmm},
    ValidForm{"aten::baddbmm", baddbmm},
    ValidForm{"aten::convolution", convolution},
    ValidForm{"aten::mkldnn_rnn_layer", lstm_layer},
    ValidForm{"aten::sum.dim_IntList", sum},
    ValidForm{"aten::mean.dim", mean},
    ValidForm{"aten::var.correction", variance},
    ValidForm{"aten::var_mean.correction", variance},
};

}  // namespace

std::span<const ValidForm> valid_products() { return kProducts; }

}  // namespace parity
