// Reductions, sums along an axis, and orders.
#include <algorithm>

#include "core/error.hpp"
#include "onnx/operator.hpp"

namespace parity::onnx {
namespace {

using Axes = std::vector<int64_t>;
using Reduce = at::Tensor (*)(const at::Tensor&, const Axes&, bool keep);

// axes: an attribute first, an input later (operator set 13 for ReduceSum, 18 for the others); none: all of them, or
// nothing where the node says so.
template <Reduce reduce>
Tensors reduction(const Call& call) {
  const at::Tensor& input = call[0];
  Axes axes = call.integers("axes", 1).value_or(Axes{});
  if (axes.empty() && call.flag("noop_with_empty_axes")) return {input};
  for (int64_t& axis : axes) axis = axis_in(axis, input.dim());
  if (axes.empty())
    for (int64_t i = 0; i < input.dim(); ++i) axes.push_back(i);
  if (axes.empty()) axes.push_back(0);  // of one number: ATen takes axis 0
  return {reduce(input, axes, call.flag("keepdims", true))};
}

bool is_float(const at::Tensor& tensor) { return at::isFloatingType(tensor.scalar_type()); }

at::Tensor sum(const at::Tensor& x, const Axes& axes, bool keep) { return at::sum(x, axes, keep, x.scalar_type()); }
at::Tensor mean(const at::Tensor& x, const Axes& axes, bool keep) {
  if (is_float(x)) return at::mean(x, axes, keep);
  int64_t count = 1;
  for (const int64_t axis : axes) count *= x.dim() == 0 ? 1 : x.size(axis);
  return at::div(sum(x, axes, keep), count, "trunc");
}
at::Tensor largest(const at::Tensor& x, const Axes& axes, bool keep) { return at::amax(x, axes, keep); }
at::Tensor smallest(const at::Tensor& x, const Axes& axes, bool keep) { return at::amin(x, axes, keep); }
at::Tensor l1(const at::Tensor& x, const Axes& axes, bool keep) { return sum(at::abs(x), axes, keep); }
at::Tensor squares(const at::Tensor& x, const Axes& axes, bool keep) { return sum(at::mul(x, x), axes, keep); }
at::Tensor l2(const at::Tensor& x, const Axes& axes, bool keep) { return at::sqrt(squares(x, axes, keep)); }
at::Tensor log_sum(const at::Tensor& x, const Axes& axes, bool keep) { return at::log(sum(x, axes, keep)); }
at::Tensor log_sum_exp(const at::Tensor& x, const Axes& axes, bool keep) { return at::logsumexp(x, axes, keep); }

at::Tensor product(const at::Tensor& x, const Axes& axes, bool keep) {
  Axes order = axes;  // from the last, so that those before keep their places
  std::sort(order.rbegin(), order.rend());
  at::Tensor result = x;
  for (const int64_t axis : order) result = at::prod(result, axis, keep, x.scalar_type());
  return result;
}

using Arg = at::Tensor (*)(const at::Tensor&, std::optional<int64_t>, bool);

template <Arg arg>
Tensors arg_of(const Call& call) {
  const int64_t axis = axis_in(call.integer("axis", 0), call[0].dim());
  const bool keep = call.flag("keepdims", true);
  if (!call.flag("select_last_index")) return {arg(call[0], axis, keep)};
  return {at::rsub(arg(at::flip(call[0], {axis}), axis, keep), call[0].size(axis) - 1)};
}

Tensors cumsum(const Call& call) {
  const int64_t axis = axis_in(call.integer(1), call[0].dim());
  const bool reverse = call.flag("reverse");
  const at::Tensor input = reverse ? at::flip(call[0], {axis}) : call[0];
  at::Tensor result = at::cumsum(input, axis, input.scalar_type());
  if (call.flag("exclusive")) {  // a zero first, and without the last
    const at::Tensor zero = at::zeros_like(at::slice(result, axis, 0, 1));
    result = at::cat({zero, at::slice(result, axis, 0, result.size(axis) - 1)}, axis);
  }
  return {reverse ? at::flip(result, {axis}) : result};
}

// Of equal numbers the first comes first, which ATen's topk does not promise.
Tensors top_k(const Call& call) {
  const int64_t axis = axis_in(call.integer("axis", -1), call[0].dim()), k = call.integer(1);
  if (k < 0 || k > call[0].size(axis)) throw Error("it asks for more numbers than its axis has");
  const auto [values, order] = at::sort(call[0], /*stable=*/true, axis, call.flag("largest", true));
  return {at::slice(values, axis, 0, k), at::slice(order, axis, 0, k)};
}

constexpr LoweringRow kReductionRows[] = {
    {"ReduceSum", reduction<sum>},
    {"ReduceMean", reduction<mean>},
    {"ReduceMax", reduction<largest>},
    {"ReduceMin", reduction<smallest>},
    {"ReduceProd", reduction<product>},
    {"ReduceL1", reduction<l1>},
    {"ReduceL2", reduction<l2>},
    {"ReduceSumSquare", reduction<squares>},
    {"ReduceLogSum", reduction<log_sum>},
    {"ReduceLogSumExp", reduction<log_sum_exp>},
    {"ArgMax", arg_of<at::argmax>},
    {"ArgMin", arg_of<at::argmin>},
    {"CumSum", cumsum},
    {"TopK", top_k},
};

}  // namespace

std::span<const LoweringRow> reductions() { return kReductionRows; }

}  // namespace parity::onnx
