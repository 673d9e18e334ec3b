// transformers' NewGELUActivation: eight ops, each of which rounds.
#pragma once
#include "models/probe.hpp"

namespace parity {

/// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the steps and their order as recorded (activations.py).
at::Tensor gelu_new(const at::Tensor& x, Probe& probe);

}  // namespace parity
