// Residual blocks, attention within a frame, and what makes the clip larger or smaller.
#include "models/wan_vae/model.hpp"

namespace parity {
namespace {

// (batch, channels, frames, height, width) -> (batch * frames, channels, height, width).
at::Tensor pictures_of(const at::Tensor& x) {
  return x.permute({0, 2, 1, 3, 4}).reshape({x.size(0) * x.size(2), x.size(1), x.size(3), x.size(4)});
}

// And back, for `batch` clips.
at::Tensor clip_of(const at::Tensor& x, int64_t batch) {
  return x.view({batch, x.size(0) / batch, x.size(1), x.size(2), x.size(3)}).permute({0, 2, 1, 3, 4});
}

}  // namespace

at::Tensor WanVaeModel::layer(VaeStage stage, const VaeLayerWeights& w, const at::Tensor& x, FeatureCache* cache,
                              Probe& probe) const {
  if (stage == VaeStage::residual) return residual(std::get<VaeResidualWeights>(w), x, cache, probe);
  if (stage == VaeStage::attention) return attention(std::get<VaeAttentionWeights>(w), x, probe);
  const auto& resample = std::get<VaeResampleWeights>(w);
  switch (stage) {
    case VaeStage::upsample_time:
      return larger(resample, twice_the_frames(resample, x, cache, probe), probe);
    case VaeStage::upsample:
      return larger(resample, x, probe);
    case VaeStage::downsample_time:
      return half_the_frames(resample, smaller(resample, x, probe), cache, probe);
    default:
      return smaller(resample, x, probe);
  }
}

at::Tensor WanVaeModel::residual(const VaeResidualWeights& w, const at::Tensor& x, FeatureCache* cache,
                                 Probe& probe) const {
  const auto past = w.shortcut.weight.defined() ? causal(".conv_shortcut", x, w.shortcut, nullptr, probe) : x;
  auto y = probe(".norm1", ops_.norm(x, w.norm1));
  y = causal(".conv1", probe(".nonlinearity", ops_.silu(y)), w.conv1, cache, probe);
  y = probe(".norm2", ops_.norm(y, w.norm2));
  y = causal(".conv2", probe(".nonlinearity", ops_.silu(y)), w.conv2, cache, probe);
  return probe("", y + past);
}

at::Tensor WanVaeModel::attention(const VaeAttentionWeights& w, const at::Tensor& x, Probe& probe) const {
  const int64_t channels = x.size(1), height = x.size(3), width = x.size(4);
  auto y = probe(".norm", ops_.norm(pictures_of(x), w.norm));
  y = probe(".to_qkv", ops_.conv(y, w.to_qkv.weight, w.to_qkv.bias, 1, 0));
  const auto pixels = y.reshape({y.size(0), 1, 3 * channels, -1}).permute({0, 1, 3, 2}).contiguous();
  const auto parts = pixels.transpose(1, 2).split(channels, -1);  // (batch * frames, pixels, 1, channels)
  y = probe("/attention.0", ops_.attention(parts[0], parts[1], parts[2]));
  y = y.squeeze(1).permute({0, 2, 1}).reshape({y.size(0), channels, height, width});
  y = probe(".proj", ops_.conv(y, w.proj.weight, w.proj.bias, 1, 0));
  return probe("", clip_of(y, x.size(0)) + x);
}

at::Tensor WanVaeModel::larger(const VaeResampleWeights& w, const at::Tensor& x, Probe& probe) const {
  const auto doubled = probe(".resample.0", ops_.double_pixels(pictures_of(x)));
  return clip_of(probe(".resample.1", ops_.conv(doubled, w.conv.weight, w.conv.bias, 1, 1)), x.size(0));
}

at::Tensor WanVaeModel::smaller(const VaeResampleWeights& w, const at::Tensor& x, Probe& probe) const {
  const auto padded = probe(".resample.0", ops_.pad(pictures_of(x)));
  return clip_of(probe(".resample.1", ops_.conv(padded, w.conv.weight, w.conv.bias, 2, 0)), x.size(0));
}

// The clip's first frame passes alone; each further one becomes two.
at::Tensor WanVaeModel::twice_the_frames(const VaeResampleWeights& w, const at::Tensor& x, FeatureCache* cache,
                                         Probe& probe) const {
  const auto doubled = [&](const at::Tensor& frames, const at::Tensor& before) {
    return ops_.interleave(
        probe(".time_conv", ops_.causal_conv(frames, w.time_conv.weight, w.time_conv.bias, before, 1)));
  };
  if (!cache) {
    const auto first = x.narrow(2, 0, 1);
    if (x.size(2) == 1) return x;
    return at::cat({first, doubled(x.narrow(2, 1, x.size(2) - 1), ops_.keep_first(first))}, 2);
  }
  auto& slot = cache->next();
  const auto before = slot.frames;
  const bool first = !slot.used;
  slot = {true, first ? ops_.keep_first(x) : ops_.keep(before, x, /*count=*/2)};
  return first ? x : doubled(x, before);
}

// The clip's first frame passes alone; of the others, with one before them, each second becomes one of three.
at::Tensor WanVaeModel::half_the_frames(const VaeResampleWeights& w, const at::Tensor& x, FeatureCache* cache,
                                        Probe& probe) const {
  const auto halved = [&](const at::Tensor& frames, const at::Tensor& before) {
    return probe(".time_conv", ops_.causal_conv(frames, w.time_conv.weight, w.time_conv.bias, before, 2));
  };
  if (!cache) {
    if (x.size(2) == 1) return x;
    return at::cat({x.narrow(2, 0, 1), halved(x.narrow(2, 1, x.size(2) - 1), x.narrow(2, 0, 1))}, 2);
  }
  auto& slot = cache->next();
  const auto before = slot.frames;
  const bool first = !slot.used;
  slot = {true, ops_.keep({}, x, /*count=*/1)};
  return first ? x : halved(x, before);
}

}  // namespace parity
