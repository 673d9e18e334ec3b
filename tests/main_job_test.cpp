// The main job on the embedded recordings: green on the right model, red and at the right op for each seeded fault.
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "model_report.hpp"
#include "models/wan/ported.hpp"
#include "test_places.hpp"

using namespace parity;
using namespace parity::test;

namespace {

Report run_with(const WanOps& ops, const std::string& dump, const std::vector<std::string>& dtypes,
                Kernels kernels = Kernels::aten) {
  const auto make = [&](const Dump& d, Precision precision) { return port_wan(d, precision, ops); };
  return model_report(make, dump, dtypes, kernels);
}

// A one-line fault in the C++ model, where it must be found, and how.
struct SeededFault {
  const char* name;
  void (*put_in)(WanOps& ops);
  const char* dump;
  const char* first_path;  // candidate path of the first divergence
  Gate gate;
};

const SeededFault kFaults[] = {
    {"LayerNorm eps 1e-5 for 1e-6",
     [](WanOps& ops) {
       ops.layer_norm = [](const auto& x, const auto& w, const auto& b, double, auto compute, auto out) {
         return ops::layer_norm(x, w, b, 1e-5, compute, out);
       };
     },
     "skyreels-v2-t2v.bf16.h5", "blocks.0.norm1", Gate::logic},
    {"GELU erf for tanh",
     [](WanOps& ops) { ops.gelu = [](at::Tensor x, GeluForm) { return ops::gelu(std::move(x), GeluForm::erf); }; },
     "skyreels-v2-t2v.bf16.h5", "text_embedding.1", Gate::logic},
    {"shift and scale swapped",
     [](WanOps& ops) {
       ops.modulate = [](at::Tensor x, const auto& scale, const auto& shift, Precision p) {
         return ops::mul_add_add(std::move(x), shift, scale, p);
       };
     },
     "diffusers-wan-t2v.bf16.h5", "blocks.0/mul_add_add.0", Gate::logic},
    {"RoPE axes height and width swapped",
     [](WanOps& ops) {
       ops.rope_turn = [](const RopeTable& table, const Grid& grid) {
         return ops::rope_turn(table, Grid{grid[0], grid[2], grid[1]});
       };
     },
     "wan-t2v.bf16.h5", "blocks.0.self_attn/rope.0", Gate::logic},
    {"cross-attention input not cast to the context's dtype",
     [](WanOps& ops) {
       ops.cast = [](WanCast which, const at::Tensor& x, at::ScalarType to) {
         return which == WanCast::norm3_in ? x : x.to(to);
       };
     },
     "skyreels-v2-t2v.bf16.h5", "blocks.0/cast.2", Gate::dtype_path},
    {"modulation in bf16",
     [](WanOps& ops) {
       ops.modulation = [](const at::Tensor& table, const at::Tensor& e, int64_t axis) {
         const at::Tensor m = ops::modulation(table, e, axis);
         return m.scalar_type() == at::kFloat ? m.to(at::kBFloat16).to(at::kFloat) : m;
       };
     },
     "skyreels-v2-i2v.bf16.h5", "blocks.0/modulation", Gate::dtype_path},
    {"one image token too few",
     [](WanOps& ops) {
       ops.image_tokens = [right = ops.image_tokens](int64_t tokens, const WanConfig& c) {
         return right(tokens, c) - 1;
       };
     },
     "skyreels-v2-i2v.bf16.h5", "blocks.0.cross_attn.k", Gate::structure},
    {"gate missing",
     [](WanOps& ops) {
       ops.gate = [](const at::Tensor& x, at::Tensor y, const at::Tensor&, Precision) { return x + y; };
     },
     "skyreels-v2-df.bf16.h5", "blocks.0/mul_add.0", Gate::logic},
};

}  // namespace

TEST_CASE("main job: the right model passes, every row with a limit") {
  const Report report = run_with(WanOps{}, "skyreels-v2-i2v.bf16.h5", {"fp64", "fp32", "bf16"});
  CHECK(overall(report) == Verdict::pass);
  for (const OpResult& row : report.ops) {
    CAPTURE(row.path);
    CHECK(row.verdict == Verdict::pass);
    CHECK((row.dtype == "fp64" || !row.limits.empty()));
    CHECK(row.logic.rel_l2.value() <= 1e-12);
  }
}

// tests/data/record.py, sampling: latents and text are cast, and the sampler steps, in recorded ops outside of the
// model.
TEST_CASE("main job: arguments made inside the recording are the port's inputs under every precision") {
  const Dump dump(std::filesystem::path(PARITY_SOURCE_DIR) / "tests/data/sampling.h5");
  at::set_num_threads(dump.provenance().value("threads", 1));
  const auto result = run_main_job(
      dump, load_program(dump), [](const Dump& d, Precision p) { return port_wan(d, p); }, MainJobOptions{});
  int second_calls = 0;
  for (const OpResult& row : result.rows) {
    CAPTURE(row.path);
    CAPTURE(row.dtype);
    CHECK_MESSAGE(row.verdict == Verdict::pass, row.diagnosis);
    second_calls += row.call == 1;
  }
  CHECK(second_calls > 100);
}

