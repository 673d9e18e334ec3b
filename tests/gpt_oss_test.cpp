// gpt-oss beside the embedded recordings of transformers: green with LibTorch's kernels and with our own, red at the
// right place for each seeded fault; cache, grouped experts, MXFP4 and fp8 as pairs of their own.
#include "models/gpt_oss/model.hpp"

#include <doctest/doctest.h>

#include <set>

#include "core/error.hpp"
#include "model_report.hpp"
#include "models/gpt_oss/ported.hpp"
#include "ops/mxfp4.hpp"

using namespace parity;
using namespace parity::test;

namespace {

using at::Tensor;

Report gpt_oss_report(const GptOssOps& ops, const std::string& dump, const std::vector<std::string>& dtypes,
                      Kernels kernels = Kernels::aten) {
  const auto make = [&](const Dump& d, Precision precision) { return port_gpt_oss(d, precision, ops); };
  return model_report(make, dump, dtypes, kernels);
}

constexpr const char* kGptOssDumps[] = {"transformers-gpt-oss.bf16.h5", "transformers-gpt-oss.fp32.h5"};

CausalForm with_window(const CausalForm& form, int64_t more) {
  return {form.window > 0 ? form.window + more : 0, form.sinks};
}

// A one-line fault, and the first row that it must turn red, in fp64 (op by op) and in the recorded dtype.
struct GptOssFault {
  const char* name;
  void (*put_in)(GptOssOps& ops);
  const char* first_path;
};

const GptOssFault kGptOssFaults[] = {
    {"cache shifted by one",
     [](GptOssOps& ops) { ops.cache_slot = [](int64_t before) { return before > 0 ? before - 1 : 0; }; },
     "optimised/cached/position.3"},
    {"window off by one",
     [](GptOssOps& ops) {
       ops.attention = [](const Tensor& q, const Tensor& k, const Tensor& v, const CausalForm& form) {
         return ops::causal_attention(q, k, v, with_window(form, 1));
       };
     },
     "model.layers.0.self_attn/attention.0"},
    {"sink left out",
     [](GptOssOps& ops) {
       ops.attention = [](const Tensor& q, const Tensor& k, const Tensor& v, const CausalForm& form) {
         return ops::causal_attention(q, k, v, {form.window, at::full_like(form.sinks, -1e4)});
       };
     },
     "model.layers.0.self_attn/attention.0"},
    {"wrong key head",  // heads dealt out in turn instead of in groups
     [](GptOssOps& ops) {
       ops.attention = [](const Tensor& q, const Tensor& k, const Tensor& v, const CausalForm& form) {
         const int64_t times = q.size(1) / k.size(1);
         return ops::causal_attention(q, k.repeat({1, times, 1, 1}), v.repeat({1, times, 1, 1}), form);
       };
     },
     "model.layers.0.self_attn/attention.0"},
    {"top-k not renormalised",
     [](GptOssOps& ops) {
       ops.expert_weights = [](const Tensor& logits, const Tensor&, const Tensor& chosen) {
         return at::softmax(logits, 1).gather(1, chosen);
       };
     },
     "model.layers.0.mlp.router[1]"},
    {"YaRN's factor on cos and sin left out",
     [](GptOssOps& ops) { ops.attention_factor = [](const Yarn&) { return 1.0; }; }, "model.rotary_emb/mul.1"},
    {"YaRN's ramp over whole dimensions",
     [](GptOssOps& ops) {
       ops.frequencies = [](Yarn yarn, int64_t head_dim) {
         yarn.truncate = true;
         return yarn_frequencies(yarn, head_dim);
       };
     },
     "model.rotary_emb/mul.0"},
    {"fp8 scale missing",
     [](GptOssOps& ops) {
       ops.widen = [](const Fp8Rows& rows, at::ScalarType dtype) { return rows.values.to(dtype); };
     },
     "optimised/fp8/layer.0"},
};

// The published config.json of gpt-oss-20b, as far as it matters here.
nlohmann::json gpt_oss_20b() {
  return {{"hidden_size", 2880},
          {"intermediate_size", 2880},
          {"num_hidden_layers", 24},
          {"num_attention_heads", 64},
          {"num_key_value_heads", 8},
          {"head_dim", 64},
          {"num_local_experts", 32},
          {"num_experts_per_tok", 4},
          {"sliding_window", 128},
          {"vocab_size", 201088},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 150000},
          {"tie_word_embeddings", false},
          {"attention_bias", true},
          {"swiglu_limit", 7.0},
          {"rope_scaling",
           {{"rope_type", "yarn"},
            {"factor", 32.0},
            {"beta_fast", 32.0},
            {"beta_slow", 1.0},
            {"truncate", false},
            {"original_max_position_embeddings", 4096}}}};
}

