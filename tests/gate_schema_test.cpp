// The published schemas of the gate accept what it writes.
#include <doctest/doctest.h>

#include "gate/change.hpp"
#include "gate/sinks.hpp"
#include "published_schema.hpp"
#include "report_sample.hpp"

using namespace parity;
using nlohmann::json;

namespace {

Report worse_report() {
  Report r = test::sample_report(true);
  for (OpResult& op : r.ops)
    if (op.forced) op.forced->rel_l2 = 1e-1;
  r.ops[0].path = "new";
  return r;
}

Baseline accepted_baseline() {
  Baseline baseline;
  update_baseline(baseline, test::sample_report(true), "first", "2026-06-01");
  accept_worse(baseline, worse_report(), {"blocks.0.ffn.net.0", "known", "2026-12-31"}, "2026-06-15");
  return baseline;
}

}  // namespace

TEST_CASE("gate: baselines satisfy the published schema, which rejects others") {
  const json good = to_json(accepted_baseline());
  CHECK(test::schema_complaint("parity-baseline-1", good) == "");
  CHECK(test::schema_complaint("parity-baseline-1", to_json(Baseline{})) == "");
  const auto rejects = [&](auto change) {
    json bad = good;
    change(bad);
    return test::schema_complaint("parity-baseline-1", bad) != "";
  };
  for (const auto& [key, value] : good.items()) CHECK(rejects([&](json& j) { j.erase(key); }));
  for (const char* list : {"rows", "accepted"})
    for (const auto& [key, value] : good["classes"][0][list][0].items())
      CHECK(rejects([&](json& j) { j["classes"][0][list][0].erase(key); }));
  CHECK(rejects([](json& j) { j["classes"][0]["accepted"][0]["until"] = "soon"; }));
  CHECK(rejects([](json& j) { j["classes"][0]["accepted"][0]["reason"] = ""; }));
  CHECK(rejects([](json& j) { j["classes"][0]["reason"] = ""; }));
}

TEST_CASE("gate: results satisfy the published schema, which rejects others") {
  Baseline baseline = accepted_baseline();
  const json good = gate_json(compare_with(baseline.classes[0], worse_report(), "2026-06-15"), "r.json", "b.json");
  CHECK(good["counts"]["worse"] > 0);
  CHECK(test::schema_complaint("parity-gate-1", good) == "");
  CHECK(test::schema_complaint("parity-gate-1", gate_json(no_class(baseline, worse_report()), "r.json", "b.json")) ==
        "");
  const auto rejects = [&](auto change) {
    json bad = good;
    change(bad);
    return test::schema_complaint("parity-gate-1", bad) != "";
  };
  for (const auto& [key, value] : good.items()) CHECK(rejects([&](json& j) { j.erase(key); }));
  for (const auto& [key, value] : good["rows"][0].items()) CHECK(rejects([&](json& j) { j["rows"][0].erase(key); }));
  CHECK(rejects([](json& j) { j["exit_status"] = 2; }));
  CHECK(rejects([](json& j) { j["rows"][0]["change"] = "same"; }));
}
