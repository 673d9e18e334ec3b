#include "models/wan_vae/self_pairs.hpp"

#include <fmt/format.h>

namespace parity {
namespace {

// `run`: decode or encode; `frame`: what its frames are called.
template <class Run>
std::vector<SelfPair> vae_pairs(const at::Tensor& x, const char* frame, const Run& run) {
  std::vector<SelfPair> pairs;
  const auto chunks = run(x, VaeWay::chunks), whole = run(x, VaeWay::whole);
  const auto nth = [](const at::Tensor& clip, int64_t i) { return clip.select(2, i).contiguous(); };
  for (int64_t i = 0; i < chunks.size(2); ++i)
    pairs.push_back({fmt::format("whole/{}.{}", frame, i), "conv", nth(chunks, i), nth(whole, i)});
  const auto first = run(x.narrow(2, 0, 1), VaeWay::chunks);
  pairs.push_back({fmt::format("first/{}.0", frame), "conv", nth(chunks, 0), nth(first, 0)});
  for (int64_t i = 0; i < x.size(0); ++i)
    pairs.push_back({fmt::format("sample.{}", i), "conv", chunks.narrow(0, i, 1).contiguous(),
                     run(x.narrow(0, i, 1), VaeWay::chunks)});
  return pairs;
}

}  // namespace

std::vector<SelfPair> wan_vae_decode_pairs(const WanVaeModel& model, const at::Tensor& z) {
  NoProbe off;
  return vae_pairs(z, "frame", [&](const at::Tensor& x, VaeWay way) { return model.decode(x, way, off); });
}

std::vector<SelfPair> wan_vae_encode_pairs(const WanVaeModel& model, const at::Tensor& x) {
  NoProbe off;
  return vae_pairs(x, "latent", [&](const at::Tensor& clip, VaeWay way) { return model.encode(clip, way, off); });
}

}  // namespace parity
