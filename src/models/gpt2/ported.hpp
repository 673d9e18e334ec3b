// GPT-2 made for one recording of transformers' GPT2LMHeadModel.
#pragma once
#include <memory>

#include "models/gpt2/ops.hpp"
#include "models/model.hpp"

namespace parity {

/// By class name, or by the names of its weights?
bool is_gpt2(const Dump& dump);

/// LibTorch's ops, or those of our own kernels.
Gpt2Ops gpt2_ops(Kernels kernels);

/// `ops` lets a test put a fault in. The dump must outlive the model.
std::unique_ptr<PortedModel> port_gpt2(const Dump& dump, Precision precision, Gpt2Ops ops);

}  // namespace parity
