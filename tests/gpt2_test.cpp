// GPT-2 beside the embedded recordings of transformers: green with LibTorch's kernels and with our own, red at the
// right place for each seeded fault; the cache and INT8 weights as pairs of their own.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/error.hpp"
#include "model_report.hpp"
#include "models/gpt2/model.hpp"
#include "models/gpt2/ported.hpp"
#include "ops/own.hpp"

using namespace parity;
using namespace parity::test;

namespace {

Report gpt2_report(const Gpt2Ops& ops, const std::string& dump, const std::vector<std::string>& dtypes,
                   Kernels kernels = Kernels::aten) {
  const auto make = [&](const Dump& d, Precision precision) { return port_gpt2(d, precision, ops); };
  return model_report(make, dump, dtypes, kernels);
}

constexpr const char* kGpt2Dumps[] = {"transformers-gpt2.bf16.h5", "transformers-gpt2.fp32.h5"};

// A one-line fault, and the first row that it must turn red, in fp64 (op by op) and in the recorded dtype.
struct Gpt2Fault {
  const char* name;
  void (*put_in)(Gpt2Ops& ops);
  const char* first_path;
};

const Gpt2Fault kGpt2Faults[] = {
    {"cache shifted by one",
     [](Gpt2Ops& ops) { ops.cache_slot = [](int64_t before) { return before > 0 ? before - 1 : 0; }; },
     "optimised/cached/position.3"},
    {"window off by one",
     [](Gpt2Ops& ops) {
       ops.attention = [](const auto& q, const auto& k, const auto& v, const CausalForm&) {
         return ops::own_causal_attention(q, k, v, {.window = 6});
       };
     },
     "transformer.h.0.attn/attention.0"},
    {"a sink too many",
     [](Gpt2Ops& ops) {
       ops.attention = [](const auto& q, const auto& k, const auto& v, const CausalForm&) {
         return ops::own_causal_attention(q, k, v, {.sinks = at::zeros({q.size(1)}, q.options())});
       };
     },
     "transformer.h.0.attn/attention.0"},
    {"wrong KV head",
     [](Gpt2Ops& ops) {
       ops.attention = [](const auto& q, const auto& k, const auto& v, const CausalForm& form) {
         return ops::own_causal_attention(q, k.roll(1, 1), v.roll(1, 1), form);
       };
     },
     "transformer.h.0.attn/attention.0"},
    {"bias left out",
     [](Gpt2Ops& ops) {
       ops.linear = [](const auto& x, const auto& w, const auto& b) { return at::addmm(b * 0, x, w); };
     },
     "transformer.h.0.attn.c_attn"},
};

}  // namespace

TEST_CASE("gpt2: green on transformers' recordings with LibTorch's kernels and with our own") {
  for (const char* dump : kGpt2Dumps)
    for (const auto kernels : {Kernels::aten, Kernels::own}) {
      CAPTURE(dump);
      CAPTURE((kernels == Kernels::own));
      const Report report = gpt2_report(gpt2_ops(kernels), dump, {"fp64", "fp32", "bf16"}, kernels);
      CHECK(overall(report) == Verdict::pass);
      int optimised = 0;
      for (const OpResult& row : report.ops) {
        CAPTURE(row.path);
        CAPTURE(row.dtype);
        CHECK_MESSAGE(row.verdict == Verdict::pass, row.diagnosis);
        if (row.logic.rel_l2) CHECK(*row.logic.rel_l2 <= 1e-12);
        optimised += row.path.starts_with("optimised/");
      }
      CHECK(report.ops.size() > 80);
      CHECK(optimised >= 2 * 7);  // a row a position and dtype
    }
}

TEST_CASE("gpt2: each seeded fault turns the run red and is found where it is made") {
  check_found_where_made<Gpt2Ops>(
      kGpt2Faults, kGpt2Dumps,
      [](const Gpt2Ops& ops, const auto& dump, const auto& dtypes) { return gpt2_report(ops, dump, dtypes); });
}

TEST_CASE("gpt2: INT8 weights cut off instead of rounded are more than their own step off") {
  const Dump dump(reference_dump("transformers-gpt2.fp32.h5"));
  const auto weight = dump.weight("transformer.h.0.mlp.c_fc.weight").t().contiguous();
  const auto right = ops::quantise_rows(weight);
  const auto steps = weight / right.scale.unsqueeze(1);
  CHECK((right.values - steps).abs().max().item<double>() <= 0.5 + 1e-5);
  const auto x = at::ones({1, weight.size(1)});
  const Int8Weight cut{steps.trunc().to(at::kChar), right.scale};
  const auto expected = std::sqrt(static_cast<double>(weight.size(1)) / 12) * right.scale;
  const auto error_of = [&](const Int8Weight& w) {
    return ((ops::own_linear(x, w, {}) - at::linear(x, weight))[0] / expected).square().mean().sqrt().item<double>();
  };
  CHECK(error_of(right) == doctest::Approx(1).epsilon(0.25));
  CHECK(error_of(cut) > 1.6);
}

TEST_CASE("gpt2: configurations that are not written here are refused by name") {
  const nlohmann::json good = {
      {"vocab_size", 50257}, {"n_positions", 1024}, {"n_embd", 768}, {"n_layer", 12}, {"n_head", 12}};
  int64_t elements = 0;
  for (const auto& [name, shape] : gpt2_parameters(gpt2_config(good))) elements += c10::multiply_integers(shape);
  CHECK(elements == 124439808);  // "gpt2" of transformers, num_parameters()
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    auto bad = good;
    bad[key] = value;
    CHECK_THROWS_WITH_AS(gpt2_config(bad), doctest::Contains(key), Error);
  };
  refused("n_embd", 770), refused("n_head", 0), refused("activation_function", "relu");
  refused("scale_attn_by_inverse_layer_idx", true), refused("vocab_size", "many");
  CHECK_THROWS_AS(gpt2_config(nlohmann::json()), Error);
}

TEST_CASE("gpt2: run selects the model and its variant") {
  const Scratch scratch;
  const std::string out = (scratch / "out").string();
  const auto own = parity_check("--layer all --model gpt2 --variant own --out " + out);
  INFO(own.out << own.err);
  CHECK(own.status == 0);
  const auto report = nlohmann::json::parse(read_text(scratch / "out" / "report.json"));
  CHECK(report["candidate"]["details"]["variant"] == "own");
  const auto by_libtorch = parity_check("--layer lm_head --model gpt2 --variant aten --out " + out);
  CHECK(by_libtorch.status == 0);
  const auto other = nlohmann::json::parse(read_text(scratch / "out" / "report.json"));
  CHECK(other["candidate"]["details"]["variant"] == "aten");
  CHECK(other["ops"][0]["rerun"].get<std::string>().find(" --variant aten") != std::string::npos);
}
