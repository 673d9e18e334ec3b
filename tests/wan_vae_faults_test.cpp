// One-line faults of ports of Wan's autoencoder, each found at the op that has it, in fp32 and in bf16.
#include <doctest/doctest.h>

#include <algorithm>

#include "wan_vae_dumps.hpp"

using namespace parity;
using namespace parity::test;

namespace {

struct VaeFault {
  const char* name;
  void (*put_in)(WanVaeOps& ops);
  const char *in_decode, *in_encode;  // first divergence, "path" or "path call 1"; nullptr: not computed there
  bool rounding = false;              // shows in bf16 alone
};

const VaeFault kVaeFaults[] = {
    {"causal padding on the wrong side",
     [](WanVaeOps& ops) {
       ops.causal_conv = [](const auto& x, const auto& w, const auto& b, const auto& before, int64_t stride) {
         if (w.size(2) == 1 || stride > 1) return ops::causal_conv3d(x, w, b, before, stride);
         const int64_t side = w.size(3) / 2, zeros = 2 - (before.defined() ? before.size(2) : 0);
         const auto seen = before.defined() ? at::cat({before, x}, 2) : x;
         return at::conv3d(at::constant_pad_nd(seen, {side, side, side, side, 0, zeros}), w, b);
       };
     },
     "decoder.conv_in", "encoder.conv_in"},
    {"feature cache dropped",
     [](WanVaeOps& ops) {
       ops.keep = [](const auto& before, const auto& x, int64_t count) {
         return count == 2 ? at::Tensor() : last_frames(before, x, count);
       };
     },
     "decoder.conv_in call 1", "encoder.conv_in call 1"},
    {"feature cache one frame short",
     [](WanVaeOps& ops) { ops.keep = [](const auto&, const auto& x, int64_t) { return last_frames({}, x, 1); }; },
     "decoder.conv_in call 2", "encoder.conv_in call 2"},
    {"Rep skipped: the first frame is in the cache of the doubling in time",
     [](WanVaeOps& ops) { ops.keep_first = [](const auto& first) { return first.clone(); }; },
     "decoder.up_blocks.0.upsamplers.0.time_conv", nullptr},
    {"picture repeated for its pixels",
     [](WanVaeOps& ops) { ops.double_pixels = [](const auto& x) {
                            return x.repeat({1, 1, 2, 2});
                          }; },
     "decoder.up_blocks.0.upsamplers.0.resample.0", nullptr},
    {"bilinear for nearest",
     [](WanVaeOps& ops) {
       ops.double_pixels = [](const auto& x) {
         return at::upsample_bilinear2d(x, {2 * x.size(2), 2 * x.size(3)}, /*align_corners=*/false);
       };
     },
     "decoder.up_blocks.0.upsamplers.0.resample.0", nullptr},
    {"frames interleaved in the other order",
     [](WanVaeOps& ops) {
       ops.interleave = [](const auto& x) { return ops::interleave_frames(x.roll(x.size(1) / 2, 1)); };
     },
     "decoder.up_blocks.0.upsamplers.0.resample.0 call 1", nullptr},
    {"padded above and at the left",
     [](WanVaeOps& ops) { ops.pad = [](const auto& x) {
                            return at::constant_pad_nd(x, {1, 0, 1, 0});
                          }; }, nullptr,
     "encoder.down_blocks.1.resample.0"},
    {"RMS norm without sqrt(channels)",
     [](WanVaeOps& ops) {
       ops.norm = [](const auto& x, const auto& gamma) { return ops::channel_norm(x, gamma / std::sqrt(x.size(1))); };
     },
     "decoder.mid_block.resnets.0.norm1", "encoder.down_blocks.0.norm1"},
    {"latents' mean and deviation left out",
     [](WanVaeOps& ops) {
       ops.scale = [](const WanVaeConfig& c, at::ScalarType dtype) {
         const auto zeros = at::zeros({1, c.latent_channels, 1, 1, 1}, dtype);
         return LatentScale{zeros, zeros + 1};
       };
     },
     "/div.0", "/sub.0"},
    {"attention over frames for attention over pixels",
     [](WanVaeOps& ops) {
       ops.attention = [](const auto& q, const auto& k, const auto& v) {
         const auto turned = [](const at::Tensor& x) {  // (2 frames, pixels, 1, c) -> (2 pixels, frames, 1, c)
           return x.unflatten(0, {2, -1}).transpose(1, 2).flatten(0, 1);
         };
         const auto y = ops::attention(turned(q), turned(k), turned(v), {}).transpose(1, 2);
         return y.unflatten(0, {2, -1}).transpose(1, 2).flatten(0, 1).transpose(1, 2).contiguous();
       };
     },
     "decoder.mid_block.attentions.0/attention.0", "encoder.mid_block.attentions.0/attention.0"},
    {"RMS norm rounded once",
     [](WanVaeOps& ops) {
       ops.norm = [](const auto& x, const auto& gamma) {
         return ops::channel_norm(x.to(at::promoteTypes(x.scalar_type(), at::kFloat)), gamma).to(x.scalar_type());
       };
     },
     "decoder.mid_block.resnets.0.norm1", "encoder.down_blocks.0.norm1", /*rounding=*/true},
    {"divided in bf16",
     [](WanVaeOps& ops) {
       ops.norm = [](const auto& x, const auto& gamma) {
         const auto length = at::linalg_vector_norm(x, 2, {1}, true);
         return x / length * std::sqrt(x.size(1)) * gamma + 0.0;
       };
     },
     "decoder.mid_block.resnets.0.norm1", "encoder.down_blocks.0.norm1", /*rounding=*/true},
};

std::string where(const OpResult& row) {
  return row.call == 0 ? row.candidate_path : row.candidate_path + " call " + std::to_string(row.call);
}

void check_faults_on(const std::string& dump) {
  const bool decode = dump.find("decode") != std::string::npos;
  const std::string dtype = dump.substr(dump.size() - 7, 4);
  int tried = 0;
  for (const VaeFault& fault : kVaeFaults) {
    const char* first_path = decode ? fault.in_decode : fault.in_encode;
    if (!first_path || (fault.rounding && dtype != "bf16")) continue;
    CAPTURE(std::string(fault.name));
    WanVaeOps ops;
    fault.put_in(ops);
    const Report report = vae_report(ops, dump, {"fp64", dtype}, /*forced_alone=*/true);
    CHECK(exit_status(report) == 1);
    const OpResult* first = first_divergence(report);
    REQUIRE(first != nullptr);
    CHECK(where(*first) == first_path);
    CHECK((first->gate == Gate::dtype_path) == fault.rounding);
    CHECK_FALSE(first->diagnosis.empty());
    ++tried;
  }
  CHECK(tried >= 7);
}

}  // namespace

TEST_CASE("wan-vae: each seeded fault of decoding is found where it is made, bf16") { check_faults_on(kVaeDumps[0]); }
TEST_CASE("wan-vae: each seeded fault of decoding is found where it is made, fp32") { check_faults_on(kVaeDumps[1]); }
TEST_CASE("wan-vae: each seeded fault of encoding is found where it is made, bf16") { check_faults_on(kVaeDumps[2]); }
TEST_CASE("wan-vae: each seeded fault of encoding is found where it is made, fp32") { check_faults_on(kVaeDumps[3]); }
