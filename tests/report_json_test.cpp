// The machine-readable report and what a report says in total. The schema has its own file: report_schema_test.cpp.
#include <doctest/doctest.h>

#include "core/error.hpp"
#include "measure/measure.hpp"
#include "report/sink.hpp"
#include "report_golden.hpp"
#include "report_sample.hpp"

using namespace parity;
using nlohmann::json;

namespace {

OpResult op(int64_t index, Verdict verdict, Gate gate = Gate::none, const std::string& reference = "") {
  OpResult r;
  r.index = index;
  r.verdict = verdict;
  r.gate = gate;
  r.reference = reference;
  return r;
}

Report report_of(std::vector<OpResult> ops) {
  Report r;
  r.ops = std::move(ops);
  return r;
}

}  // namespace

TEST_CASE("result: overall verdict and exit status") {
  CHECK(exit_status(report_of({})) == 3);  // nothing was compared: never green
  CHECK(verdict_name(overall(report_of({}))) == "inconclusive");
  CHECK(exit_status(report_of({op(0, Verdict::pass)})) == 0);
  for (const Verdict open : {Verdict::inconclusive, Verdict::missing, Verdict::untrusted}) {
    CHECK(exit_status(report_of({op(0, Verdict::pass), op(1, open)})) == 3);
    CHECK(exit_status(report_of({op(0, open), op(1, Verdict::fail)})) == 1);
  }
  CHECK(exit_status(report_of({op(0, Verdict::pass), op(1, Verdict::shape)})) == 1);
  CHECK(exit_status(report_of({OpResult{}})) == 3);  // a row that nothing proved otherwise is missing
}

TEST_CASE("result: every verdict is counted, absent ones as zero") {
  const auto counts = count_verdicts(report_of({op(0, Verdict::pass), op(1, Verdict::pass), op(2, Verdict::shape)}));
  CHECK(counts == std::map<std::string, int64_t>{
                      {"pass", 2}, {"fail", 0}, {"inconclusive", 0}, {"missing", 0}, {"shape", 1}, {"untrusted", 0}});
}

TEST_CASE("result: the first divergence is the first own failure in execution order") {
  // Not the first in the list, not a propagation failure, not something undecided.
  const Report r = report_of({op(9, Verdict::fail, Gate::logic), op(1, Verdict::fail, Gate::propagation),
                              op(2, Verdict::missing, Gate::structure), op(3, Verdict::inconclusive, Gate::dtype_path),
                              op(5, Verdict::fail, Gate::dtype_path), op(7, Verdict::shape, Gate::structure)});
  REQUIRE(first_divergence(r));
  CHECK(first_divergence(r)->index == 5);
  CHECK_FALSE(first_divergence(report_of({op(1, Verdict::fail, Gate::propagation), op(2, Verdict::pass)})));
  CHECK_FALSE(first_divergence(report_of({})));
  // Indices of two dumps are not comparable: the dump listed first is asked first.
  const Report two = report_of({op(8, Verdict::fail, Gate::logic, "a"), op(2, Verdict::fail, Gate::logic, "b"),
                                op(4, Verdict::fail, Gate::logic, "a")});
  CHECK(first_divergence(two)->reference == "a");
  CHECK(first_divergence(two)->index == 4);
}

TEST_CASE("report: numbers that do not exist are null in JSON") {
  Report r = report_of({op(0, Verdict::pass)});
  r.ops[0].forced = measure(at::zeros({2}), at::tensor({0.0, std::numeric_limits<double>::infinity()}));
  r.ops[0].limits = {{"rel_l2", std::numeric_limits<double>::infinity(), false, ""}};
  const json j = to_json(r);
  CHECK(j["ops"][0]["forced"]["rel_l2"].is_null());
  CHECK(j["ops"][0]["forced"]["max_abs"] == 0.0);
  CHECK(j["ops"][0]["forced"]["special_mismatch"] == 1);
  CHECK(j["ops"][0]["free"]["count"].is_null());
  CHECK(j["ops"][0]["limits"][0]["value"].is_null());
  CHECK(j["ops"][0]["gate"].is_null());
  CHECK(j["first_divergence"].is_null());
  CHECK(j["video"].is_null());
}

TEST_CASE("report: the JSON file is what it was") {
  const auto folder = test::scratch_folder("json");
  write_json(test::sample_report(), folder / "deep" / "report.json");
  test::check_golden("report.json", test::read(folder / "deep" / "report.json"));
  Report bytes = test::sample_report();
  bytes.reference.details["title"] = "\xff\xfe";  // not UTF-8: replaced, the report survives
  write_json(bytes, folder / "bytes.json");
  CHECK(json::parse(test::read(folder / "bytes.json"))["verdict"] == "fail");
}

TEST_CASE("report: files appear whole or not at all") {
  const auto folder = test::scratch_folder("write");
  write_file(folder / "a.txt", "one");
  write_file(folder / "a.txt", "two");
  CHECK(test::read(folder / "a.txt") == "two");
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);  // no temporary left
  CHECK_THROWS_AS(write_file(folder, "a folder has this name"), Error);
  CHECK_THROWS_AS(write_file(folder / "a.txt" / "b", "a file is no folder"), Error);
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
}
