// The Wan pipelines' encoders beside the embedded recordings of transformers: green with LibTorch's kernels and with
// our own, red at the right place for each seeded fault; a padded prompt and a cut one as a pair of their own.
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "core/error.hpp"
#include "model_report.hpp"
#include "models/clip/config.hpp"
#include "models/clip/ported.hpp"
#include "models/umt5/config.hpp"
#include "models/umt5/model.hpp"
#include "models/umt5/ported.hpp"
#include "models/umt5/self_pairs.hpp"
#include "ops/own.hpp"

using namespace parity;
using namespace parity::test;

namespace {

constexpr const char *kUmt5 = "transformers-umt5", *kClip = "transformers-clip-vision";

// A one-line fault, and the first row that it must turn red.
template <class Ops>
struct EncoderFault {
  const char* name;
  void (*put_in)(Ops& ops);
  const char* first_path;
};

const EncoderFault<Umt5Ops> kUmt5Faults[] = {
    {"bucket off by one",
     [](Umt5Ops& ops) {
       ops.buckets = [](int64_t tokens, const BucketForm& form, Precision precision) {
         return (ops::relative_position_buckets(tokens, form, precision) + 1).clamp_max(form.buckets - 1);
       };
     },
     "encoder.block.0.layer.0.SelfAttention/buckets.0"},
    {"the first layer's biases in every layer, as T5 has it",
     [](Umt5Ops& ops) { ops.table_of = [](int64_t) { return int64_t{0}; }; },
     "encoder.block.1.layer.0.SelfAttention.relative_attention_bias"},
    {"mask ignored",
     [](Umt5Ops& ops) {
       ops.padded_bias = [](const auto& bias, const auto& sees, double) {
         return bias.expand({sees.size(0), -1, -1, -1});
       };
     },
     "encoder.block.0.layer.0.SelfAttention/padded_bias.0"},
    {"scores divided by sqrt(d)",
     [](Umt5Ops& ops) {
       ops.attention = [](const auto& q, const auto& k, const auto& v, const ScoreForm& form) {
         return ops::encoder_attention(q, k, v, {1 / std::sqrt(static_cast<double>(q.size(3))), form.bias});
       };
     },
     "encoder.block.0.layer.0.SelfAttention/attention.0"},
    {"norm subtracts the mean",
     [](Umt5Ops& ops) {
       ops.norm = [](const auto& x, const auto& weight, double eps, RmsForm, Precision) {
         return at::layer_norm(x, {x.size(-1)}, weight, {}, eps);
       };
     },
     "encoder.block.0.layer.0.layer_norm"},
    {"gate and up swapped",
     [](Umt5Ops& ops) {
       ops.gate_and_up = [](at::Tensor wi_0, at::Tensor wi_1) { return std::pair(std::move(wi_1), std::move(wi_0)); };
     },
     "encoder.block.0.layer.1.DenseReluDense.wi_0"},
    {"gate GELU of the erf form", [](Umt5Ops& ops) { ops.gelu = [](const auto& x) { return at::gelu(x); }; },
     "encoder.block.0.layer.1.DenseReluDense.act"},
};

const EncoderFault<ClipOps> kClipFaults[] = {
    {"class token at the end",
     [](ClipOps& ops) {
       ops.join = [](const auto& class_token, const auto& patches) { return at::cat({patches, class_token}, 1); };
     },
     "embeddings/cat.0"},
    {"positions off by one",
     [](ClipOps& ops) { ops.positions = [](int64_t tokens) { return at::arange(tokens).roll(1).unsqueeze(0); }; },
     "embeddings.position_embedding"},
    {"norm before the layers left out", [](ClipOps& ops) { ops.pre_norm = [](const auto& x) { return x.clone(); }; },
     "pre_layrnorm"},
    {"last hidden state instead of the last but one",
     [](ClipOps& ops) { ops.penultimate = [](const auto& hidden) { return hidden.back(); }; }, "penultimate"},
    {"eps 1e-6 for 1e-5",
     [](ClipOps& ops) {
       ops.norm = [](const auto& x, const auto& weight, const auto& bias, double) {
         return at::layer_norm(x, {x.size(-1)}, weight, bias, 1e-6);
       };
     },
     "pre_layrnorm"},
    {"OpenAI's quick GELU",
     [](ClipOps& ops) { ops.activation = [](const auto& x, ClipActivation) { return ops::quick_gelu(x); }; },
     "encoder.layers.0.mlp.activation_fn"},
    {"GELU of the tanh form",
     [](ClipOps& ops) { ops.activation = [](const auto& x, ClipActivation) { return at::gelu(x, "tanh"); }; },
     "encoder.layers.0.mlp.activation_fn"},
};

ModelFactory umt5_with(Umt5Ops ops) {
  return [ops = std::move(ops)](const Dump& d, Precision precision) { return port_umt5(d, precision, ops); };
}
ModelFactory clip_with(ClipOps ops) {
  return [ops = std::move(ops)](const Dump& d, Precision precision) { return port_clip_vision(d, precision, ops); };
}

void check_green(const ModelFactory& make, const std::string& name, Kernels kernels, int pairs, size_t least_rows) {
  const Report report = model_report(make, name, {"fp64", "fp32", "bf16"}, kernels);
  CHECK(overall(report) == Verdict::pass);
  int optimised = 0;
  for (const OpResult& row : report.ops) {
    CAPTURE(row.path);
    CAPTURE(row.dtype);
    CHECK_MESSAGE(row.verdict == Verdict::pass, row.diagnosis);
    if (row.logic.rel_l2) CHECK(*row.logic.rel_l2 <= 1e-12);
    optimised += row.path.starts_with("optimised/");
  }
  CHECK(report.ops.size() > least_rows);
  CHECK(optimised == pairs * (name.ends_with("bf16.h5") ? 3 : 2));  // a row a pair and dtype
}

template <class Ops, class Faults>
void check_faults(const Faults& faults, const std::string& model, ModelFactory (*with)(Ops)) {
  for (const auto& fault : faults)
    for (const std::string dtype : {"bf16", "fp32"}) {
      CAPTURE(fault.name);
      CAPTURE(dtype);
      Ops ops;
      fault.put_in(ops);
      const Report report = model_report(with(ops), model + "." + dtype + ".h5", {"fp64", dtype}, Kernels::aten, "*");
      CHECK(exit_status(report) == 1);
      const OpResult* first = first_divergence(report);
      REQUIRE(first != nullptr);
      CHECK(first->candidate_path == fault.first_path);
      CHECK_FALSE(first->diagnosis.empty());
    }
}

}  // namespace

