// Exports of made-up reports, hostile names included: RFC 4180 read back, the trace held against its format.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "core/plain.hpp"
#include "export/formats.hpp"
#include "export/graph.hpp"
#include "report_sample.hpp"

using namespace parity;
using nlohmann::json;

namespace {

using Record = std::vector<std::string>;

/// RFC 4180 without any leniency: CRLF, and quotes only around a whole field.
std::vector<Record> read_csv(const std::string& text) {
  std::vector<Record> out(1, Record(1));
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      out.back().back() += text[++i];
    } else if (quoted) {
      if (c == '"')
        quoted = false;
      else
        out.back().back() += c;
    } else if (c == '"') {
      REQUIRE(out.back().back().empty());
      quoted = true;
    } else if (c == ',') {
      out.back().emplace_back();
    } else if (c == '\r') {
      REQUIRE(text.at(++i) == '\n');
      if (i + 1 < text.size()) out.emplace_back(1);
    } else {
      REQUIRE(c != '\n');
      out.back().back() += c;
    }
  }
  REQUIRE_FALSE(quoted);
  return out;
}

size_t column(const Record& head, const std::string& name) {
  const auto found = std::find(head.begin(), head.end(), name);
  REQUIRE(found != head.end());
  return static_cast<size_t>(found - head.begin());
}

}  // namespace

TEST_CASE("export csv: every row is there, every text comes back, no number is made up") {
  for (const bool hostile : {false, true}) {
    Report report = test::sample_report(hostile);
    report.ops[0].diagnosis = "a \"quoted\", comma'd\r\ntext";
    const std::vector<Record> records = read_csv(report_csv(report));
    REQUIRE(records.size() == report.ops.size() + 1);
    const Record& head = records[0];
    CHECK(std::set<std::string>(head.begin(), head.end()).size() == head.size());
    for (size_t i = 0; i < report.ops.size(); ++i) {
      const OpResult& op = report.ops[i];
      const Record& record = records[i + 1];
      REQUIRE(record.size() == head.size());
      CHECK(record[column(head, "path")] == plain(op.path));
      CHECK(record[column(head, "diagnosis")] == plain(op.diagnosis));
      CHECK(record[column(head, "verdict")] == verdict_name(op.verdict));
      const std::string& error = record[column(head, "forced.rel_l2")];
      CHECK(error.empty() == !(op.forced && op.forced->rel_l2));
      if (!error.empty()) CHECK(std::stod(error) == *op.forced->rel_l2);
      for (const std::string& field : record)
        for (const char* word : {"nan", "inf", "null", "-nan"}) CHECK(field != word);
    }
  }
}

TEST_CASE("export csv: the head does not depend on the report, and an infinite share is empty") {
  Report report;
  const Record head = read_csv(report_csv(report))[0];
  CHECK(head[0] == "index");
  CHECK(head.back() == "rerun");
  report.ops.emplace_back();
  report.ops[0].logic = {1.0, 0.0, Verdict::fail};
  const auto records = read_csv(report_csv(report));
  CHECK(records[0] == head);
  CHECK(records[1][column(head, "error_over_limit")] == "");
  CHECK(records[1][column(head, "forced.count")] == "");
}

TEST_CASE("export perfetto: one slice an op and side, on named tracks, painted by verdict") {
  const Report report = test::sample_report(true);
  const json trace = json::parse(report_trace(report));
  std::map<std::pair<int, int>, std::string> tracks;
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, int64_t> free_from;
  int64_t slices = 0, sides = 0;
  for (const OpResult& op : report.ops) sides += op.verdict == Verdict::missing ? 1 : 2;
  for (const json& event : trace["traceEvents"]) {
    const int pid = event["pid"];
    if (event["name"] == "process_name") processes[pid] = event["args"]["name"];
    if (event["name"] == "thread_name") tracks[{pid, event["tid"].get<int>()}] = event["args"]["name"];
    if (event["ph"] != "X") continue;
    const std::pair<int, int> track(pid, event["tid"].get<int>());
    REQUIRE(tracks.contains(track));
    REQUIRE(processes.contains(pid));
    const int64_t begin = event["ts"], length = event["dur"];
    CHECK(begin >= free_from[track]);  // else one slice would be drawn inside another
    CHECK(length > 0);
    free_from[track] = begin + length;
    const std::string verdict = event["args"]["verdict"], colour = event["cname"];
    CHECK((verdict == "pass") == (colour == "good"));
    CHECK((verdict == "fail" || verdict == "shape") == (colour == "terrible"));
    CHECK(event["cat"] == verdict);
    ++slices;
  }
  CHECK(slices == sides);
}

TEST_CASE("export: a node stands in one link only, however rows overlap") {
  GraphLinks links;
  links.pair(3, 10);
  links.pair(5, 11);
  links.pair(5, 10);  // 5 belongs to both: all four are one
  links.widen(false, 3, {1, 2, 3});
  links.pair(7, 12);
  links.widen(false, 7, {2, 6});
  const std::vector<GraphLink> found = links.take();
  REQUIRE(found.size() == 2);
  for (const GraphLink& link : found) {
    const bool first = link.candidate.size() == 2;
    CHECK(link.reference == (first ? std::vector<size_t>{1, 2, 3, 5} : std::vector<size_t>{6, 7}));
    CHECK(link.candidate == (first ? std::vector<size_t>{10, 11} : std::vector<size_t>{12}));
  }
}

TEST_CASE("export: names are nested as paths are, and the shortest path is found") {
  SideGraph graph = graph_of_names({"a.b", "a.b.c", "d/op.0", ""}, "g");
  CHECK(graph.nodes[0].space == "a/b");  // others lie under it
  CHECK(graph.nodes[1].space == "a/b");
  CHECK(graph.nodes[1].label == "c");
  CHECK(graph.nodes[3].id == "(result)");
  graph.nodes[1].from = {{0, 0}};
  graph.nodes[2].from = {{0, 0}, {1, 0}};
  graph.nodes[3].from = {{2, 0}};
  CHECK(shortest_path(graph, 0, 3) == std::vector<size_t>{0, 2, 3});
  CHECK(shortest_path(graph, 3, 0).empty());
}
