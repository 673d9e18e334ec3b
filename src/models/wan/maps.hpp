// Name maps from a recording's paths to the model's points. The files are probes/maps/wan_*.map, embedded at build
// time.
#pragma once
#include <string>

#include "models/embedded_maps.hpp"
#include "models/wan/config.hpp"
#include "models/wan/dtype_path.hpp"

namespace parity {

/// What decides which ops a recording has, and so how they are numbered.
struct WanMapTraits {
  bool half = false;          // low is not fp32: the casts are there
  bool latents_cast = false;  // the latents came in another dtype than the first convolution's
  bool fps_tensor = false;    // diffusers copies a frame rate given as tensor
  bool time_half = false;     // diffusers: the time MLP's weights are half width, as after `model.to(bfloat16)`
  bool time_cast = false;     // diffusers: its result has another dtype than the linear layers
};

/// The parts that fit, one after the other.
std::string wan_map(const WanConfig& config, const WanDtypePath& path, const WanMapTraits& traits);

}  // namespace parity
