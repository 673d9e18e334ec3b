// UMT5 made for one recording of transformers' UMT5EncoderModel.
#pragma once
#include <memory>

#include "models/model.hpp"
#include "models/umt5/ops.hpp"

namespace parity {

/// By class name and the names of its weights.
bool is_umt5(const Dump& dump);

/// LibTorch's ops, or those of our own kernels.
Umt5Ops umt5_ops(Kernels kernels);

/// `ops` lets a test put a fault in. The dump must outlive the model.
std::unique_ptr<PortedModel> port_umt5(const Dump& dump, Precision precision, Umt5Ops ops);

}  // namespace parity
