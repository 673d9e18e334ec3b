// Where the five real implementations of this model round: one row each.
//
// `low` is the dtype of the linear layers, bf16 in deployment. Under another precision every dtype of the row is
// redirected, so that fp64 has no rounding left and fp32 none to half width. Sources: references.md, table 1, proven
// there by execution.
#pragma once
#include <c10/core/ScalarType.h>

#include <array>
#include <string_view>

#include "core/precision.hpp"
#include "ops/rms_norm.hpp"
#include "ops/rope_table.hpp"
#include "ops/sinusoid.hpp"

namespace parity {

/// A dtype as a path names it.
enum class Slot {
  f32,
  low,
  weight,   // what the layer's weights are kept in
  input,    // what comes in stays
  context,  // that of the context, which concatenating fp32 image tokens makes fp32
};

struct WanDtypePath {
  std::string_view name;
  SinusoidForm sinusoid;
  Slot sinusoid_out;     // rounded to this before the time MLP
  Slot time_mlp;         // time_embedding computes in
  Slot time_out;         // its result is rounded to
  Slot time_projection;  // computes in
  Slot norm;             // layer norms of the blocks compute in
  Slot norm_out;         // and leave in: f32, or input (`type_as(x)`)
  Slot image_norm_out;   // layer norms of the image embedding leave in
  RmsForm rms;
  RopeForm rope;
  Slot attention_out;  // input: SDPA's result is widened to the query's dtype (no value changes)
  Slot residual;       // the stream after a gate is rounded to
  Slot norm3_in;       // the stream is cast to this before the norm in front of cross-attention
  Slot block_out;
  Slot head;  // the last linear layer computes in
};

/// sky_ac   SkyReels-V2 T2V/I2V pipelines: bf16 weights under a bf16 autocast
/// sky_noac SkyReels-V2 diffusion forcing: bf16 weights, no autocast around the model
/// wan      Wan2.1: fp32 weights under a bf16 autocast
/// dsky     diffusers SkyReelsV2Transformer3DModel, from_pretrained(torch_dtype=bf16)
/// dwan     diffusers WanTransformer3DModel, likewise; differs from dsky in the sinusoid alone
inline constexpr std::array kWanDtypePaths{
    WanDtypePath{"sky_ac", SinusoidForm::f64, Slot::low, Slot::f32, Slot::f32, Slot::f32, Slot::f32, Slot::f32,
                 Slot::f32, RmsForm::wide, RopeForm::complex64, Slot::low, Slot::f32, Slot::context, Slot::low,
                 Slot::f32},
    WanDtypePath{"sky_noac", SinusoidForm::f64, Slot::low, Slot::f32, Slot::f32, Slot::f32, Slot::input, Slot::input,
                 Slot::input, RmsForm::wide, RopeForm::complex64, Slot::low, Slot::f32, Slot::context, Slot::low,
                 Slot::f32},
    WanDtypePath{"wan", SinusoidForm::f64, Slot::f32, Slot::f32, Slot::f32, Slot::f32, Slot::f32, Slot::input,
                 Slot::f32, RmsForm::round_first, RopeForm::complex128, Slot::input, Slot::f32, Slot::input, Slot::f32,
                 Slot::f32},
    WanDtypePath{"dsky", SinusoidForm::f64_diffusers, Slot::weight, Slot::weight, Slot::low, Slot::low, Slot::f32,
                 Slot::f32, Slot::input, RmsForm::round_once, RopeForm::real, Slot::low, Slot::low, Slot::input,
                 Slot::low, Slot::low},
    WanDtypePath{"dwan", SinusoidForm::f32, Slot::weight, Slot::weight, Slot::low, Slot::low, Slot::f32, Slot::f32,
                 Slot::input, RmsForm::round_once, RopeForm::real, Slot::low, Slot::low, Slot::input, Slot::low,
                 Slot::low},
};

/// The row of that name. Throws Error naming those there are.
const WanDtypePath& wan_dtype_path(std::string_view name);

}  // namespace parity
