// Wan2.1's autoencoder beside the embedded recordings of diffusers' AutoencoderKLWan: every op, chunks against the
// whole clip, names of the original repository.
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <fstream>

#include "core/error.hpp"
#include "test_places.hpp"
#include "wan_vae_dumps.hpp"

using namespace parity;
using namespace parity::test;

TEST_CASE("wan-vae: decode and encode are green on diffusers' recordings, in chunks and at once") {
  for (const char* dump : kVaeDumps) {
    CAPTURE(dump);
    const Report report = vae_report({}, dump, {"fp64", "fp32", "bf16"});
    CHECK(overall(report) == Verdict::pass);
    std::map<std::string, int> optimised;
    for (const OpResult& row : report.ops) {
      CAPTURE(row.path);
      CAPTURE(row.call);
      CAPTURE(row.dtype);
      CHECK_MESSAGE(row.verdict == Verdict::pass, row.diagnosis);
      if (row.logic.rel_l2) CHECK(*row.logic.rel_l2 <= 1e-12);
      if (row.path.starts_with("optimised/")) ++optimised[row.path.substr(10, 5)];
    }
    CHECK(report.ops.size() > 350);
    const int dtypes = std::string(dump).find("bf16") != std::string::npos ? 3 : 2;
    CHECK(optimised["whole"] == dtypes);
    CHECK(optimised["first"] == dtypes);
  }
}

TEST_CASE("wan-vae: at a factor of two nearest is nearest-exact") {
  const auto x = spread({2, 6, 5, 3}, 1);
  CHECK(at::equal(ops::double_pixels(x), at::upsample_nearest2d(x, {10, 6}, 2.0, 2.0)));
}

TEST_CASE("wan-vae: every parameter of Wan2.1 and its name in the original repository, as diffusers converts them") {
  const nlohmann::json published = {{"latents_mean", std::vector<double>(16, 0.0)},
                                    {"latents_std", std::vector<double>(16, 1.0)}};
  const WanVaeConfig config = wan_vae_config(published);
  std::map<std::string, std::string> expected;  // by diffusers' name
  std::ifstream file(PARITY_SOURCE_DIR "/tests/data/wan_vae_names.txt");
  for (std::string original, diffusers; file >> original >> diffusers;) expected[diffusers] = original;
  const auto parameters = wan_vae_parameters(config);
  int64_t elements = 0;
  for (const auto& [name, shape] : parameters) {
    CAPTURE(name);
    CHECK(expected[name] == wan_vae_original_name(config, name));
    elements += c10::multiply_integers(shape);
  }
  CHECK(parameters.size() == 194);
  CHECK(expected.size() == 194);
  CHECK(elements == 126892531);  // the published checkpoint's
}

TEST_CASE("wan-vae: a model from weights under original names decodes to the same bits") {
  const Dump dump(reference_dump("diffusers-wan-vae-decode.fp32.h5"));
  const auto model = vae_model(dump);
  std::map<std::string, at::Tensor> original;
  for (const auto& [name, shape] : wan_vae_parameters(model.config()))
    original[wan_vae_original_name(model.config(), name)] = dump.weight(name);
  const WeightSource source{
      [&](const std::string& name) { return original.at(wan_vae_original_name(model.config(), name)); },
      [](const std::string&) { return true; }};
  const WanVaeModel renamed(model.config(), Precision::recorded, source);
  NoProbe off;
  const auto z = dump.input("latents");
  CHECK(at::equal(renamed.decode(z, VaeWay::chunks, off), model.decode(z, VaeWay::chunks, off)));
}

TEST_CASE("wan-vae: configurations and clips that are not written here are refused by name") {
  const nlohmann::json good = {{"z_dim", 2}, {"latents_mean", {0.0, 0.0}}, {"latents_std", {1.0, 1.0}}};
  CHECK_NOTHROW(wan_vae_config(good));
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    auto config = good;
    config[key] = value;
    CAPTURE(key);
    CHECK_THROWS_AS(wan_vae_config(config), Error);
  };
  refused("is_residual", true), refused("patch_size", 2), refused("attn_scales", {0.5}), refused("z_dim", 3);
  refused("dim_mult", nlohmann::json::array()), refused("dim_mult", {1, -2}), refused("base_dim", "wide");
  refused("temperal_downsample", {true}), refused("latents_std", {1.0}), refused("num_res_blocks", 0);
  const Dump dump(reference_dump("diffusers-wan-vae-decode.fp32.h5"));
  const auto model = vae_model(dump);
  NoProbe off;
  CHECK_THROWS_AS(model.decode(at::zeros({2, 4, 3, 2, 1}), VaeWay::chunks, off), Error);
  CHECK_THROWS_AS(model.encode(at::zeros({3, 9, 8}), VaeWay::chunks, off), Error);
}
