// Wan2.1's autoencoder made for one recording of diffusers' AutoencoderKLWan.
#pragma once
#include <memory>

#include "models/model.hpp"
#include "models/wan_vae/ops.hpp"

namespace parity {

/// By class name and the names of its weights?
bool is_wan_vae(const Dump& dump);

/// What the recording's forward does follows from the name of its argument: `latents` decodes and `video` encodes as
/// the pipelines do, with the latents' mean and deviation; `z` and `x` are those of AutoencoderKLWan.decode and
/// .encode, without. `ops` lets a test put a fault in. The dump must outlive the model.
std::unique_ptr<PortedModel> port_wan_vae(const Dump& dump, Precision precision, WanVaeOps ops);

}  // namespace parity