int64_t bytes_of(const Parameters& parameters) {  // bf16, and bytes
  int64_t sum = 0;
  for (const auto& [name, shape] : parameters)
    sum += c10::multiply_integers(shape) * (name.ends_with("_blocks") || name.ends_with("_scales") ? 1 : 2);
  return sum;
}

}  // namespace

TEST_CASE("gpt-oss: green on transformers' recordings with LibTorch's kernels and with our own") {
  for (const char* dump : kGptOssDumps)
    for (const auto kernels : {Kernels::aten, Kernels::own}) {
      CAPTURE(dump);
      CAPTURE((kernels == Kernels::own));
      const Report report = gpt_oss_report(gpt_oss_ops(kernels), dump, {"fp64", "fp32", "bf16"}, kernels);
      CHECK(overall(report) == Verdict::pass);
      std::map<std::string, int> optimised;  // rows by kind of pair
      for (const OpResult& row : report.ops) {
        CAPTURE(row.path);
        CAPTURE(row.dtype);
        CHECK_MESSAGE(row.verdict == Verdict::pass, row.diagnosis);
        if (row.logic.rel_l2) CHECK(*row.logic.rel_l2 <= 1e-12);
        if (row.path.starts_with("optimised/")) ++optimised[row.path.substr(10, row.path.find('/', 10) - 10)];
      }
      CHECK(report.ops.size() > 100);
      CHECK(optimised["cached"] >= 2 * 7);  // a row a position and dtype
      CHECK(optimised["grouped"] >= 2 * 2);
      CHECK(optimised["heads"] >= 2 * 2);
      CHECK(optimised["fp8"] >= 2);
      CHECK(optimised["mxfp4"] >= 2 * 2 * 2 * 5);
    }
}

TEST_CASE("gpt-oss: each seeded fault turns the run red and is found where it is made") {
  check_found_where_made<GptOssOps>(
      kGptOssFaults, kGptOssDumps,
      [](const GptOssOps& ops, const auto& dump, const auto& dtypes) { return gpt_oss_report(ops, dump, dtypes); });
}

TEST_CASE("gpt-oss: the 20b's configuration makes the published shapes and counts") {
  const auto config = gpt_oss_config(gpt_oss_20b());
  CHECK(config.window_of(0) == 128);
  CHECK(config.window_of(1) == 0);
  int64_t elements = 0;
  for (const auto& [name, shape] : gpt_oss_parameters(config)) elements += c10::multiply_integers(shape);
  CHECK(elements == 20914757184);  // "openai/gpt-oss-20b", num_parameters()
  const auto packed = gpt_oss_parameters(config, ExpertStorage::mxfp4);
  CHECK(bytes_of(packed) == 13761264768);  // model.safetensors.index.json, metadata.total_size
  const std::map<std::string, std::vector<int64_t>> shapes(packed.begin(), packed.end());
  CHECK(shapes.at("model.layers.23.mlp.experts.gate_up_proj_blocks") == std::vector<int64_t>{32, 5760, 90, 16});
  CHECK(shapes.at("model.layers.0.mlp.experts.down_proj_scales") == std::vector<int64_t>{32, 2880, 90});
  CHECK(shapes.at("model.layers.0.self_attn.q_proj.weight") == std::vector<int64_t>{4096, 2880});
}

