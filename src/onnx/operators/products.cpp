// Matrix products.
#include "core/error.hpp"
#include "onnx/operator.hpp"

namespace parity::onnx {
namespace {

Tensors matmul(const Call& call) { return {at::matmul(call[0], call[1])}; }

// alpha A B + beta C. What torch.onnx.export makes of a linear layer becomes one again.
Tensors gemm(const Call& call) {
  const double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  const at::Tensor left = call.flag("transA") ? call[0].t() : call[0];
  const bool transposed = call.flag("transB");
  const bool plain = alpha == 1 && (beta == 1 || !call.has(2));
  if (plain && transposed && (!call.has(2) || call[2].dim() == 1)) {
    const std::optional<at::Tensor> bias = call.has(2) ? std::optional(call[2]) : std::nullopt;
    return {at::linear(left, call[1], bias)};
  }
  const at::Tensor right = transposed ? call[1].t() : call[1];
  if (call.has(2)) return {at::addmm(call[2], left, right, beta, alpha)};
  const at::Tensor product = at::mm(left, right);
  return {alpha == 1 ? product : at::mul(product, alpha)};
}

Tensors einsum(const Call& call) { return {at::einsum(call.text("equation", ""), call.all())}; }

constexpr LoweringRow kProductRows[] = {
    {"MatMul", matmul},
    {"Gemm", gemm},
    {"Einsum", einsum},
};

}  // namespace

std::span<const LoweringRow> products() { return kProductRows; }

}  // namespace parity::onnx
