#include "ops/table.hpp"

#include "ops/activation.hpp"
#include "ops/attention.hpp"
#include "ops/causal_attention.hpp"
#include "ops/encoder_attention.hpp"
#include "ops/layer_norm.hpp"
#include "ops/linear.hpp"
#include "ops/modulation.hpp"
#include "ops/norm_rope.hpp"
#include "ops/patch_embedding.hpp"
#include "ops/relative_position.hpp"
#include "ops/rms_norm.hpp"
#include "ops/rope.hpp"
#include "ops/sinusoid.hpp"
#include "ops/unpatchify.hpp"

namespace parity {

const std::vector<const OpRow*>& op_table() {
  static const std::vector<const OpRow*> table = {
      &linear_row(),
      &linear_apart_row(),
      &patch_embedding_row(),
      &patch_embedding_image_row(),
      &sinusoid_f64_row(),
      &sinusoid_diffusers_row(),
      &sinusoid_f32_row(),
      &layer_norm_row(),
      &layer_norm_wide_row(),
      &layer_norm_as_input_row(),
      &rms_norm_wide_row(),
      &rms_norm_round_first_row(),
      &rms_norm_round_once_row(),
      &rms_norm_t5_row(),
      &gelu_tanh_row(),
      &gelu_erf_row(),
      &quick_gelu_row(),
      &silu_row(),
      &modulation_row(),
      &mul_add_row(),
      &mul_add_add_row(),
      &add_row(),
      &rope_complex64_row(),
      &rope_complex128_row(),
      &rope_real_row(),
      &rope_table_row(),
      &attention_row(),
      &attention_causal_row(),
      &causal_attention_row(),
      &causal_attention_window_row(),
      &causal_attention_sinks_row(),
      &encoder_attention_row(),
      &encoder_attention_bias_row(),
      &relative_position_row(),
      &norm_rope_row(),
      &unpatchify_row(),
  };
  return table;
}

}  // namespace parity