TEST_CASE("gpt-oss: configurations that are not written here are refused by name") {
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    auto bad = gpt_oss_20b();
    bad[key] = value;
    CHECK_THROWS_WITH_AS(gpt_oss_config(bad), doctest::Contains(key), Error);
  };
  refused("hidden_size", 0), refused("num_key_value_heads", 7), refused("head_dim", 63);
  refused("num_experts_per_tok", 33), refused("tie_word_embeddings", true), refused("vocab_size", "many");
  refused("layer_types", std::vector<std::string>{"full_attention"});
  auto bad = gpt_oss_20b();
  bad["rope_scaling"]["rope_type"] = "linear";
  CHECK_THROWS_WITH_AS(gpt_oss_config(bad), doctest::Contains("rope_type"), Error);
  CHECK_THROWS_AS(gpt_oss_config(nlohmann::json()), Error);
}

TEST_CASE("gpt-oss: YaRN's frequencies are transformers', and a recorded table that is another is not taken") {
  const Dump dump(reference_dump("transformers-gpt-oss.bf16.h5"));
  const auto config = gpt_oss_config(dump.provenance().at("config"));
  const auto recorded = dump.weight("model.rotary_emb.inv_freq");
  const auto computed = yarn_frequencies(config.yarn, config.head_dim);
  CHECK((recorded.scalar_type() == at::kFloat));
  CHECK(((recorded.to(at::kDouble) - computed) / computed).abs().max().item<double>() < 1e-6);
  CHECK(yarn_table(computed, recorded).equal(recorded));
  CHECK(yarn_table(computed, recorded * 1.00001).equal(computed.to(at::kFloat)));
  CHECK(yarn_attention_factor({.factor = 32}) == doctest::Approx(1.3465735902799727));  // 0.1 ln 32 + 1
}

TEST_CASE("gpt-oss: MXFP4 quantises to the nearest of its values, low four bits first") {
  const auto values = at::tensor({0., .5, -1., 1.5, 2., -3., 4., 6.}, at::kFloat);
  const auto weight = at::cat({values, values.flip(0), values * .5, values}).view({1, 32}) * 0.25;
  const auto packed = ops::quantise_mxfp4(weight);
  CHECK(packed.scales.item<int>() == 127 - 2);
  CHECK(packed.values[0][0].item<int>() == 0x10);  // 0, then .5
  CHECK(packed.values[0][1].item<int>() == 0x3a);  // -1, then 1.5
  CHECK((ops::dequantise(packed, at::kFloat) - weight).abs().max().item<float>() <=
        0.25 * 0.25);  // .25, .75: half a step
  CHECK_THROWS_AS(ops::quantise_mxfp4(at::zeros({2, 33})), Error);
  CHECK_THROWS_AS(ops::own_linear(at::zeros({1, 64}), packed, {}), Error);
}

TEST_CASE("gpt-oss: a cache in fp8 is a quarter of fp32's, and one that is full says so") {
  const Dump dump(reference_dump("transformers-gpt-oss.fp32.h5"));
  const auto weights = weights_of(dump, [](const std::string& name) { return name; });
  const GptOssModel model(gpt_oss_config(dump.provenance().at("config")), Precision::recorded, weights);
  const auto plain = model.cache(2, 8), fp8 = model.cache(2, 8, CacheStorage::fp8);
  CHECK(plain.bytes() == 2 * 2 * 2 * 2 * 8 * 10 * 4);
  CHECK(fp8.bytes() == plain.bytes() / 4 + 2 * 2 * 2 * 2 * 8 * 4);  // and a scale a row
  NoProbe off;
  auto cache = model.cache(2, 4, CacheStorage::fp8);
  CHECK_THROWS_AS(model.forward(dump.input("input_ids"), &cache, off), Error);
}
