// Rows by cause, the matrix, the environment: what the first screens of a report are made of.
#include "report/causes.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

#include "report/condensed.hpp"
#include "report/environment.hpp"
#include "report/limit_use.hpp"
#include "report/matrix.hpp"
#include "report/sink.hpp"
#include "report_golden.hpp"
#include "report_sample.hpp"

using namespace parity;

namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

OpResult red(const std::string& path, const std::string& kind, const std::string& fault, const std::string& detail) {
  OpResult op;
  op.path = path;
  op.kind = kind;
  op.dtype = "bf16";
  op.verdict = Verdict::fail;
  op.gate = Gate::dtype_path;
  op.explanations = {{"gain", "all values scaled", Gate::logic}, {fault, detail, Gate::dtype_path}};
  op.diagnosis = fault + " (" + detail + "; explains 100 % of the difference): 31 % of elements differ";
  return op;
}

/// A port in bf16: 26 linears with the product rounded before the bias, four norms in another dtype, two unnamed rows.
Report port() {
  Report r;
  for (int i = 0; i < 26; ++i) {
    const std::string path = fmt::format("blocks.{}.to_q", i);
    r.ops.push_back(red(path, "linear", "extra rounding", "the product before the bias at " + path + "/addmm.0"));
    r.ops.back().index = 10 + i;
    r.ops.back().source = fmt::format("modeling_llama.py:{} in forward", 312 + i);
    r.ops.back().candidate_source = "attention.cpp:88";
  }
  for (int i = 0; i < 4; ++i) {
    const std::string path = fmt::format("blocks.{}.norm1", i);
    r.ops.push_back(
        red(path, "layer_norm", "extra rounding", "mul and add kept wide at " + path + " and 3 more places"));
    r.ops.back().index = 100 + i;
  }
  for (int i = 0; i < 2; ++i) {
    OpResult op = red(fmt::format("head.{}", i), "linear", "x", "y");
    op.explanations.clear();
    op.diagnosis = fmt::format("{} of 12{} values are odd (limit [{}, 3])", i + 7, i, i);
    op.index = i;
    r.ops.push_back(op);
  }
  return r;
}

}  // namespace

TEST_CASE("report: fifty red rows are as many findings as they have causes") {
  const Report r = port();
  const std::vector<Cause> found = causes(r);
  REQUIRE(found.size() == 3);
  CHECK(found[0].rows.size() == 2);  // that of the first divergence leads
  CHECK(found[0].name == "… of … values are odd …");
  CHECK(found[1].name == "extra rounding: the product before the bias");
  CHECK(found[1].rows.size() == 26);
  CHECK(cause_title(found[1]) == "26 rows, gate dtype_path, linear: extra rounding: the product before the bias");
  CHECK(found[2].name == "extra rounding: mul and add kept wide");
  CHECK(source_text(*found[1].rows[0]) == "reference modeling_llama.py:312 in forward · port attention.cpp:88");
  CHECK(source_text(*found[2].rows[0]) == "");

  const nlohmann::json j = to_json(r)["findings"];
  REQUIRE(j.size() == 3);
  CHECK(j[1]["rows"] == 26);
  CHECK(j[1]["paths"].size() == 20);
  CHECK(j[1]["first"] == "blocks.0.to_q");
  CHECK(j[1]["source"] == "modeling_llama.py:312 in forward");
  const auto folder = test::scratch_folder("causes");
  write_markdown(r, folder);
  const std::string text = test::read(folder / "report.md");
  CHECK(holds(text, "32 rows are not green, by 3 causes."));
  CHECK(holds(text, "reference modeling_llama.py:312 in forward · port attention.cpp:88"));
  CHECK(holds(text, "`blocks.5.to_q` (bf16) and 20 more"));
  CHECK(text.size() < 8000);
  CHECK(holds(test::read(folder / "recordings" / "recording.md"), "`blocks.25.to_q`, gate dtype"));
}

