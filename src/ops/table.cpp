#include "ops/table.hpp"

#include "ops/activation.hpp"
#include "ops/attention.hpp"
#include "ops/causal_attention.hpp"
#include "ops/causal_conv3d.hpp"
#include "ops/channel_norm.hpp"
#include "ops/encoder_attention.hpp"
#include "ops/fp8_rows.hpp"
#include "ops/layer_norm.hpp"
#include "ops/linear.hpp"
#include "ops/modulation.hpp"
#include "ops/mxfp4.hpp"
#include "ops/norm_rope.hpp"
#include "ops/one_pass.hpp"
#include "ops/patch_embedding.hpp"
#include "ops/relative_position.hpp"
#include "ops/resample.hpp"
#include "ops/rms_norm.hpp"
#include "ops/rope.hpp"
#include "ops/rope_halves.hpp"
#include "ops/sinusoid.hpp"
#include "ops/token_layer.hpp"
#include "ops/unpatchify.hpp"

namespace parity {
namespace {

using Rows = std::vector<const OpRow*>;

Rows shared_rows() {
  return {&linear_row(),
          &linear_apart_row(),
          &layer_norm_row(),
          &layer_norm_wide_row(),
          &layer_norm_as_input_row(),
          &rms_norm_wide_row(),
          &rms_norm_round_first_row(),
          &rms_norm_round_once_row(),
          &rms_norm_round_last_row(),
          &rms_norm_t5_row(),
          &gelu_tanh_row(),
          &gelu_erf_row(),
          &quick_gelu_row(),
          &silu_row(),
          &add_row(),
          &attention_row(),
          &attention_causal_row()};
}

Rows diffusion_transformer_rows() {
  return {&patch_embedding_row(), &sinusoid_f64_row(),  &sinusoid_diffusers_row(), &sinusoid_f32_row(),
          &modulation_row(),      &mul_add_row(),       &mul_add_add_row(),        &rope_complex64_row(),
          &rope_complex128_row(), &rope_real_row(),     &rope_table_row(),         &norm_rope_row(),
          &norm_modulate_row(),   &gate_residual_row(), &norm_turn_row(),          &unpatchify_row()};
}

Rows language_rows() {
  return {&linear_mxfp4_row(),           &rope_halves_row(), &causal_attention_row(), &causal_attention_window_row(),
          &causal_attention_sinks_row(), &fp8_rows_row(),    &token_layer_row()};
}

Rows encoder_rows() {
  return {&patch_embedding_image_row(), &encoder_attention_row(), &encoder_attention_bias_row(),
          &relative_position_row()};
}

Rows autoencoder_rows() {
  return {&causal_conv3d_row(),  &causal_conv3d_after_row(), &causal_conv3d_halving_row(),
          &channel_norm_row(),   &double_pixels_row(),       &conv2d_row(),
          &conv2d_halving_row(), &interleave_frames_row()};
}

Rows all_rows() {
  Rows all;
  for (const Rows& family :
       {shared_rows(), diffusion_transformer_rows(), language_rows(), encoder_rows(), autoencoder_rows()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace

const std::vector<const OpRow*>& op_table() {
  static const Rows table = all_rows();
  return table;
}

}  // namespace parity
