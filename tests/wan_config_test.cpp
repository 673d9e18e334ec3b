#include <doctest/doctest.h>

#include <map>
#include <set>

#include "core/error.hpp"
#include "models/wan/config.hpp"
#include "models/wan/dtype_path.hpp"
#include "models/wan/kinds.hpp"
#include "models/wan/names.hpp"

using namespace parity;
using nlohmann::json;

namespace {

// config.json of the published checkpoints, as far as they matter here.
const json kWan13 = {{"_class_name", "WanModel"}, {"dim", 1536},   {"eps", 1e-6},         {"ffn_dim", 8960},
                     {"freq_dim", 256},           {"in_dim", 16},  {"model_type", "t2v"}, {"num_heads", 12},
                     {"num_layers", 30},          {"out_dim", 16}, {"text_len", 512}};
const json kWan14I2V = {{"_class_name", "WanModel"}, {"dim", 5120},   {"eps", 1e-6},         {"ffn_dim", 13824},
                        {"freq_dim", 256},           {"in_dim", 36},  {"model_type", "i2v"}, {"num_heads", 40},
                        {"num_layers", 40},          {"out_dim", 16}, {"text_len", 512}};
const json kSky13I2V = {{"_class_name", "SkyReelsV2Transformer3DModel"},
                        {"patch_size", {1, 2, 2}},
                        {"num_attention_heads", 12},
                        {"attention_head_dim", 128},
                        {"in_channels", 36},
                        {"out_channels", 16},
                        {"text_dim", 4096},
                        {"freq_dim", 256},
                        {"ffn_dim", 8960},
                        {"num_layers", 30},
                        {"cross_attn_norm", true},
                        {"eps", 1e-6},
                        {"image_dim", 1280},
                        {"added_kv_proj_dim", 1536},
                        {"pos_embed_seq_len", nullptr},
                        {"inject_sample_info", false},
                        {"num_frame_per_block", 1}};

double millions(const WanConfig& config) {
  double count = 0;
  for (const auto& [name, shape] : wan_parameters(config)) {
    double size = 1;
    for (const auto n : shape) size *= static_cast<double>(n);
    count += size;
  }
  return count / 1e6;
}

}  // namespace

TEST_CASE("wan: the published sizes parse and have the published numbers of parameters") {
  const auto t2v = wan_config(kWan13);
  CHECK(t2v.head_dim() == 128);
  CHECK_FALSE(t2v.image());
  CHECK(millions(t2v) == doctest::Approx(1419.0).epsilon(1e-4));  // measured on the originals, references.md section 3
  const auto i2v = wan_config(kSky13I2V);
  CHECK(i2v.diffusers);
  CHECK(i2v.dim == 1536);
  CHECK(i2v.frames_per_block == 0);  // diffusers: a block of one frame is not causal
  CHECK(millions(i2v) == doctest::Approx(1564.4).epsilon(1e-4));
  const auto big = wan_config(kWan14I2V);
  CHECK(big.head_dim() == 128);
  CHECK(big.image_tokens == 257);
  CHECK(millions(big) == doctest::Approx(16400).epsilon(0.01));  // "14B" with the image branch
  auto df = kSky13I2V;
  df["inject_sample_info"] = true, df["num_frame_per_block"] = 5;
  CHECK(wan_config(df).frames_per_block == 5);
  CHECK(millions(wan_config(df)) > millions(i2v));
}

TEST_CASE("wan: parameter shapes follow the configuration") {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (auto& [name, shape] : wan_parameters(wan_config(kWan14I2V))) shapes[name] = shape;
  CHECK(shapes.at("patch_embedding.weight") == std::vector<int64_t>{5120, 36, 1, 2, 2});
  CHECK(shapes.at("time_projection.1.weight") == std::vector<int64_t>{6 * 5120, 5120});
  CHECK(shapes.at("blocks.39.ffn.2.weight") == std::vector<int64_t>{5120, 13824});
  CHECK(shapes.at("blocks.0.cross_attn.k_img.bias") == std::vector<int64_t>{5120});
  CHECK(shapes.at("head.head.weight") == std::vector<int64_t>{64, 5120});
  CHECK(shapes.count("blocks.40.modulation") == 0);
}

TEST_CASE("wan: an unusable configuration is an error that names the key") {
  for (const auto* key : {"dim", "num_heads", "num_layers", "ffn_dim"}) {
    auto broken = kWan13;
    broken.erase(key);
    CHECK_THROWS_WITH_AS(wan_config(broken), doctest::Contains(key), Error);
  }
  auto broken = kWan13;
  broken["num_heads"] = 7;
  CHECK_THROWS_AS(wan_config(broken), Error);
  broken = kWan13, broken["dim"] = "wide";
  CHECK_THROWS_WITH_AS(wan_config(broken), doctest::Contains("dim"), Error);
  broken = kWan13, broken["patch_size"] = {1, 2};
  CHECK_THROWS_AS(wan_config(broken), Error);
  CHECK_THROWS_AS(wan_config(json()), Error);
  CHECK_THROWS_WITH_AS(wan_dtype_path("sky"), doctest::Contains("sky_noac"), Error);
}

TEST_CASE("wan: every parameter has its own diffusers name, norms crosswise") {
  auto config = wan_config(kWan14I2V);
  config.sample_info = true, config.image_positions = 514;
  std::set<std::string> names;
  for (const auto& [name, shape] : wan_parameters(config)) CHECK(names.insert(wan_diffusers_name(name)).second);
  CHECK(wan_diffusers_name("blocks.3.norm3.weight") == "blocks.3.norm2.weight");
  CHECK(wan_diffusers_name("blocks.3.cross_attn.norm_k_img.weight") == "blocks.3.attn2.norm_added_k.weight");
  CHECK(wan_diffusers_name("blocks.12.modulation") == "blocks.12.scale_shift_table");
  CHECK(wan_diffusers_name("head.modulation") == "scale_shift_table");
  CHECK(wan_diffusers_name("head.head.bias") == "proj_out.bias");
  CHECK(wan_diffusers_name("patch_embedding.weight") == "patch_embedding.weight");
}

TEST_CASE("wan: kinds of points") {
  CHECK(wan_kind("patch_embedding") == "conv");
  CHECK(wan_kind("blocks.0.norm1") == "layer_norm");
  CHECK(wan_kind("blocks.0.self_attn.norm_q") == "rms_norm");
  CHECK(wan_kind("blocks.0.self_attn.q") == "linear");
  CHECK(wan_kind("blocks.0.self_attn/rope_even.1") == "rope");
  CHECK(wan_kind("blocks.0.cross_attn/attention.1") == "attention");
  CHECK(wan_kind("blocks.0/mul_add_add.1") == "modulation");
  CHECK(wan_kind("blocks.0/mul_add.1") == "residual");
  CHECK(wan_kind("blocks.0/cast.3") == "cast");
  CHECK(wan_kind("blocks.11") == "cast");
  CHECK(wan_kind("blocks.0.ffn.1") == "gelu");
  CHECK(wan_kind("") == "copy");
  CHECK(wan_kind("blocks.0/nothing") == "");
}
