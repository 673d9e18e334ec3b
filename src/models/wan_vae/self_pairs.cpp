#include "models/wan_vae/self_pairs.hpp"

namespace parity {
namespace {

// `run`: decode or encode. All frames together: a norm over few channels makes single pixels worse conditioned than all
// others, and in a frame of few pixels chance decides by which of the two ways they are further off.
template <class Run>
std::vector<SelfPair> vae_pairs(const at::Tensor& x, const Run& run) {
  const auto chunks = run(x, VaeWay::chunks);
  return {{"whole", "conv", chunks, run(x, VaeWay::whole)},
          {"first", "conv", chunks.narrow(2, 0, 1).contiguous(), run(x.narrow(2, 0, 1), VaeWay::chunks)}};
}

}  // namespace

std::vector<SelfPair> wan_vae_decode_pairs(const WanVaeModel& model, const at::Tensor& z) {
  NoProbe off;
  return vae_pairs(z, [&](const at::Tensor& x, VaeWay way) { return model.decode(x, way, off); });
}

std::vector<SelfPair> wan_vae_encode_pairs(const WanVaeModel& model, const at::Tensor& x) {
  NoProbe off;
  return vae_pairs(x, [&](const at::Tensor& clip, VaeWay way) { return model.encode(clip, way, off); });
}

}  // namespace parity
