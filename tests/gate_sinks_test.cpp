// What the gate says, to people and to CI.
#include <doctest/doctest.h>

#include "command.hpp"
#include "gate/change.hpp"
#include "gate/history.hpp"
#include "gate/sinks.hpp"
#include "report_golden.hpp"
#include "report_sample.hpp"
#include "test_places.hpp"

using namespace parity;

namespace {

/// One row of every change, hostile names included.
GateResult every_change(bool hostile = false) {
  Report before = test::sample_report(hostile), now = before;
  const auto at = [](Report& r, const char* path) -> OpResult& {
    return *std::find_if(r.ops.begin(), r.ops.end(), [&](const OpResult& op) { return op.path == path; });
  };
  at(now, "patch_embedding").forced->rel_l2 = .02;
  at(now, "patch_embedding").source = "transformer.py:101 in forward";
  at(now, "patch_embedding").candidate_source = "patch.cpp:17";
  at(now, "blocks.0.ffn.net.0").logic.rel_l2 = 3e-16;
  at(now, "blocks.1.ffn").candidate_path = "blocks.1.mlp";
  at(now, "").free.reset();
  at(now, "blocks.1.norm2").path = "blocks.1.norm_added";
  ClassBaseline baseline = frozen(before, "the release of May", "2026-05-20");
  OpResult& accepted = now.ops[1];
  accepted.forced->rel_l2 = .5;
  baseline.accepted = {{RowKey{accepted.reference, accepted.path, accepted.dtype, 0, 0},
                        Verdict::pass,
                        {{"forced.rel_l2", .5}},
                        "a kernel is on its way",
                        "2026-05-21",
                        "2026-12-31"}};
  return compare_with(baseline, now, "2026-06-15");
}

GateResult other_class() {
  Baseline baseline;
  update_baseline(baseline, test::sample_report(), "first", "2026-06-01");
  Report elsewhere = test::sample_report();
  elsewhere.machine["threads"] = 16;
  return no_class(baseline, elsewhere);
}

}  // namespace

TEST_CASE("gate: the console says what it said") {
  test::check_golden("gate_console.txt", gate_console(every_change(), false));
  test::check_golden("gate_console_colour.txt", gate_console(every_change(), true));
  test::check_golden("gate_diff.txt", diff_console(every_change(), false));
  test::check_golden("gate_markdown.md", gate_markdown(every_change()));
}

TEST_CASE("gate: every kind of change is there, and counted") {
  const GateResult result = every_change();
  for (const Change c : {Change::worse, Change::undecided, Change::vanished, Change::paired, Change::added,
                         Change::accepted, Change::better})
    CHECK(count_of(result, c) == 1);
  CHECK(exit_status(result) == 1);
  CHECK(gate_json(result, "r", "b")["verdict"] == "worse");
}

TEST_CASE("gate: a baseline of another machine class is said, and nothing is green") {
  const GateResult result = other_class();
  CHECK(exit_status(result) == 3);
  for (const std::string& text : {gate_console(result, false), gate_markdown(result)}) {
    CHECK(text.find("no entry for this machine class") != std::string::npos);
    CHECK(text.find("threads: 2 there, 16 here") != std::string::npos);
    CHECK(text.find("PASS") == std::string::npos);
  }
  const auto file = test::scratch_folder("gate") / "junit.xml";
  write_gate_junit(result, file);
  CHECK(test::read(file).find("errors=\"1\"") != std::string::npos);
}

TEST_CASE("gate: JUnit is XML, and tells failures from errors") {
  const auto file = test::scratch_folder("gate") / "junit.xml";
  write_gate_junit(every_change(true), file);
  const std::string script =
      "import sys, xml.etree.ElementTree as e; r = e.parse(sys.argv[1]).getroot(); s = r[0]; "
      "assert int(s.get('tests')) == len(s) and int(s.get('failures')) == len(s.findall('testcase/failure')) == 1 and "
      "int(s.get('errors')) == len(s.findall('testcase/error')) == 3, r.attrib";
  CHECK(test::shell(std::string(PARITY_PYTHON) + " -c \"" + script + "\" " + file.string()).status == 0);
}

TEST_CASE("gate: names from files move no cursor, open no tag and call nobody") {
  const GateResult result = every_change(true);
  for (const std::string& text : {gate_console(result, false), diff_console(result, false)}) {
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find('\xff') == std::string::npos);
    CHECK(text.find("\n`@everyone`") == std::string::npos);
  }
  const std::string comment = gate_markdown(result);
  CHECK(comment.find("<img") == std::string::npos);
  CHECK(comment.find("| `@everyone") == std::string::npos);
}

TEST_CASE("gate: many changes are cut on the console, and it says so") {
  Report before = test::sample_report(), now;
  before.ops.resize(1);
  for (int i = 1; i < 100; ++i) before.ops.push_back(before.ops[0]);
  now = before;
  for (OpResult& op : now.ops) op.forced->rel_l2 = .5;
  const GateResult result = compare_with(frozen(before, "test", "2026-06-01"), now, "2026-06-15");
  CHECK(gate_console(result, false).find("… and 80 more worse") != std::string::npos);
  CHECK(diff_console(result, false).find("… and 60 more") != std::string::npos);
}

TEST_CASE("gate: a history is drawn in order of dates, and exact is not small") {
  Report good = test::sample_report();
  good.ops.resize(2);
  Report bad = test::sample_report();
  bad.date = "2026-01-01";
  good.date = "2026-02-02'; system('x')";
  const auto moments = history_of({moment_of(good, "good"), moment_of(bad, "bad")});
  REQUIRE(moments.size() == 2);
  CHECK(moments[0].file == "bad");
  CHECK(moments[0].failed == 3);
  CHECK(moments[0].open == 3);
  CHECK(moments[0].of_limit.at("bf16") == doctest::Approx(2e9));
  const std::string script = history_script(moments, "x.svg");
  CHECK(script.find("'; system") == std::string::npos);
  const auto folder = test::scratch_folder("gate");
  if (draw_history(moments, folder).find("could not be started") != std::string::npos) return;  // no gnuplot
  CHECK(test::read(folder / "history.svg").find("</svg>") != std::string::npos);
  Report exact = good;
  for (OpResult& op : exact.ops) op.free = op.forced;
  CHECK(draw_history({moment_of(exact, "exact")}, folder) == "");
  CHECK(history_json(moments)["reports"].size() == 2);
}
