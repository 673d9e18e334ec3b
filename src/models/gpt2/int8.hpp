// GPT-2 with INT8 weights: every linear layer, and the output layer whose rows are the words' embedding; positions,
// norms, biases and activations stay.
#pragma once
#include "models/gpt2/ops.hpp"

namespace parity {

/// Our own kernels over weights in signed bytes, one step an output (ops/own.hpp). A weight is quantised when
/// it is loaded, and its step found again by where its bytes lie: one set of ops belongs to one fp32 model.
Gpt2Ops gpt2_int8_ops();

}  // namespace parity
