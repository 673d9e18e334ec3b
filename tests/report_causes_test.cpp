// Rows by cause, the matrix: what the first screens of a report are made of.
#include "report/causes.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

#include "report/condensed.hpp"
#include "report/limit_use.hpp"
#include "report/matrix.hpp"
#include "report/sink.hpp"
#include "report_golden.hpp"
#include "report_sample.hpp"

using namespace parity;

namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

OpResult red(const std::string& path, const std::string& kind, const std::string& fault, const std::string& what,
             const std::string& place) {
  OpResult op;
  op.path = path;
  op.kind = kind;
  op.dtype = "bf16";
  op.verdict = Verdict::fail;
  op.gate = Gate::dtype_path;
  op.explanations = {{"gain", "all values scaled", "", Gate::logic}, {fault, what, place, Gate::dtype_path}};
  op.diagnosis = fault + " (" + op.explanations.back().change.detail() +
                 "; explains 100 % of the difference): 31 % of elements differ";
  return op;
}

/// A port in bf16: 26 linears with the product rounded before the bias, four norms in another dtype, two unnamed rows.
Report port() {
  Report r;
  for (int i = 0; i < 26; ++i) {
    const std::string path = fmt::format("blocks.{}.to_q", i);
    r.ops.push_back(red(path, "linear", "extra rounding", "the product before the bias", path + "/addmm.0"));
    r.ops.back().index = 10 + i;
    r.ops.back().source = fmt::format("modeling_llama.py:{} in forward", 312 + i);
    r.ops.back().candidate_source = "attention.cpp:88";
  }
  for (int i = 0; i < 4; ++i) {
    const std::string path = fmt::format("blocks.{}.norm1", i);
    r.ops.push_back(red(path, "layer_norm", "extra rounding", "mul and add kept wide", path + " and 3 more places"));
    r.ops.back().index = 100 + i;
  }
  for (int i = 0; i < 2; ++i) {
    OpResult op = red(fmt::format("head.{}", i), "linear", "x", "y", "z");
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
    r.ops.push_back(red(fmt::format("h.{}.attn", r.ops.size()), "attention", "RoPE theta", "base differs", ""));
    r.ops.back().explanations.back().explained = explained;
  }
  const std::string name = "gate dtype_path, attention: RoPE theta: base differs";
  CHECK(cause_title(causes(r).front()) == "2 rows, " + name + " (explains at most 62 % of the difference)");
  r.ops.pop_back();
  CHECK(cause_title(causes(r).front()) == "1 row, " + name + " (explains 46 % of the difference)");
  r.ops.back().explanations.back().explained = .97;
  CHECK(cause_title(causes(r).front()) == "1 row, " + name);
}

TEST_CASE("causes: what has no more than the size of a cast is not called one") {
  Report r;
  r.ops.push_back(red("latents", "elementwise", "fast math: exp", "exp in fp16", "/exp.0"));
  r.ops.back().diagnosis =
      "fast math: exp by its size (exp in fp16 at /exp.0 would change as much, .002, though not "
      "these elements): on the candidate's own inputs its error is .002";
  CHECK(cause_title(causes(r).front()) ==
        "1 row, gate dtype_path, elementwise: as large as a cast makes it, though not at these elements: no known "
        "change explains it");
}

TEST_CASE("causes: a sentence that begins with its number has a title of words") {
  Report r;
  r.ops.push_back(red("blocks.0", "copy", "x", "y", "z"));
  r.ops.back().explanations.clear();
  const auto title_of = [&](const char* diagnosis) {
    r.ops.back().diagnosis = diagnosis;
    return cause_name(r.ops.back());
  };
  CHECK(title_of("12.5 % of elements differ where values are only moved") == "values differ where they are only moved");
  CHECK(title_of("3 rows hold other integers, where all valid arithmetics agree (2 % of elements differ)") ==
        "other integers, where all valid arithmetics agree");
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
