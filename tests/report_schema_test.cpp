// The published JSON Schema accepts what is written and rejects what the contract forbids.
#include <doctest/doctest.h>

#include "published_schema.hpp"
#include "report/sink.hpp"
#include "report/video.hpp"
#include "report_sample.hpp"

using namespace parity;
using nlohmann::json;

namespace {

std::string complaint(const json& document) { return test::schema_complaint("parity-report-1", document); }

}  // namespace

TEST_CASE("report: the JSON satisfies the published schema, also empty, hostile and half-finished") {
  CHECK(complaint(to_json(test::sample_report())) == "");
  CHECK(complaint(to_json(test::sample_report(true))) == "");
  CHECK(complaint(to_json(Report{})) == "");
  CHECK(complaint(to_json(test::large_report())) == "");
  Report half = test::sample_report();
  half.ops.resize(3);
  half.ops[2] = OpResult{};
  half.coverage.clear();
  CHECK(complaint(to_json(half)) == "");
}

TEST_CASE("report: the schema rejects what the contract forbids") {
  const json good = to_json(test::sample_report());
  const auto rejects = [&](auto change) {
    json bad = good;
    change(bad);
    return complaint(bad) != "";
  };
  for (const auto& [key, value] : good.items()) CHECK(rejects([&](json& j) { j.erase(key); }));
  for (const auto& [key, value] : good["ops"][0].items()) CHECK(rejects([&](json& j) { j["ops"][0].erase(key); }));
  for (const auto& [key, value] : good["ops"][0]["forced"].items())
    CHECK(rejects([&](json& j) { j["ops"][0]["free"].erase(key); }));
  REQUIRE(good["findings"].size() > 0);
  REQUIRE(good["next"].size() > 0);
  for (const char* list : {"findings", "next"})
    for (const auto& [key, value] : good[list][0].items()) CHECK(rejects([&](json& j) { j[list][0].erase(key); }));
  CHECK(rejects([](json& j) { j["findings"][0]["rows"] = 0; }));
  CHECK(rejects([](json& j) { j["findings"][0]["verdict"] = "pass"; }));
  CHECK(rejects([](json& j) { j["next"][0]["command"] = ""; }));
  CHECK(rejects([](json& j) { j["discriminator"] = "last dimension"; }));
  CHECK(rejects([](json& j) {
    j["dtype_paths"] = {
        {{"path", ""}, {"side", "port"}, {"sentence", ""}, {"best", ""}, {"candidates", json::array()}}};
  }));
  for (const auto& [key, value] : good["first_divergence"].items())
    CHECK(rejects([&](json& j) { j["first_divergence"].erase(key); }));
  CHECK(rejects([](json& j) { j["schema"] = "parity-report/2"; }));
  CHECK(rejects([](json& j) { j["verdict"] = "missing"; }));
  CHECK(rejects([](json& j) { j["counts"]["pass"] = -1; }));
  CHECK(rejects([](json& j) { j["ops"][0]["verdict"] = "ok"; }));
  CHECK(rejects([](json& j) { j["ops"][0]["forced"]["cosine"] = 1.5; }));
  CHECK(rejects([](json& j) { j["ops"][0]["forced"]["rel_l2"] = "nan"; }));
  CHECK(rejects([](json& j) { j["first_divergence"]["gate"] = "propagation"; }));
}

TEST_CASE("report: the section on video satisfies the schema, measured or not, one pair or several") {
  ClipResult clip;
  clip.summary.frames = 1;
  clip.frames.push_back({.mse = .01, .psnr = 20.0, .ssim = .9, .bias = {.1, .2, .3}});
  clip.checks.push_back({"frame_count", CheckVerdict::fail, "reference 2, candidate 1"});
  clip.findings.push_back({"offset", "candidate is one frame late", 20.0, {}});
  VideoReport report;
  report.clips = {clip};
  CHECK(complaint(to_json(report)) == "");
  CHECK(to_json(report)["counts"]["shape"] == 1);
  CHECK(to_json(report)["verdict"] == "fail");
  report.clips.push_back(ClipResult{});  // nothing measured: every number null
  const json two = to_json(report);
  CHECK(complaint(two) == "");
  CHECK(two["video"]["pairs"].size() == 2);
  json bad = two;
  for (const char* key : {"definition", "summary", "frames", "checks", "diagnosis"}) {
    bad["video"].erase(key);
    CHECK(complaint(bad) != "");
    bad = two;
  }
}
