// The ops CLIP's image encoder is made of, each replaceable: our own kernels go in this way, and a test's fault.
#pragma once
#include <ATen/ATen.h>

#include <functional>

#include "models/clip/config.hpp"
#include "ops/activation.hpp"
#include "ops/encoder_attention.hpp"
#include "ops/patch_embedding.hpp"

namespace parity {

struct ClipOps {
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias)> patch_embedding =
      ops::patch_embedding;
  /// Both (batch, tokens, dim) -> the class token before the patches.
  std::function<at::Tensor(const at::Tensor& class_token, const at::Tensor& patches)> join =
      [](const at::Tensor& class_token, const at::Tensor& patches) {
        return at::cat({class_token, patches}, 1);
      };
  /// Rows of the position table, (1, tokens) int64.
  std::function<at::Tensor(int64_t tokens)> positions = [](int64_t tokens) { return at::arange(tokens).unsqueeze(0); };
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps)> norm =
      [](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
        return at::layer_norm(x, {x.size(-1)}, weight, bias, eps);
      };
  /// The norm before the first layer; empty: as every other.
  std::function<at::Tensor(const at::Tensor& x)> pre_norm{};
  /// x (rows, in), weight (out, in), bias (out) -> (rows, out).
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias)> linear =
      [](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) { return at::linear(x, weight, bias); };
  std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreForm&)> attention =
      ops::encoder_attention;
  std::function<at::Tensor(const at::Tensor& x, ClipActivation)> activation = [](const at::Tensor& x,
                                                                                 ClipActivation form) {
    return form == ClipActivation::gelu ? ops::gelu(x, GeluForm::erf) : ops::quick_gelu(x);
  };
  /// Of the streams before the first layer and after each: the one that conditions a video model, the last but one.
  std::function<at::Tensor(const std::vector<at::Tensor>& hidden)> penultimate =
      [](const std::vector<at::Tensor>& hidden) { return hidden[hidden.size() - 2]; };
};

}  // namespace parity
