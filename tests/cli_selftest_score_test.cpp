// parity-check selftest: intervals, the sample, what is worse than a recorded score, limits fitted without a family.
#include <doctest/doctest.h>

#include <functional>

#include "command.hpp"

using namespace parity::test;

namespace {

namespace fs = std::filesystem;

const std::string kWrong = "gpt2.fp32.fault.no-causal-mask.h5", kRight = "gpt2.fp32.honest.norms-by-the-formula.h5";

// A suite of those two pairs, the manifest's entries changed. Returns the command that judges it.
std::string suite_of_two(const Scratch& scratch, const std::function<void(nlohmann::json& pair)>& change) {
  const fs::path suite = reference_dump("selftest");
  auto manifest = nlohmann::json::parse(read_text(suite / "MANIFEST.json"));
  nlohmann::json pairs = nlohmann::json::array();
  for (auto& pair : manifest["pairs"])
    if (pair["file"] == kWrong || pair["file"] == kRight) {
      change(pair);
      pairs.push_back(pair);
    }
  manifest["pairs"] = pairs;
  std::ofstream(scratch / "MANIFEST.json") << manifest.dump();
  for (const std::string& name : {std::string("gpt2.fp32.h5"), kWrong, kRight}) {
    fs::remove(scratch / name);
    fs::create_symlink(suite / name, scratch / name);
  }
  return "selftest --suite " + (scratch / "").string() + " --only '*' ";
}

void a_fault_that_nobody_can_find(nlohmann::json& pair) {
  if (pair["file"] != kRight) return;
  pair["kind"] = "fault";
  pair["diagnosis"] = "norm eps";
  pair["module"] = "transformer.h.0.ln_1";
  pair["call"] = 0;
}

}  // namespace

TEST_CASE("selftest: intervals in text, Markdown and JSON, out of sample beside as shipped") {
  const Scratch scratch;
  const auto result = parity_check(suite_of_two(scratch, [](auto&) {}) + "--leave-one-family-out --json " +
                                   (scratch / "s.json").string() + " --markdown " + (scratch / "s.md").string());
  INFO(result.out << result.err);
  CHECK(result.status == 0);
  CHECK(result.out.find("recall 100.0 % (20.7 to 100.0)") != std::string::npos);  // Wilson: 1 of 1
  CHECK(result.out.find("0 of 1 (0.0 to 79.3 %)") != std::string::npos);
  CHECK(result.out.find("out of sample") != std::string::npos);
  CHECK(result.out.find("cannot be fitted: kept") != std::string::npos);  // one family alone
  const std::string markdown = read_text(scratch / "s.md");
  CHECK(markdown.find("20.7 to 100.0") != std::string::npos);
  CHECK(markdown.find("## Out of sample") != std::string::npos);
  const auto json = nlohmann::json::parse(read_text(scratch / "s.json"));
  CHECK(json["totals"]["recall_interval"][0].get<double>() == doctest::Approx(.2065).epsilon(1e-3));
  CHECK(json["totals"]["recall_interval"][1] == 1);
  CHECK(json["families"].size() == 1);
  CHECK(json["family_totals"][0]["family"] == "gpt2");
  CHECK(json["dtype_totals"][0]["dtype"] == "fp32");
  CHECK(json["dtype_totals"][0]["false_alarm_interval"][1].get<double>() == doctest::Approx(.7935).epsilon(1e-3));
  CHECK(json["out_of_sample"]["totals"]["found"] == 1);
  CHECK(json["out_of_sample"]["limits"][0]["factor"].is_null());
}

TEST_CASE("selftest: a lost fault turns the sample red") {
  const Scratch scratch;
  const auto sound = parity_check(suite_of_two(scratch, [](auto&) {}) + "--sample 1");
  INFO(sound.out << sound.err);
  CHECK(sound.status == 0);
  CHECK(sound.out.find("2 pairs") != std::string::npos);  // the fault, and every benign pair
  const auto lost = parity_check(suite_of_two(scratch, a_fault_that_nobody_can_find) + "--sample 2");
  CHECK(lost.status == 1);
  CHECK(lost.out.find("missed       " + kRight) != std::string::npos);
}

TEST_CASE("selftest: what is worse than the recorded score is named and fails, what was missed before does not") {
  const Scratch scratch;
  const std::string score = (scratch / "score.json").string();
  const std::string command = suite_of_two(scratch, a_fault_that_nobody_can_find);
  CHECK(parity_check(command + "--json " + score).status == 1);
  const auto same = parity_check(command + "--against " + score);
  CHECK(same.out.find("lost") == std::string::npos);
  auto before = nlohmann::json::parse(read_text(score));
  for (auto& pair : before["pairs"]) pair["found"] = pair["located"] = true;
  std::ofstream(score) << before.dump();
  const auto worse = parity_check(command + "--against " + score);
  CHECK(worse.status == 1);
  CHECK(worse.out.find("lost         " + kRight + ": found before") != std::string::npos);
  std::ofstream(score) << "{}";
  const auto unusable = parity_check(command + "--against " + score);
  CHECK(unusable.status == 2);
  CHECK(unusable.err.find(score) != std::string::npos);
  CHECK(lines(unusable.err) == 1);
}
