// The Markdown report and its plots, and the JUnit file.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>

#include "report/plot.hpp"
#include "report/sink.hpp"
#include "report_golden.hpp"
#include "report_sample.hpp"
#include "test_places.hpp"

using namespace parity;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t times(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

/// Well-formed for somebody else's parser: Python's.
bool parses(const std::filesystem::path& xml_file) {
  const std::string command =
      fmt::format("{} -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' '{}' 2>/dev/null",
                  PARITY_PYTHON, xml_file.string());
  return WEXITSTATUS(std::system(command.c_str())) == 0;
}

bool have_gnuplot() { return WEXITSTATUS(std::system("gnuplot --version >/dev/null 2>&1")) == 0; }

std::string rendered(const Report& report, const char* folder) {
  const auto where = test::scratch_folder(folder);
  write_markdown(report, where);
  return test::read(where / "report.md");
}

std::vector<const OpResult*> rows(const Report& report) {
  std::vector<const OpResult*> out;
  for (const OpResult& op : report.ops) out.push_back(&op);
  return out;
}

}  // namespace

TEST_CASE("report: the JUnit file is what it was, and a foreign parser reads it") {
  const auto folder = test::scratch_folder("junit");
  write_junit(test::sample_report(), folder / "junit.xml");
  test::check_golden("junit.xml", test::read(folder / "junit.xml"));
  CHECK(parses(folder / "junit.xml"));
  write_file(folder / "broken.xml", "<a><b></a>");
  CHECK_FALSE(parses(folder / "broken.xml"));  // the parser does look
}

TEST_CASE("report: JUnit tells failures from what is undecided, and an empty report is not green") {
  const auto folder = test::scratch_folder("junit2");
  write_junit(test::sample_report(), folder / "junit.xml");
  const std::string text = test::read(folder / "junit.xml");
  CHECK(has(text, "failures=\"3\" errors=\"3\""));
  CHECK(times(text, "<failure type=\"fail\"") == 2);
  CHECK(times(text, "<failure type=\"shape\"") == 1);
  for (const char* open : {"inconclusive", "missing", "untrusted"})
    CHECK(times(text, fmt::format("<error type=\"{}\"", open)) == 1);
  write_junit(Report{}, folder / "empty.xml");
  CHECK(has(test::read(folder / "empty.xml"), "errors=\"1\""));
  CHECK(parses(folder / "empty.xml"));
  write_junit(test::sample_report(true), folder / "hostile.xml");
  CHECK(parses(folder / "hostile.xml"));
  CHECK_FALSE(has(test::read(folder / "hostile.xml"), "<script"));
}

TEST_CASE("report: the Markdown report is what it was") {
  if (!have_gnuplot())
    return test::check_golden("report_without_gnuplot.md", rendered(test::sample_report(), "markdown"));
  test::check_golden("report.md", rendered(test::sample_report(), "markdown"));
}

TEST_CASE("report: Markdown starts with the verdict and keeps names from files harmless") {
  const std::string text = rendered(test::sample_report(true), "hostile");
  CHECK(has(text.substr(0, 200), "**FAIL: 3 of 8"));
  for (const char* live : {"<script", "<img", "| *bold*", "\x1b", " @nobody", " #1 ", "https://"})
    CHECK_FALSE(has(text, live));
  for (const auto& line_end : {"\n`@everyone", "\n@everyone"}) CHECK_FALSE(has(text, line_end));
}

TEST_CASE("report: a half-finished report renders") {
  Report half = test::sample_report();
  half.ops.resize(4);
  half.ops[3] = OpResult{};
  half.machine = nullptr;
  half.coverage.clear();
  const std::string text = rendered(half, "half");
  CHECK(has(text, "FAIL: 1 of 4"));
  CHECK(has(text, "⚠️ missing"));
  CHECK(has(rendered(Report{}, "empty"), "INCONCLUSIVE: nothing was compared"));
}

TEST_CASE("report: plots are whole SVG files with a point for every measured op") {
  if (!have_gnuplot()) return;  // the test below covers that case
  const Report report = test::large_report();
  const auto folder = test::scratch_folder("plots");
  const Plots plots = draw_plots(report, folder);
  REQUIRE(plots.problem == "");
  REQUIRE(plots.drawn.size() == 3);
  for (const Plot& plot : plots.drawn) CHECK(parses(folder / plot.file));
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 3);  // no scripts or halves left
  const std::string picture = test::read(folder / plots.drawn[0].file);
  CHECK(has(picture, "teacher-forced"));
  CHECK(has(picture, "blocks.15"));
  CHECK(has(picture, "relative L2"));
}

TEST_CASE("report: without gnuplot there are tables only, and the report says so") {
  const std::string path = std::getenv("PATH") ? std::getenv("PATH") : "";
  ::setenv("PATH", "/nonexistent", 1);
  const std::string text = rendered(test::sample_report(), "no-gnuplot");
  ::setenv("PATH", path.c_str(), 1);
  test::check_golden("report_without_gnuplot.md", text);
  CHECK(has(text, "Plots are missing: gnuplot could not be started"));
  CHECK_FALSE(has(text, ".svg"));
}

TEST_CASE("report: plot data: zeros lie on a floor of their own, failures are marked, absent numbers left out") {
  const Report report = test::sample_report();
  const std::string script = plot_script(rows(report), "set terminal dumb", "x");
  const auto block = [&](const std::string& name) {
    const size_t begin = script.find("$" + name + " << EOD\n") + name.size() + 9;
    return script.substr(begin, script.find("EOD", begin) - begin);
  };
  // Errors 1e-3 … 0.05: the floor lies a decade below the smallest decade.
  CHECK(block("upper_forced") == "0 0.0001\n1 0.0001\n2 0.0024\n3 0.0021\n4 0.0001\n\n7 0.0001\n");
  CHECK(block("upper_failed") == "\n2 0.0024\n3 0.0021\n\n6 0.0001\n\n");
  CHECK(times(block("upper_free"), " ") == 6);
}

TEST_CASE("report: hostile names cannot command gnuplot") {
  const std::string script =
      plot_script(rows(test::sample_report(true)), "set terminal dumb", "a'; system \"x\" #`id`");
  CHECK_FALSE(has(script, "`"));
  CHECK_FALSE(has(script, "a';"));
  CHECK_FALSE(has(script, "system \""));
}
