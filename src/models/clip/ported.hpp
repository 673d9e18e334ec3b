// CLIP's image encoder made for one recording of transformers' CLIPVisionModel.
#pragma once
#include <memory>

#include "models/clip/ops.hpp"
#include "models/model.hpp"

namespace parity {

/// By class name and the names of its weights.
bool is_clip_vision(const Dump& dump);

/// LibTorch's ops, or those of our own kernels.
ClipOps clip_ops(Kernels kernels);

/// `ops` lets a test put a fault in. The dump must outlive the model.
std::unique_ptr<PortedModel> port_clip_vision(const Dump& dump, Precision precision, ClipOps ops);

}  // namespace parity