TEST_CASE("encoders: green on transformers' recordings with LibTorch's kernels and with our own") {
  for (const char* dtype : {".bf16.h5", ".fp32.h5"})
    for (const auto kernels : {Kernels::aten, Kernels::own}) {
      CAPTURE(dtype);
      CAPTURE((kernels == Kernels::own));
      check_green(umt5_with(umt5_ops(kernels)), std::string(kUmt5) + dtype, kernels, 4, 100);
      check_green(clip_with(clip_ops(kernels)), std::string(kClip) + dtype, kernels, 3, 80);
    }
}

TEST_CASE("encoders: each seeded fault of UMT5 turns the run red and is found where it is made") {
  check_faults<Umt5Ops>(kUmt5Faults, kUmt5, umt5_with);
}

TEST_CASE("encoders: each seeded fault of CLIP turns the run red and is found where it is made") {
  check_faults<ClipOps>(kClipFaults, kClip, clip_with);
}

TEST_CASE("encoders: a prompt cut to its length is red when padding is looked at") {
  Umt5Ops ops;
  kUmt5Faults[2].put_in(ops);
  const Report report =
      model_report(umt5_with(ops), std::string(kUmt5) + ".fp32.h5", {"fp64", "fp32"}, Kernels::aten, "optimised/*");
  for (const char* path : {"optimised/cut/sample.0", "optimised/cut/sample.1"}) {
    const auto red = std::count_if(report.ops.begin(), report.ops.end(), [&](const OpResult& row) {
      return row.path == path && row.verdict == Verdict::fail;
    });
    CHECK(red == 2);  // in fp64 and in fp32
  }
}

