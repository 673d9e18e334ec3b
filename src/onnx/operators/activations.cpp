// Activations. Constants that ONNX gives as defaults are its float32 numbers.
#include "core/error.hpp"
#include "onnx/operator.hpp"

namespace parity::onnx {
namespace {

using Unary = at::Tensor (*)(const at::Tensor&);

constexpr double kSeluAlpha = 1.67326319217681884765625, kSeluGamma = 1.05070102214813232421875;  // onnx/docs, Selu

// Beyond it log(1 + exp(x)) is x in fp64 too, and exp(x) still a float32; ATen's own default, 20, loses 2e-9.
constexpr double kSoftplusIsIdentity = 40;

template <Unary function>
Tensors simple(const Call& call) {
  return {function(call[0])};
}

Tensors gelu(const Call& call) { return {at::gelu(call[0], call.text("approximate", "none"))}; }

Tensors elu(const Call& call) { return {at::elu(call[0], call.number("alpha", 1))}; }

Tensors celu(const Call& call) { return {at::celu(call[0], call.number("alpha", 1))}; }

Tensors selu(const Call& call) {
  return {at::elu(call[0], call.number("alpha", kSeluAlpha), call.number("gamma", kSeluGamma))};
}

Tensors leaky_relu(const Call& call) { return {at::leaky_relu(call[0], call.number("alpha", 0.01F))}; }

Tensors thresholded_relu(const Call& call) {
  return {at::where(at::gt(call[0], call.number("alpha", 1)), call[0], at::zeros_like(call[0]))};
}

Tensors prelu(const Call& call) { return {at::where(at::lt(call[0], 0), at::mul(call[0], call[1]), call[0])}; }

Tensors hard_sigmoid(const Call& call) {
  return {at::clamp(at::add(at::mul(call[0], call.number("alpha", 0.2F)), call.number("beta", 0.5)), 0, 1)};
}

Tensors softplus(const Call& call) { return {at::softplus(call[0], 1, kSoftplusIsIdentity)}; }

Tensors softsign(const Call& call) { return {at::div(call[0], at::add(at::abs(call[0]), 1))}; }

Tensors swish(const Call& call) {
  const double alpha = call.number("alpha", 1);
  if (alpha == 1) return {at::silu(call[0])};
  return {at::mul(call[0], at::sigmoid(at::mul(call[0], alpha)))};
}

Tensors softmax(const Call& call) { return {at::softmax(call[0], axis_in(call.integer("axis", -1), call[0].dim()))}; }

Tensors log_softmax(const Call& call) {
  return {at::log_softmax(call[0], axis_in(call.integer("axis", -1), call[0].dim()))};
}

constexpr LoweringRow kActivationRows[] = {
    {"Relu", simple<at::relu>},
    {"Sigmoid", simple<at::sigmoid>},
    {"Tanh", simple<at::tanh>},
    {"Mish", simple<at::mish>},
    {"HardSwish", simple<at::hardswish>},
    {"Gelu", gelu},
    {"Elu", elu},
    {"Celu", celu},
    {"Selu", selu},
    {"LeakyRelu", leaky_relu},
    {"ThresholdedRelu", thresholded_relu},
    {"PRelu", prelu},
    {"HardSigmoid", hard_sigmoid},
    {"Softplus", softplus},
    {"Softsign", softsign},
    {"Swish", swish},
    {"Softmax", softmax},
    {"LogSoftmax", log_softmax},
};

}  // namespace

std::span<const LoweringRow> activations() { return kActivationRows; }

}  // namespace parity::onnx
