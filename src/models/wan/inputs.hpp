// A recording's forward arguments, under either naming.
#pragma once
#include "dump/dump.hpp"
#include "models/wan/model.hpp"

namespace parity {

/// Arguments of forward call `call`: x / hidden_states, t / timestep, context / encoder_hidden_states, clip_fea /
/// encoder_hidden_states_image, y, fps. The originals' lists (one tensor a sample) are joined to a batch, a context
/// shorter than `text_len` padded with zeros. Throws Error naming the argument when one is missing.
WanInputs wan_inputs(const Dump& dump, int call, const WanConfig& config);

}  // namespace parity
