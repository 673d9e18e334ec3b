#include "models/wan/maps.hpp"

#include <vector>

namespace parity {
namespace {

// Part file, and whether it belongs.
using Parts = std::vector<std::pair<std::string_view, bool>>;

Parts diffusers_parts(const WanConfig& c, const WanDtypePath& path, const WanMapTraits& t) {
  const bool sinusoid_cast = path.sinusoid != SinusoidForm::f32 || t.time_half;
  return {{"wan_diffusers", true},
          {"wan_diffusers_t2v", !c.image()},
          {"wan_diffusers_i2v", c.image()},
          {"wan_diffusers_positions", c.image_positions > 0},
          {"wan_diffusers_fps", c.sample_info},
          {"wan_diffusers_no_fps", !c.sample_info},
          {"wan_diffusers_sinusoid_cast", sinusoid_cast},
          {"wan_diffusers_casts", t.half},
          {"wan_diffusers_time_cast_first", t.time_cast && !sinusoid_cast},
          {"wan_diffusers_time_cast_second", t.time_cast && sinusoid_cast},
          {"wan_diffusers_fps_casts", t.half && c.sample_info && t.fps_tensor},
          {"wan_diffusers_no_fps_casts", t.half && !(c.sample_info && t.fps_tensor)}};
}

Parts original_parts(const WanConfig& c, const WanDtypePath& path, const WanMapTraits& t) {
  const bool sky = path.rope == RopeForm::complex64, autocast = path.norm != Slot::input;
  const bool wide_context = c.image() && path.image_norm_out == Slot::f32;
  return {{"wan_original", true},
          {"wan_original_t2v", !c.image()},
          {"wan_original_i2v", c.image()},
          {"wan_original_fps", c.sample_info},
          {"wan_original_complex64", sky},
          {"wan_original_complex128", !sky},
          {"wan_original_latents_casts", t.latents_cast},
          {"wan_original_sky_casts", t.half && sky},
          {"wan_original_wan_casts", t.half && !sky},
          {"wan_original_t2v_casts", t.half && !c.image()},
          {"wan_original_fps_casts", t.half && c.sample_info && sky},
          {"wan_original_sky_ac_t2v_casts", t.half && sky && autocast && !wide_context},
          {"wan_original_sky_noac_casts", t.half && sky && !autocast},
          {"wan_original_i2v_casts", t.half && wide_context},
          {"wan_original_sky_i2v_casts", t.half && wide_context && sky},
          {"wan_original_wan_i2v_casts", t.half && wide_context && !sky}};
}

}  // namespace

std::string wan_map(const WanConfig& config, const WanDtypePath& path, const WanMapTraits& traits) {
  std::string text;
  for (const auto& [name, fits] :
       config.diffusers ? diffusers_parts(config, path, traits) : original_parts(config, path, traits))
    if (fits) text += embedded_map(name);
  return text;
}

}  // namespace parity
