// gpt-oss made for one recording of transformers' GptOssForCausalLM.
#pragma once
#include <memory>

#include "models/gpt_oss/ops.hpp"
#include "models/model.hpp"

namespace parity {

/// By class name and by the names of its weights.
bool is_gpt_oss(const Dump& dump);

/// LibTorch's ops, or those of our own kernels.
GptOssOps gpt_oss_ops(Kernels kernels);

/// `ops` lets a test put a fault in. The dump must outlive the model.
std::unique_ptr<PortedModel> port_gpt_oss(const Dump& dump, Precision precision, GptOssOps ops);

}  // namespace parity
