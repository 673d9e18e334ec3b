// cos | sin of the time step at geometric frequencies, in the three forms that real code computes.
#pragma once
#include <ATen/ATen.h>

#include "core/precision.hpp"
#include "ops/op.hpp"

namespace parity {

/// Which code is followed. The values agree to a few roundings of the dtype they are computed in; f32 sees 1e-5 in the
/// angle of step 998.
enum class SinusoidForm {
  f64,            // originals, model.py / transformer.py `sinusoidal_embedding_1d`: t * 10000^(-i/half) in fp64
  f64_diffusers,  // diffusers `get_1d_sincos_pos_embed_from_grid`: t * (1 / 10000^(i/half)) in fp64
  f32,            // diffusers `get_timestep_embedding`: t * exp(-ln(10000) i/half) in fp32
};

namespace ops {

/// time (n) of any dtype -> (n, width): cosines, then sines; float64 for the f64 forms, else redirect(float32,
/// precision).
at::Tensor sinusoid(const at::Tensor& time, int64_t width, SinusoidForm form, Precision precision);

}  // namespace ops

const OpRow& sinusoid_f64_row();
const OpRow& sinusoid_diffusers_row();
const OpRow& sinusoid_f32_row();

}  // namespace parity