TEST_CASE("causes: a name that leaves much unexplained has its share in the title") {
  Report r;
  for (const double explained : {.46, .617}) {
    r.ops.push_back(red(fmt::format("h.{}.attn", r.ops.size()), "attention", "RoPE theta", "base differs"));
    r.ops.back().explanations.back().explained = explained;
  }
  const std::string name = "gate dtype_path, attention: RoPE theta: base differs";
  CHECK(cause_title(causes(r).front()) == "2 rows, " + name + " (explains at most 62 % of the difference)");
  r.ops.pop_back();
  CHECK(cause_title(causes(r).front()) == "1 row, " + name + " (explains 46 % of the difference)");
  r.ops.back().explanations.back().explained = .97;
  CHECK(cause_title(causes(r).front()) == "1 row, " + name);
}

TEST_CASE("report: verdict and gate tell causes apart, the kind only where something failed") {
  Report r = port();
  r.ops[1].gate = Gate::logic;
  r.ops[2].verdict = Verdict::inconclusive;
  r.ops[27].verdict = r.ops[26].verdict = Verdict::missing;
  r.ops[27].diagnosis = r.ops[26].diagnosis = "the candidate has no counterpart";
  r.ops[27].kind = "rope";
  const std::vector<Cause> found = causes(r);
  REQUIRE(found.size() == 6);
  CHECK(found.back().rows.size() == 1);
  CHECK(std::count_if(found.begin(), found.end(), [](const Cause& c) {
          return c.verdict == Verdict::missing && c.kind.empty() && c.rows.size() == 2;
        }) == 1);
}

TEST_CASE("report: how much of its limits a row uses") {
  OpResult op;
  op.forced.emplace();
  op.forced->bitwise_equal_share = .9;
  op.forced->rel_l2 = 1e-3;
  CHECK_FALSE(share_of_limits(op));
  op.limits = {{"rel_l2", 4e-3, false, ""}};
  CHECK(*share_of_limits(op) == doctest::Approx(.25));
  op.limits.push_back({"bitwise_equal_share", .8, true, ""});
  CHECK(*share_of_limits(op) == doctest::Approx(.5));
  CHECK(broken_limit_lines(op).empty());
  op.limits.push_back({"gain", 1e-9, false, "", 1.});  // decides only with its significance
  CHECK(*share_of_limits(op) == doctest::Approx(.5));
  op.limits.push_back({"bitwise_equal_share", 1, true, ""});
  CHECK(*share_of_limits(op) == std::numeric_limits<double>::infinity());
  CHECK(broken_limit_lines(op).size() == 1);
  op.forced->bitwise_equal_share = 1;
  op.forced->rel_l2 = 0;
  CHECK(*share_of_limits(op) == 0);
  op.verdict = Verdict::pass;
  op.declared = "folded*";
  CHECK_FALSE(share_of_limits(op));  // it is beyond them, and they do not decide
}

TEST_CASE("report: the matrix has a line for every recording and dtype, and says which op is worst") {
  const Report r = test::large_report();
  const std::vector<Cell> cells = matrix(r);
  REQUIRE(cells.size() == 3);
  CHECK(cells[2].dtype == "bf16");
  CHECK(cells[2].recording == "sample");
  CHECK(cells[2].worst->path == "blocks.12.attn2");  // fails: worse than any that uses more of a limit
  CHECK(cells[2].free_output == r.ops.back().free->rel_l2);
  CHECK(cells[0].equal_share > .99);
  const std::vector<Cell> merged = matrix_by_recording(r);
  REQUIRE(merged.size() == 1);
  CHECK(merged[0].dtype == "fp64 fp32 bf16");
  CHECK(merged[0].count == 900);
  CHECK(merged[0].worst == cells[2].worst);
  CHECK(matrix(Report()).empty());
}