TEST_CASE("encoders: faults of our own attention with a bias go red in every precision") {
  const OpRow& row = encoder_attention_bias_row();
  const OpCase c = row.cases()[0];
  using Fault = at::Tensor (*)(const OpCase& c);
  const Fault faults[] = {
      [](const OpCase& s) {
        return ops::own_encoder_attention(s.in[0], s.in[1], s.in[2], {1, s.in[3].roll(1, 1)});
      },
      [](const OpCase& s) {
        return ops::own_encoder_attention(s.in[0], s.in[1], s.in[2], {1, s.in[3].mT()});
      },
      [](const OpCase& s) {
        return ops::own_encoder_attention(s.in[0], s.in[1], s.in[2], {.5, s.in[3]});
      },
      [](const OpCase& s) {
        return ops::own_encoder_attention(s.in[0], s.in[1], s.in[2], {1, s.in[3][0].unsqueeze(0)});
      },
  };
  REQUIRE(row.variants[0].bounds.size() == 3);
  for (const OpBound& bound : row.variants[0].bounds)
    for (const Fault fault : faults) {
      OpCase low{c.name, {}}, wide{c.name, {}};
      for (const auto& t : c.in)
        low.in.push_back(t.to(bound.storage)), wide.in.push_back(low.in.back().to(at::kDouble));
      CHECK(measure_op(row.reference(wide), fault(low)).rel_l2 > 4 * *bound.rel_l2);
      CHECK(measure_op(row.reference(wide), row.variants[0].run(low)).rel_l2 <= *bound.rel_l2);
    }
  const auto q = at::zeros({1, 2, 3, 4});
  CHECK_THROWS_AS(ops::encoder_attention(q, q, q, {1, at::zeros({1, 2, 3, 4})}), Error);
  CHECK_THROWS_AS(ops::own_encoder_attention(q, q, at::zeros({1, 2, 3, 5}), {}), Error);
}

TEST_CASE("encoders: configurations that are not written here are refused by name") {
  const nlohmann::json text = {{"vocab_size", 256384}, {"d_model", 4096},  {"d_kv", 64},
                               {"d_ff", 10240},        {"num_layers", 24}, {"num_heads", 64}};
  const nlohmann::json image = {{"hidden_size", 1280},       {"intermediate_size", 5120}, {"num_hidden_layers", 32},
                                {"num_attention_heads", 16}, {"image_size", 224},         {"patch_size", 14},
                                {"hidden_act", "gelu"}};
  const auto elements = [](const Parameters& parameters) {
    int64_t sum = 0;
    for (const auto& [name, shape] : parameters) sum += c10::multiply_integers(shape);
    return sum;
  };
  // num_parameters() of transformers' classes with these configurations: UMT5-xxl's encoder, and the image encoder
  // ViT-H
  CHECK(elements(umt5_parameters(umt5_config(text))) == 5680910336);
  CHECK(elements(clip_parameters(clip_config(image))) == 630766080);
  const auto refused = [&](nlohmann::json bad, const char* key, const nlohmann::json& value) {
    bad[key] = value;
    const auto read = [&] { return bad.contains("d_kv") ? umt5_config(bad).dim : clip_config(bad).dim; };
    CHECK_THROWS_WITH_AS(read(), doctest::Contains(key), Error);
  };
  refused(text, "feed_forward_proj", "relu"), refused(text, "is_decoder", true), refused(text, "d_ff", 0);
  refused(text, "relative_attention_num_buckets", 2), refused(text, "pad_token_id", -1);
  refused(text, "vocab_size", "many");
  refused(image, "hidden_act", "relu"), refused(image, "num_attention_heads", 7), refused(image, "patch_size", 225);
  CHECK_THROWS_AS(umt5_config(nlohmann::json()), Error);
  CHECK_THROWS_AS(clip_config(nlohmann::json()), Error);
}

TEST_CASE("encoders: a text that does not fit is refused, and a mask without padding is none") {
  const Dump dump(reference_dump(std::string(kUmt5) + ".fp32.h5"));
  const auto weights = weights_of(dump, [](const std::string& name) { return name; });
  const Umt5Model model(umt5_config(dump.provenance()["config"]), Precision::recorded, weights, {});
  NoProbe off;
  const auto ids = at::arange(2, 12).view({2, 5}), all = at::ones_like(ids);
  CHECK(at::equal(model.forward({ids, all}, off), model.forward({ids, {}}, off)));
  CHECK_THROWS_WITH_AS(model.forward({ids[0], {}}, off), doctest::Contains("1 dimensions"), Error);
  CHECK_THROWS_WITH_AS(model.forward({ids, all.narrow(1, 0, 4)}, off), doctest::Contains("mask [2, 4]"), Error);
  auto left = all.clone();
  left[1][0] = 0;
  CHECK_THROWS_WITH_AS(umt5_cut_pairs(model, {ids, left}), doctest::Contains("sample 1 has padding before"), Error);
}

TEST_CASE("encoders: run selects the models and their variants") {
  const Scratch scratch;
  const std::string out = (scratch / "out").string();
  for (const std::string name : {"umt5", "clip"}) {
    const auto own = parity_check("run --layer all --model " + name + " --variant own --out " + out);
    INFO(own.out << own.err);
    CHECK(own.status == 0);
    const auto report = nlohmann::json::parse(read_text(scratch / "out" / "report.json"));
    CHECK(report["candidate"]["details"]["variant"] == "own");
  }
}
