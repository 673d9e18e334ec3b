// The Wan / SkyReels-V2 video transformer in five cast placements, every op a probe point.
#pragma once
#include <ATen/ATen.h>

#include <string_view>

#include "models/probe.hpp"
#include "models/wan/config.hpp"
#include "models/wan/dtype_path.hpp"
#include "models/wan/ops.hpp"
#include "models/wan/step_cache.hpp"
#include "models/wan/weights.hpp"

namespace parity {

struct WanInputs {
  at::Tensor latents;    // (batch, channels, frames, height, width)
  at::Tensor condition;  // image to video, originals: joined to the latents' channels; else undefined
  at::Tensor time;       // (batch), or a time step per frame (batch, frames), or per token (diffusers' Wan 2.2)
  at::Tensor context;    // (batch, text tokens, text_dim)
  at::Tensor image;      // (batch, image tokens, image_dim) or undefined
  at::Tensor fps;        // (batch) of 0 or 1, or undefined
  bool diffusion_forcing = false;  // the time steps are per frame
  bool last_step = false;          // of a generation: a step cache computes it
};

/// A cast of the model under its cast placement: to which dtype, and whether the recorded program has it. One that
/// changes nothing in the recorded dtypes is not an op there, so it is not a probe point either, under any precision.
struct CastPoint {
  std::string_view name;
  at::ScalarType to;
  bool recorded;
};

class WanModel {
 public:
  /// `low`: dtype of the linear layers as recorded.
  WanModel(const WanConfig& config, const WanDtypePath& path, at::ScalarType low, Precision precision,
           const WeightSource& weights, WanOps ops = {});

  /// (batch, out_channels, frames, height, width). Inputs in their recorded dtypes; floats are redirected here. With a
  /// `cache` the blocks are left out where it says so; not on its last step.
  at::Tensor forward(const WanInputs& inputs, Probe& probe, StepCache* cache = nullptr) const;

  const WanConfig& config() const { return config_; }
  const WanDtypePath& path() const { return path_; }

 private:
  struct Conditions {  // what every block needs besides the stream
    at::Tensor e,
        e0;  // (batch, dim), (batch, 6, dim); per token (batch, tokens, dim) and (batch, 6, tokens, dim) or axis 2
    int64_t axis = 1;        // of e0: the six
    at::Tensor text, image;  // context tokens in the linear layers' dtype
    at::ScalarType context_dtype = at::kFloat;
    RopeTurn turn;
    at::Tensor mask;  // or undefined
  };

  // condition.cpp
  void embed_time(const WanInputs& inputs, const Grid& grid, Conditions& out, Probe& probe) const;
  at::Tensor frame_rate(const WanInputs& inputs, Probe& probe) const;
  at::Tensor embed_text(const at::Tensor& context, Probe& probe) const;
  at::Tensor embed_image(const at::Tensor& image, Probe& probe) const;
  void embed_context(const WanInputs& inputs, Conditions& out, Probe& probe) const;
  // attention.cpp
  at::Tensor self_attention(const WanAttentionWeights& w, const at::Tensor& x, const Conditions& c, Probe& probe) const;
  at::Tensor cross_attention(const WanAttentionWeights& w, const at::Tensor& x, const Conditions& c,
                             Probe& probe) const;
  at::Tensor heads(const at::Tensor& x) const;
  at::Tensor normed(std::string_view name, const at::Tensor& x, const at::Tensor& weight, Probe& probe) const;
  at::Tensor query_or_key(int64_t which, at::Tensor x, const at::Tensor& weight, const RopeTurn* turn, WanCast to,
                          Probe& probe) const;
  at::Tensor turned(int64_t which, const at::Tensor& x, const RopeTurn& turn, Probe& probe) const;
  at::Tensor attend(std::string_view name, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const at::Tensor& mask, Probe& probe) const;
  // block.cpp
  at::Tensor block(int64_t index, at::Tensor x, const Conditions& c, Probe& probe) const;
  at::Tensor head(const at::Tensor& x, const Conditions& c, const Grid& grid, Probe& probe) const;
  at::Tensor norm(std::string_view name, const at::Tensor& x, const Affine& affine, Probe& probe) const;
  at::Tensor affine_norm(std::string_view name, const at::Tensor& x, const Affine& affine, WanCast to,
                         Probe& probe) const;
  at::Tensor modulated(std::string_view norm_name, std::string_view name, const at::Tensor& x, const at::Tensor& scale,
                       const at::Tensor& shift, WanCast to, Probe& probe) const;
  at::Tensor gated(std::string_view name, const at::Tensor& x, at::Tensor y, const at::Tensor& gate, WanCast to,
                   Probe& probe) const;
  bool in_one_pass(const at::Tensor& x, WanCast to, Probe& probe) const;
  // model.cpp
  at::Tensor blocks(at::Tensor x, const Conditions& c, Probe& probe) const;
  at::Tensor embed_patches(const WanInputs& inputs, Probe& probe) const;
  at::Tensor linear(std::string_view name, const at::Tensor& x, const Affine& w, Probe& probe) const;
  // casts.cpp
  at::Tensor cast(WanCast which, const at::Tensor& x, Probe& probe) const;
  at::Tensor cast_to(WanCast which, const at::Tensor& x, at::ScalarType to, bool recorded, Probe& probe) const;
  at::ScalarType dtype(Slot slot) const;     // as computed, redirected
  at::ScalarType recorded(Slot slot) const;  // as recorded
  void place_casts();

  WanConfig config_;
  WanDtypePath path_;
  at::ScalarType low_;                 // recorded
  at::ScalarType time_low_, fps_low_;  // recorded dtypes of the time MLP's weights and of the frame rate table
  Precision precision_;
  WanOps ops_;
  WanWeights weights_;
  std::array<CastPoint, static_cast<size_t>(WanCast::count_)> casts_;
};

}  // namespace parity
