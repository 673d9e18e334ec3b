// The table of machines and settings, and which files the sides are.
#include "report/environment.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "report/sink.hpp"
#include "report_golden.hpp"
#include "report_sample.hpp"

using namespace parity;

namespace {

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

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
  CHECK(says(text, "| ⚠️ kernels for | AVX512 | AVX2 |"));
  CHECK(says(text, "Known of the reference alone: TF32 cudnn on, matmul off; seed 7."));
  CHECK(text.find("## Environment") < text.find("## Results"));
  const std::string screen = console_summary(r, false);
  CHECK(screen.find("\ndiffers    kernels for AVX512 (reference), AVX2 (candidate)\n") < screen.find("recording"));
  write_junit(r, folder / "junit.xml");
  CHECK(says(test::read(folder / "junit.xml"), "name=\"differs\" value=\"kernels for AVX512 (reference), AVX2"));
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
  CHECK(says(text, "device cuda:0 (reference), cpu (candidate, judged here)"));
  CHECK(says(text, "TF32 cudnn on, matmul on (reference), cudnn off, matmul off (judged here)"));
  CHECK_FALSE(says(text, "attention backends"));  // the candidate's chose nothing on its CPU
  CHECK_FALSE(says(text, "cuDNN"));               // a CPU has no version to differ from
  const auto folder = test::scratch_folder("environment_of_a_gpu");
  write_markdown(r, folder);
  const std::string page = test::read(folder / "report.md");
  CHECK(says(page, "| ⚠️ TF32 | cudnn on, matmul on |  | cudnn off, matmul off |"));
  CHECK(says(page, "NVIDIA H100"));
  // Both on GPUs, judged on one: what its switches are follows the recording.
  r.candidate.details = {{"device", "cuda:1"},
                         {"device_name", "NVIDIA H100"},
                         {"tf32", {{"matmul", false}, {"cudnn", true}}},
                         {"cudnn", switches}};
  r.candidate.details["cudnn"]["version"] = 90800;
  r.machine["device"] = "cuda:0";
  r.machine["cudnn"] = "91002";
  const std::string gpus = differing_text(environment(r));
  CHECK(says(gpus, "TF32 cudnn on, matmul on (reference), cudnn on, matmul off (candidate)"));
  CHECK(says(gpus, "cuDNN 91002 (reference, judged here), 90800 (candidate)"));
  CHECK(says(gpus, "device cuda:0 (reference, judged here), cuda:1 (candidate)"));
  r.reference.details = r.candidate.details = {{"device", "cpu"}, {"tf32", {{"matmul", false}, {"cudnn", true}}}};
  r.machine.erase("device");
  CHECK_FALSE(says(differing_text(environment(r)), "TF32"));  // on CPUs it is no reason for anything
  CHECK_FALSE(says(differing_text(environment(r)), "device"));
}

TEST_CASE("report: on a CPU JAX's default precision is PyTorch's highest") {
  Report r = test::sample_report();
  r.candidate.path = "cand.h5";
  r.reference.details = {{"device", "cpu"}, {"matmul_precision", "highest"}};
  r.candidate.details = {{"device", "cpu"}, {"matmul_precision", "default"}};
  CHECK_FALSE(says(differing_text(environment(r)), "matmul precision"));
  r.candidate.details["device"] = "gpu";  // where it is TF32
  CHECK(says(differing_text(environment(r)), "matmul precision highest (reference), default (candidate)"));
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
