#include "report_sample.hpp"

#include <fmt/format.h>

#include <cmath>

namespace parity::test {
namespace {

Stats stats(double rel_l2, double equal_share, double max_ulp) {
  Stats s;
  s.count = 768;
  s.max_abs = 4 * rel_l2;
  s.mean_abs = .5 * rel_l2;
  s.rmse = .75 * rel_l2;
  s.rel_l2 = rel_l2;
  s.normalized_max = 5 * rel_l2;
  s.cosine = 1 - rel_l2 * rel_l2 / 2;
  s.p95_abs = 1.5 * rel_l2;
  s.p99_abs = 2 * rel_l2;
  s.max_ulp = max_ulp;
  s.bitwise_equal_share = equal_share;
  s.gain = 0;
  s.worst_index = {0, 3, 17};
  s.worst_reference = 1.25;
  s.worst_candidate = 1.25 + 4 * rel_l2;
  s.reference_norm = 20;
  s.difference_norm = 20 * rel_l2;
  return s;
}

OpResult row(int64_t index, std::string path, std::string kind, std::string dtype) {
  OpResult op;
  op.index = index;
  op.path = path;
  op.candidate_path = path;
  op.kind = std::move(kind);
  op.dtype = op.tensor_dtype = std::move(dtype);
  op.shape = {1, 12, 64};
  op.verdict = Verdict::pass;
  op.rerun = fmt::format("parity-check run --layer '{}' --dtype {}", path, op.dtype);
  op.logic = {3.2e-16, 1e-12, Verdict::pass};
  op.amplification = 1.25;
  return op;
}

OpResult passing(int64_t index, std::string path, std::string kind, std::string dtype) {
  OpResult op = row(index, std::move(path), std::move(kind), std::move(dtype));
  op.forced = stats(0, 1, 0);
  op.free = stats(1e-3 * static_cast<double>(index), .8, 3);
  op.oracle = OracleStats{1, 1, 1.7e-3, 1.7e-3};
  op.limits = {{"bitwise_equal_share", 1, true, "table: elementwise ops are bitwise equal"}};
  op.predicted_free = 2e-3;
  return op;
}

// A cast placed otherwise and another formula.
std::vector<OpResult> failures(std::string_view block, bool hostile) {
  OpResult cast = passing(2, fmt::format("{}.attn2", block), "attention", "bf16");
  cast.candidate_path = "blocks.0.cross_attention";
  cast.verdict = Verdict::fail;
  cast.gate = Gate::dtype_path;
  cast.forced = stats(2.4e-3, .41, 9);
  cast.oracle = OracleStats{1.57, .03, 1.7e-3, 2.7e-3};
  cast.limits = {{"bitwise_equal_share", .98, true, "table, attention: same LibTorch's fused kernel"}};
  cast.diagnosis =
      hostile
          ? "]]></failure><script>alert(1)</script> | *bold* #1 @nobody https://example.org"
          : "59 % of elements differ bitwise (allowed 2 %); the fp64 logic agrees: a rounding is placed differently";

  OpResult logic = passing(3, "blocks.0.ffn.net.0", "gelu", "bf16");
  logic.verdict = Verdict::fail;
  logic.gate = Gate::logic;
  logic.logic = {2e-3, 1e-12, Verdict::fail};
  logic.forced = stats(2.1e-3, .6, 30);
  logic.diagnosis = "in fp64 the formula differs";
  return {cast, logic};
}

// What is neither pass nor fail, and a shape.
std::vector<OpResult> undecided() {
  OpResult drift = passing(4, "blocks.1.ffn", "linear", "bf16");
  drift.verdict = Verdict::inconclusive;
  drift.gate = Gate::propagation;
  drift.free = stats(.05, .2, 100);
  drift.diagnosis = "free-running error exceeds its prediction";

  OpResult missing = row(5, "blocks.1.norm2", "layer_norm", "bf16");
  missing.verdict = Verdict::missing;
  missing.candidate_path = "";
  missing.logic = {};
  missing.amplification.reset();
  missing.diagnosis = "the candidate has no counterpart";

  OpResult shape = row(6, "proj_out", "linear", "bf16");
  shape.verdict = Verdict::shape;
  shape.gate = Gate::structure;
  shape.logic = {};
  shape.diagnosis = "shape differs: reference [1, 12, 64], candidate [1, 64, 12]";

  OpResult constant = passing(7, "", "unpatchify", "bf16");
  constant.verdict = Verdict::untrusted;
  constant.limits.clear();
  constant.diagnosis = "the reference is constant: nothing was exercised";
  return {drift, missing, shape, constant};
}

}  // namespace

Report sample_report(bool hostile) {
  Report r;
  r.command = "parity-check run --layer all";
  r.date = "2026-01-02T03:04:05Z";
  r.seconds = 1.5;
  r.machine = {{"cpu", "Example CPU"}, {"cpu_capability", "AVX2"}, {"threads", 2}, {"libtorch", "2.13.0"}};
  r.reference = {"reference_dumps/sample.h5",
                 std::string(64, 'a'),
                 "SampleModel",
                 "parity_probe 0.1.0, torch 2.13.0",
                 {{"seed", 1}}};
  r.candidate = {"", "", "wan", "parity-check 0.1.0", nlohmann::json::object()};
  const std::string_view block = hostile ? "blocks.0|<img src=x>\n`@everyone`\x1b[31m\xff" : "blocks.0";

  r.ops.push_back(passing(0, "patch_embedding", "conv", "bf16"));
  r.ops.push_back(passing(1, fmt::format("{}.norm1", block), "layer_norm", "bf16"));
  for (OpResult& op : failures(block, hostile)) r.ops.push_back(std::move(op));
  for (OpResult& op : undecided()) r.ops.push_back(std::move(op));
  r.coverage[""] = {7, 3, 1, 0, {"blocks.1.norm2"}, {}, {"extra"}, {}};
  r.coverage[""].variants = {{"blocks.0", "blocks.1.norm2", 120, 90, 8, 22, "budget of work"}};
  r.warnings = {"recorded on another CPU: bitwise equality is judged against a replay here"};
  return r;
}

Report large_report() {
  Report r = sample_report();
  r.ops.clear();
  const std::vector<std::pair<std::string, std::string>> block{
      {"norm1", "layer_norm"}, {"attn1.to_q", "linear"}, {"attn1.norm_q", "rms_norm"}, {"attn1.rope", "rope"},
      {"attn1", "attention"},  {"norm2", "layer_norm"},  {"attn2", "attention"},       {"norm3", "layer_norm"},
      {"ffn.net.0", "gelu"},   {"ffn", "linear"}};
  const std::vector<std::pair<std::string, double>> runs{{"fp64", 0x1p-53}, {"fp32", 0x1p-24}, {"bf16", 0x1p-8}};
  for (const auto& [dtype, unit] : runs)
    for (int i = 0; i < 300; ++i) {
      const auto& [name, kind] = block[static_cast<size_t>(i % 10)];
      OpResult op = passing(i, fmt::format("blocks.{}.{}", i / 10, name), kind, dtype);
      const double wave = 1 + .5 * std::sin(i * 12.9898),
                   own = kind == "linear" || kind == "attention" ? .02 * unit * wave : 0;
      const bool carried = dtype != "fp64" || i > 20;
      op.forced = stats(own, own == 0 ? 1 : .9995, own == 0 ? 0 : 1);
      op.free = stats(carried ? .4 * unit * wave * std::sqrt(1 + i) : 0, .6, 3);
      op.predicted_free = .5 * unit * std::sqrt(1 + i);
      if (dtype == "bf16" && i == 126) {
        op.verdict = Verdict::fail;
        op.gate = Gate::dtype_path;
        op.forced = stats(2.4e-3, .41, 9);
        op.diagnosis =
            "59 % of elements differ bitwise (allowed 2 %); the fp64 logic agrees: a rounding is placed differently";
      }
      r.ops.push_back(op);
    }
  r.coverage[""] = {300, 41, 0, 0, {}, {}, {}, {}};
  r.warnings.clear();
  return r;
}

}  // namespace parity::test