TEST_CASE("main job: each seeded fault turns the run red and is the first divergence") {
  for (const SeededFault& fault : kFaults) {
    CAPTURE(fault.name);
    WanOps ops;
    fault.put_in(ops);
    const Report report = run_with(ops, fault.dump, {"fp64", "bf16"});
    CHECK(exit_status(report) == 1);
    const OpResult* first = first_divergence(report);
    REQUIRE(first != nullptr);
    CHECK(first->candidate_path == fault.first_path);
    CHECK(gate_name(first->gate) == gate_name(fault.gate));
    CHECK_FALSE(first->diagnosis.empty());
  }
}

TEST_CASE("main job: on kernels of our own the right model passes, and each seeded fault is the first divergence") {
  const Report right =
      run_with(wan_ops(Kernels::own), "skyreels-v2-i2v.bf16.h5", {"fp64", "fp32", "bf16"}, Kernels::own);
  CHECK(overall(right) == Verdict::pass);
  const bool differ = std::any_of(right.ops.begin(), right.ops.end(), [](const OpResult& row) {
    return row.dtype == "fp64" && row.logic.rel_l2.value_or(0) > 0;
  });
  CHECK(differ);  // two codes, not one with itself
  for (const SeededFault& fault : kFaults) {
    CAPTURE(fault.name);
    WanOps ops = wan_ops(Kernels::own);
    fault.put_in(ops);
    const Report report = run_with(ops, fault.dump, {"fp64", "bf16"}, Kernels::own);
    const OpResult* first = first_divergence(report);
    REQUIRE(first != nullptr);
    CHECK(first->candidate_path == fault.first_path);
  }
}

TEST_CASE("main job: a convolution of our own that rounds its input is red") {
  WanOps ops = wan_ops(Kernels::own);
  ops.patch_embedding = [](const auto& x, const auto& weight, const auto& bias) {
    return ops::own_patch_embedding(x.to(at::kHalf).to(x.scalar_type()), weight, bias);
  };
  const Report report = run_with(ops, "skyreels-v2-t2v.fp32.h5", {"fp32"}, Kernels::own);
  const OpResult* first = first_divergence(report);
  REQUIRE(first != nullptr);
  CHECK(first->candidate_path == "patch_embedding");
}

TEST_CASE("main job: LayerNorm eps is found on whatever kernels this process runs") {  // scripts/any_cpu, ctest
  WanOps ops;
  kFaults[0].put_in(ops);
  for (const char* dump : {"skyreels-v2-t2v.bf16.h5", "diffusers-skyreels-v2-i2v.fp32.h5"}) {
    const Report report = run_with(ops, dump, {"fp64", "fp32", "bf16"});
    CHECK(exit_status(report) == 1);
    const OpResult* first = first_divergence(report);
    REQUIRE(first != nullptr);
    // The image embedding's norms come before the blocks; their eps is 1e-5 in truth.
    CHECK(first->candidate_path == "blocks.0.norm1");
    CHECK(first->kind == "layer_norm");
    for (const OpResult& row : report.ops)
      if (row.kind != "layer_norm")
        CHECK_MESSAGE(row.verdict == Verdict::pass, row.candidate_path << ": " << row.diagnosis);
  }
}

TEST_CASE("main job: a fault stays where it is made: teacher-forced, the ops after it are green") {
  WanOps ops;
  ops.modulation = [](const at::Tensor& table, const at::Tensor& e, int64_t axis) {
    return ops::modulation(table, e, axis) * (1 + 1e-4);
  };
  const Report report = run_with(ops, "wan-t2v.bf16.h5", {"fp64"});
  for (const OpResult& row : report.ops) {
    CAPTURE(row.candidate_path);
    const bool faulty = row.candidate_path.ends_with("/modulation");
    CHECK((row.verdict == Verdict::fail) == faulty);
    // Free-running, the error is everywhere behind it.
    if (row.candidate_path == "blocks.1.ffn.2") CHECK(row.free->rel_l2.value() > 1e-6);
  }
}

TEST_CASE("main job: NaN in the port fails at the op that makes it") {
  WanOps ops;
  ops.silu = [](const at::Tensor& x) {
    at::Tensor y = ops::silu(x).clone();
    y.view(-1)[3] = NAN;
    return y;
  };
  const Report report = run_with(ops, "diffusers-wan-t2v.bf16.h5", {"bf16"});
  const OpResult* first = first_divergence(report);
  REQUIRE(first != nullptr);
  CHECK(first->candidate_path == "time_embedding.1");
  CHECK(first->forced->nan_candidate == 1);
}

TEST_CASE("main job: on other kernels than the recording's the measured null decides, and faults are still found") {
  const Scratch scratch;
  const std::string lowered = "ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2";
  const auto result =
      parity_check("--layer all --model skyreels-v2-t2v.bf16 --out " + (scratch / "out").string(), lowered);
  INFO(result.out << result.err);
  CHECK(result.status == 0);
  const auto ops = nlohmann::json::parse(read_text(scratch / "out" / "report.json"))["ops"];
  int by_null = 0, moved = 0;
  for (const auto& op : ops) {
    for (const auto& limit : op["limits"]) by_null += limit["origin"].get<std::string>().starts_with("null:");
    if (!op["forced"].is_null() && op["dtype"] == "bf16")
      moved += op["forced"]["bitwise_equal_share"].get<double>() < 1;
  }
  CHECK(moved > 0);    // these kernels do round elsewhere: the path was exercised
  CHECK(by_null > 0);  // and its limits come from the null
}
