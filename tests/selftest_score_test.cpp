// What the self test counts with: intervals, the sample, limits fitted without a family.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "command.hpp"
#include "selftest/calibrated.hpp"
#include "selftest/interval.hpp"
#include "selftest/sample.hpp"
#include "test_places.hpp"

using namespace parity;
using namespace parity::test;

TEST_CASE("selftest: Wilson's interval as Newcombe's tables have it") {
  // R. G. Newcombe 1998, Two-sided confidence intervals for the single proportion, Stat. Med. 17:857, table I,
  // method 3.
  const struct {
    int hits, trials;
    double low, high;
  } kTable[]{{81, 263, .2553, .3662}, {15, 148, .0624, .1605}, {0, 20, 0, .1611}, {1, 29, .0061, .1718}};
  for (const auto& row : kTable) {
    const auto interval = wilson(row.hits, row.trials);
    REQUIRE(interval);
    CHECK(std::abs(interval->low - row.low) < 5e-5);
    CHECK(std::abs(interval->high - row.high) < 5e-5);
    const auto other = wilson(row.trials - row.hits, row.trials);
    CHECK(std::abs(other->high - (1 - interval->low)) < 1e-12);
  }
  CHECK(wilson(7, 7)->high == 1);
  CHECK(!wilson(0, 0));
}

TEST_CASE("selftest: 115 faults are the fewest that notice three lost ones of 182 with 95 %") {
  CHECK(chance_to_notice(182, 3, 115) >= .95);
  CHECK(chance_to_notice(182, 3, 114) < .95);
  CHECK(chance_to_notice(182, 3, 182) == 1);
  CHECK(chance_to_notice(182, 3, 0) == 0);
  CHECK(std::abs(chance_to_notice(10, 1, 4) - .4) < 1e-12);
}

TEST_CASE("selftest: each stratum has its share of the sample, whatever the manifest's order") {
  SelftestSuite suite = read_suite(reference_dump("selftest"), "all");
  const auto stratum = [](const SelftestPair& p) {
    return std::tuple(p.family, p.dtype, std::string(diagnosis_class(p.diagnosis)));
  };
  const auto files = [](const SelftestSuite& s) {
    std::set<std::string> names;
    for (const SelftestPair& pair : s.pairs) names.insert(pair.file);
    return names;
  };
  const SelftestSuite sample = sample_of(suite, 115);
  std::map<decltype(stratum(suite.pairs.front())), std::pair<double, double>> counts;  // all, drawn
  int faults = 0, drawn = 0;
  for (const SelftestPair& pair : suite.pairs)
    if (pair.fault) ++faults, ++counts[stratum(pair)].first;
  for (const SelftestPair& pair : sample.pairs)
    if (pair.fault) ++drawn, ++counts[stratum(pair)].second;
  CHECK(drawn == 115);
  CHECK(std::ssize(suite.pairs) - std::ssize(sample.pairs) == faults - 115);  // every benign pair
  CHECK(counts.size() >= 24);
  for (const auto& [key, count] : counts) {
    CAPTURE(std::get<0>(key) + " " + std::get<1>(key) + " " + std::get<2>(key));
    CHECK(std::abs(count.second - count.first * 115 / faults) < 1);
  }
  std::reverse(suite.pairs.begin(), suite.pairs.end());
  CHECK(files(sample_of(suite, 115)) == files(sample));
  CHECK(sample_of(suite, 1000).pairs.size() == suite.pairs.size());
}

TEST_CASE("selftest: a limit is fitted without the family that uses most of it") {
  const Thresholds shipped;
  const auto effects = leave_out({{"a", {.5, .3, 0, 0, 0}}, {"b", {.2, .4, .1, 0, 0}}});
  REQUIRE(effects.size() == 3);
  CHECK(depends_on("a", effects));
  CHECK(!depends_on("c", effects));
  const Thresholds without_a = limits_without("a", effects, shipped), without_b = limits_without("b", effects, shipped);
  CHECK(without_a.half_ratio.value == doctest::Approx(shipped.half_ratio.value * .4));
  CHECK(without_a.half_ratio.origin.find("without a") != std::string::npos);
  CHECK(without_a.half_attention_ratio.value == shipped.half_attention_ratio.value);
  CHECK(without_b.half_attention_ratio.value == doctest::Approx(shipped.half_attention_ratio.value * .75));
  CHECK(without_b.fp32_null_factor.value == shipped.fp32_null_factor.value);  // b alone has rows under it
  CHECK(!effects[2].fitted());
}

TEST_CASE("selftest: which share of which limit a row uses") {
  OpResult row;
  row.verdict = Verdict::pass;
  row.tensor_dtype = "bf16";
  row.kind = "linear";
  row.limits = {{"candidate_error", .5, false, "", .25},
                {"bitwise_equal_share", .9, true, "", .95},
                {"gain", 1e-3, false, "", 2e-3}};
  CHECK(limit_shares({row})[0] == doctest::Approx(.5));
  CHECK(limit_shares({row})[3] == doctest::Approx(.5));
  CHECK(limit_shares({row})[4] == 0);  // above the limit and passed: significance decided
  row.kind = "attention";
  CHECK(limit_shares({row})[1] == doctest::Approx(.5));
  row.tensor_dtype = "fp32";
  CHECK(limit_shares({row})[2] == doctest::Approx(.5));
  row.verdict = Verdict::fail;
  CHECK(limit_shares({row}) == LimitShares{});
}

TEST_CASE("selftest: no family that is scored is among those of the calibration table") {
  const auto json = [](const std::string& file) { return nlohmann::json::parse(read_text(file)); };
  const auto calibration = json(PARITY_SOURCE_DIR "/src/judge/calibration.json");
  REQUIRE(!calibration["families"].empty());
  // Named: the loop would not keep a temporary alive.
  const auto manifest = json(reference_dump("selftest") / "MANIFEST.json");
  for (const auto& pair : manifest["pairs"])
    for (const auto& family : calibration["families"]) CHECK(pair["family"] != family);
}
