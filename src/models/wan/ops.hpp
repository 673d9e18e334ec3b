// The ops the model is made of, each replaceable: a test puts a fault in with one line, a faster kernel goes in the
// same way.
#pragma once
#include <ATen/ATen.h>

#include <functional>

#include "models/model.hpp"
#include "models/wan/config.hpp"
#include "ops/activation.hpp"
#include "ops/attention.hpp"
#include "ops/layer_norm.hpp"
#include "ops/linear.hpp"
#include "ops/modulation.hpp"
#include "ops/one_pass.hpp"
#include "ops/patch_embedding.hpp"
#include "ops/rms_norm.hpp"
#include "ops/rope.hpp"
#include "ops/sinusoid.hpp"
#include "ops/unpatchify.hpp"

namespace parity {

/// Which cast of the model it is. The paths of the points are in casts.hpp.
enum class WanCast {
  latents,       // into the patch embedding
  sinusoid,      // into the time MLP
  time,          // out of it
  fps,           // frame rate embedding into its projection
  text,          // into the text MLP
  image,         // first image norm into the image MLP
  self_attn_in,  // modulated norm into q, k, v
  self_attn_q,   // turned query into SDPA
  self_attn_k,
  residual,       // the stream after the first gate
  norm3_in,       // the stream into the norm before cross-attention: the cast to the context's dtype
  cross_attn_in,  // that norm into q
  cross_attn_q,
  cross_attn_k,
  cross_attn_k_img,
  cross_attn_o,  // sum of text and image attention into o
  context,       // text or image tokens into k and v
  ffn_in,
  block_out,
  head_in,
  count_
};

struct WanOps {
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias)> patch_embedding =
      ops::patch_embedding;
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias)> linear = ops::linear;
  std::function<at::Tensor(const at::Tensor& time, int64_t width, SinusoidForm, Precision)> sinusoid = ops::sinusoid;
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps,
                           at::ScalarType compute, at::ScalarType out)>
      layer_norm = ops::layer_norm;
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight, double eps, RmsForm, Precision)> rms_norm =
      ops::rms_norm;
  std::function<at::Tensor(at::Tensor x, GeluForm)> gelu = ops::gelu;
  std::function<at::Tensor(const at::Tensor& x)> silu = ops::silu;
  std::function<at::Tensor(const at::Tensor& table, const at::Tensor& e, int64_t axis)> modulation = ops::modulation;
  std::function<at::Tensor(at::Tensor x, const at::Tensor& scale, const at::Tensor& shift, Precision)> modulate =
      ops::mul_add_add;
  std::function<at::Tensor(const at::Tensor& x, at::Tensor y, const at::Tensor& gate, Precision)> gate = ops::mul_add;
  std::function<at::Tensor(at::Tensor x, const at::Tensor& y)> add = ops::add;
  std::function<RopeTurn(const RopeTable&, const Grid&)> rope_turn = ops::rope_turn;
  std::function<at::Tensor(const at::Tensor& x, const RopeTurn&, Precision)> rope = ops::rope;
  std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask)>
      attention = ops::attention;
  std::function<at::Tensor(const Grid&, int64_t frames_per_block)> causal_mask = ops::block_causal_mask;
  std::function<at::Tensor(const at::Tensor& x, const Grid&, const std::array<int64_t, 3>& patch)> unpatchify =
      ops::unpatchify;
  /// How many of the context's tokens come from the image.
  std::function<int64_t(int64_t context_tokens, const WanConfig&)> image_tokens = [](int64_t context_tokens,
                                                                                     const WanConfig& config) {
    return config.image_tokens > 0 ? config.image_tokens : context_tokens - config.text_len;
  };
  std::function<at::Tensor(WanCast, const at::Tensor& x, at::ScalarType to)> cast =
      [](WanCast, const at::Tensor& x, at::ScalarType to) { return x.to(to); };

  /// Several of the above at once (ops/one_pass.hpp), where no probe looks in between and the cast placement rounds
  /// nothing but what these round. Empty: one after the other.
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& shift, double eps)>
      norm_modulate{};
  std::function<at::Tensor(const at::Tensor& x, at::Tensor y, const at::Tensor& gate)> gate_residual{};
  std::function<at::Tensor(at::Tensor x, const at::Tensor& weight, double eps, const RopeTurn& turn)> norm_turn{};
};

/// LibTorch's kernels, or our own for linear layers, attention and the patch embedding.
WanOps wan_ops(Kernels kernels);

/// The fastest of both for long sequences: LibTorch's linear layers and patch embedding, our own attention, and what
/// lies between them in one pass.
WanOps fast_wan_ops();

}  // namespace parity