TEST_CASE("report: what differs between the machines is marked, before any number") {
  Report r = test::sample_report();
  r.reference.details = {{"cpu", "Example CPU"},
                         {"cpu_capability", "AVX512"},
                         {"torch", "2.13.0+cpu"},
                         {"threads", 2},
                         {"cpu_flags", {"avx2", "fma"}},
                         {"tf32", {{"matmul", false}, {"cudnn", true}}},
                         {"seed", 7}};
  r.machine["cpu_flags"] = "avx2 avx512ifma";
  const Environment e = environment(r);
  // Not torch's build, not features that one side does not list.
  CHECK(differing_text(e) == "kernels for AVX512 (reference), AVX2 (candidate)");
  CHECK(machine_text(e, 0) == "Example CPU, AVX512, torch 2.13.0+cpu, 2 threads");
  CHECK(e.columns.size() == 2);
  const auto folder = test::scratch_folder("environment");
  write_markdown(r, folder);
  const std::string text = test::read(folder / "report.md");
  CHECK(holds(text, "| ⚠️ kernels for | AVX512 | AVX2 |"));
  CHECK(holds(text, "Known of the reference alone: TF32 cudnn on, matmul off; seed 7."));
  CHECK(text.find("## Environment") < text.find("## Results"));
  const std::string screen = console_summary(r, false);
  CHECK(screen.find("\ndiffers    kernels for AVX512 (reference), AVX2 (candidate)\n") < screen.find("recording"));
  write_junit(r, folder / "junit.xml");
  CHECK(holds(test::read(folder / "junit.xml"), "name=\"differs\" value=\"kernels for AVX512 (reference), AVX2"));
  r.candidate.path = "cand.h5";
  CHECK(environment(r).columns.size() == 3);
  r.candidate.details = {{"cpu_capability", "AVX2"}, {"cpu_flags", {"avx2", "avx512f"}}};
  CHECK(differing_text(environment(r)) ==
        "kernels for AVX512 (reference), AVX2 (candidate, judged here); CPU features none (reference, judged here), "
        "avx512f (candidate)");
  r.candidate.details = {};
  Report several = r;
  several.reference.details = {
      {"dumps", {{{"name", "a"}, {"details", {{"threads", 2}}}}, {{"name", "b"}, {"details", {{"threads", 4}}}}}}};
  CHECK(differing_text(environment(several)) == "threads 2 / 4 (reference), 2 (judged here)");
}

TEST_CASE("report: a recording made on a GPU and judged on a CPU says so, and TF32 with it") {
  Report r = test::sample_report();
  r.candidate.path = "cand.h5";
  const nlohmann::json switches{{"version", 91002}, {"enabled", true}, {"benchmark", false}, {"deterministic", false}};
  r.reference.details = {{"device", "cuda:0"},          {"device_name", "NVIDIA H100"},
                         {"compute_capability", "9.0"}, {"cuda", "13.0"},
                         {"cudnn", switches},           {"sdpa", {{"flash", true}}},
                         {"matmul_precision", "high"},  {"tf32", {{"matmul", true}, {"cudnn", true}}}};
  r.candidate.details = {{"device", "cpu"},
                         {"cudnn", {{"version", nullptr}, {"enabled", true}}},
                         {"matmul_precision", "high"},
                         {"tf32", {{"matmul", false}, {"cudnn", true}}},
                         {"sdpa", {{"flash", false}}}};
  const std::string text = differing_text(environment(r));
  CHECK(holds(text, "device cuda:0 (reference), cpu (candidate, judged here)"));
  CHECK(holds(text, "TF32 cudnn on, matmul on (reference), cudnn off, matmul off (judged here)"));
  CHECK_FALSE(holds(text, "attention backends"));  // the candidate's chose nothing on its CPU
  CHECK_FALSE(holds(text, "cuDNN"));               // a CPU has no version to differ from
  const auto folder = test::scratch_folder("environment_of_a_gpu");
  write_markdown(r, folder);
  const std::string page = test::read(folder / "report.md");
  CHECK(holds(page, "| ⚠️ TF32 | cudnn on, matmul on |  | cudnn off, matmul off |"));
  CHECK(holds(page, "NVIDIA H100"));
  // Both on GPUs, judged on one: what its switches are follows the recording.
  r.candidate.details = {{"device", "cuda:1"},
                         {"device_name", "NVIDIA H100"},
                         {"tf32", {{"matmul", false}, {"cudnn", true}}},
                         {"cudnn", switches}};
  r.candidate.details["cudnn"]["version"] = 90800;
  r.machine["device"] = "cuda:0";
  r.machine["cudnn"] = "91002";
  const std::string gpus = differing_text(environment(r));
  CHECK(holds(gpus, "TF32 cudnn on, matmul on (reference), cudnn on, matmul off (candidate)"));
  CHECK(holds(gpus, "cuDNN 91002 (reference, judged here), 90800 (candidate)"));
  CHECK(holds(gpus, "device cuda:0 (reference, judged here), cuda:1 (candidate)"));
  r.reference.details = r.candidate.details = {{"device", "cpu"}, {"tf32", {{"matmul", false}, {"cudnn", true}}}};
  r.machine.erase("device");
  CHECK_FALSE(holds(differing_text(environment(r)), "TF32"));  // on CPUs it is no reason for anything
  CHECK_FALSE(holds(differing_text(environment(r)), "device"));
}

