// LibTorch's scaled_dot_product_attention wherever its fused kernel runs.
#pragma once
#include <ATen/ATen.h>

#include <optional>

namespace parity::ops {

struct FusedForm {
  at::Tensor mask{};  // bool, or added to the scores; undefined: none
  bool is_causal = false;
  std::optional<double> scale = std::nullopt;  // nullopt: head dimension ^ -.5
  bool enable_gqa = false;
};

/// at::scaled_dot_product_attention over q (B, H, T, D), k and v (B, H or fewer, S, D). In bf16 LibTorch 2.13 packs its
/// operands, where that is worth it and oneDNN may use AMX, with AVX-512, and raises an error where ATEN_CPU_CAPABILITY
/// keeps it from that (aten/src/ATen/native/cpu/FlashAttentionKernel.cpp, need_pack): there it runs in fp32, and the
/// result is rounded.
at::Tensor fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const FusedForm& form);

}  // namespace parity::ops