TEST_CASE("report: on a CPU JAX's default precision is PyTorch's highest") {
  Report r = test::sample_report();
  r.candidate.path = "cand.h5";
  r.reference.details = {{"device", "cpu"}, {"matmul_precision", "highest"}};
  r.candidate.details = {{"device", "cpu"}, {"matmul_precision", "default"}};
  CHECK_FALSE(holds(differing_text(environment(r)), "matmul precision"));
  r.candidate.details["device"] = "gpu";  // where it is TF32
  CHECK(holds(differing_text(environment(r)), "matmul precision highest (reference), default (candidate)"));
}

TEST_CASE("report: which files the sides are, and every other setting they tell") {
  Report r = test::sample_report();
  r.reference.details = {{"code", "diffusers' code"}, {"threads", 2}, {"command", "a"}, {"config", {{"layers", 2}}}};
  r.candidate.path = "cand.h5";
  r.candidate.details = {{"command", "b"}, {"config", {{"layers", 3}}}, {"numpy", "2.0"}};
  const std::vector<EnvironmentRow> sides = identity_rows(r), others = other_settings(r);
  const auto row = [](const std::vector<EnvironmentRow>& rows, const std::string& what) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const EnvironmentRow& e) { return e.what == what; });
    return found == rows.end() ? EnvironmentRow{} : *found;
  };
  CHECK(row(sides, "code").values == std::vector<std::string>{"diffusers' code", "", ""});
  CHECK(row(sides, "file").values[1] == "cand.h5");
  REQUIRE(others.size() == 3);  // threads are a fact of the machine
  CHECK(row(others, "config.layers").differs);
  CHECK(row(others, "config.layers").values == std::vector<std::string>{"2", "3", ""});
  CHECK(!row(others, "command").differs);
  CHECK(!row(others, "numpy").differs);
}

TEST_CASE("report: warnings and lines of many recordings are few") {
  Report r;
  for (int i = 0; i < 16; ++i) {
    const std::string name = fmt::format("dump{}", i);
    r.coverage[name].paired = 10;
    r.coverage[name].granularity = "10 compared points for 80 ops";
    r.coverage[name].variants = {{"a", "b", 100, 0, 90, 10, "budget of work"},
                                 {"c", "d", 10, 0, 5, 5, "budget of work"}};
    r.warnings.push_back(name + ": not fp64 in the oracle: aten::mm");
  }
  CHECK(condensed_warnings(r) == std::vector<std::string>{"dump0 and 15 more: not fp64 in the oracle: aten::mm"});
  const std::vector<std::string> lines = condensed_lines(r);
  REQUIRE(lines.size() == 3);
  CHECK(holds(lines[0], "160 points of the reference compared"));
  CHECK(holds(lines[2], "Named changes in 32 long stretches: 1760 known, 1520 run; 240 not tried: budget of work"));
}

TEST_CASE("report: a large model's files stay below what GitHub shows, and hold every row") {
  Report r = test::large_report();
  const std::vector<OpResult> rows = r.ops;
  for (int copy = 1; copy < 8; ++copy) r.ops.insert(r.ops.end(), rows.begin(), rows.end());
  r.coverage[""].uncovered_paths.assign(3000, "model.layers.17.a.long.module.path");
  const auto folder = test::scratch_folder("large");
  write_markdown(r, folder);
  CHECK(std::filesystem::file_size(folder / "report.md") < 20'000);
  size_t found = 0, files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "recordings")) {
    CHECK(entry.file_size() < 450'000);
    const std::string text = test::read(entry.path());
    for (size_t at = text.find("| `blocks."); at != std::string::npos; at = text.find("| `blocks.", at + 1)) ++found;
    ++files;
  }
  CHECK(found == r.ops.size());
  CHECK(files >= 3);
  CHECK(holds(test::read(folder / "recordings" / "sample.md"), "[Part 2](sample-2.md)"));
}
