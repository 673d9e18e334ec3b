// parity-check selftest on a few pairs; a manifest that lies turns it red.
#include <doctest/doctest.h>

#include <functional>

#include "command.hpp"

using namespace parity::test;

namespace {

namespace fs = std::filesystem;

const std::string kFault = "gpt2.fp32.fault.no-causal-mask.h5", kHonest = "gpt2.fp32.honest.norms-by-the-formula.h5";
const std::string kTwo = " --only '" + kFault + "," + kHonest + "' ";

// A folder with the suite's files of that model, and its manifest changed.
void lie(const Scratch& scratch, const std::function<void(nlohmann::json& pair)>& change) {
  const fs::path suite = reference_dump("selftest");
  auto manifest = nlohmann::json::parse(read_text(suite / "MANIFEST.json"));
  for (auto& pair : manifest["pairs"]) change(pair);
  std::ofstream(scratch / "MANIFEST.json") << manifest.dump();
  for (const std::string& name : {std::string("gpt2.fp32.h5"), kFault, kHonest})
    fs::create_symlink(suite / name, scratch / name);
}

std::string on(const Scratch& scratch) { return "selftest --suite " + (scratch / "").string() + kTwo; }

}  // namespace

TEST_CASE("selftest: two pairs, as text and as JSON") {
  const Scratch scratch;
  const auto result = parity_check("selftest" + kTwo + "--json " + (scratch / "s.json").string());
  INFO(result.out << result.err);
  CHECK(result.status == 0);
  CHECK(result.out.find("recall 100.0 %") != std::string::npos);
  CHECK(result.out.find("torch assert_close") != std::string::npos);
  const auto json = nlohmann::json::parse(read_text(scratch / "s.json"));
  CHECK(json["schema"] == "parity-selftest/1");
  CHECK(json["verdict"] == "pass");
  CHECK(json["totals"]["faults"] == 1);
  CHECK(json["totals"]["located"] == 1);
  CHECK(json["totals"]["honest"] == 1);
  CHECK(json["totals"]["false_alarms"] == 0);
  REQUIRE(json["pairs"].size() == 2);
  for (const auto& pair : json["pairs"]) {
    CHECK(pair["false_alarm"] == false);
    CHECK(pair["counts"].value("pass", 0) > 0);
    CHECK(pair["peers_pass"].size() == json["peers"].size());
  }
  const auto& fault = json["pairs"][json["pairs"][0]["kind"] == "fault" ? 0 : 1];
  CHECK(fault["first_divergence"]["path"] == fault["expected"]["path"]);
  for (const auto& peer : json["peers"])  // no causal mask is gross: no rule may be blind to it
    CHECK_MESSAGE(peer["faults_caught"] == 1, peer["name"]);
  const auto quiet = parity_check("selftest --quiet --only " + kHonest);
  CHECK(quiet.status == 0);
  CHECK(quiet.out.empty());
}

TEST_CASE("compare: the report of a wrong port comes with its first divergence alone, a right one's without") {
  const Scratch scratch;
  const auto compare = [&](const std::string& candidate, const char* out) {
    return parity_check("compare " + reference_dump("selftest/gpt2.fp32.h5").string() + " " +
                        reference_dump("selftest/" + candidate).string() + " --out " + (scratch / out).string());
  };
  CHECK(compare(kFault, "wrong").status == 1);
  const std::string report = read_text(scratch / "wrong/report.md");
  CHECK(report.find("[first_divergence.h5](first_divergence.h5)") != std::string::npos);
  CHECK(report.find("TEST_CASE(\"port: transformer.h.0.attn") != std::string::npos);
  CHECK(parity_check("replay " + (scratch / "wrong/first_divergence.h5").string()).status == 0);
  CHECK(compare(kHonest, "right").status == 0);
  CHECK(!fs::exists(scratch / "right/first_divergence.h5"));
  CHECK(read_text(scratch / "right/report.md").find("first_divergence") == std::string::npos);
}

TEST_CASE("compare: a map that gives one tensor to two values is an error, crossed names are red") {
  const Scratch scratch;
  const auto with_map = [&](const std::string& rules) {
    std::ofstream(scratch / "rules.map") << rules;
    return parity_check("compare " + reference_dump("selftest/gpt2.fp32.h5").string() + " " +
                        reference_dump("selftest/" + kHonest).string() + " --map " + (scratch / "rules.map").string());
  };
  const auto shared =
      with_map("transformer.h.0.ln_1 = transformer.h.0.ln_1\ntransformer.h.1.ln_1 = transformer.h.0.ln_1\n");
  CHECK(shared.status == 2);
  CHECK(shared.err.find("line 2") != std::string::npos);
  CHECK(with_map("transformer.h.0.ln_1 = transformer.h.1.ln_1\ntransformer.h.1.ln_1 = transformer.h.0.ln_1\n").status ==
        1);
  CHECK(with_map("nothing.* = something.*\n").status == 2);
}

TEST_CASE("selftest: without faults nothing is said about recall") {
  const auto result = parity_check("selftest --only " + kHonest);
  CHECK(result.status == 0);
  CHECK(result.out.find("recall not measured") != std::string::npos);
}

TEST_CASE("selftest: a benign pair called a fault is a miss") {
  const Scratch scratch;
  lie(scratch, [](auto& pair) {
    if (pair["file"] != kHonest) return;
    pair["kind"] = "fault";
    pair["diagnosis"] = "norm eps";
    pair["module"] = "transformer.h.0.ln_1";
    pair["call"] = 0;
  });
  const auto result = parity_check(on(scratch));
  INFO(result.err);
  CHECK(result.status == 1);
  CHECK(result.out.find("missed       " + kHonest) != std::string::npos);
  CHECK(result.out.find("recall 50.0 %") != std::string::npos);
}

TEST_CASE("selftest: a fault called benign is a false alarm") {
  const Scratch scratch;
  lie(scratch, [](auto& pair) {
    if (pair["file"] == kFault) pair["kind"] = "honest";
  });
  const auto result = parity_check(on(scratch));
  INFO(result.err);
  CHECK(result.status == 1);
  CHECK(result.out.find("false alarm  " + kFault) != std::string::npos);
}

TEST_CASE("selftest: another module or another name than the fault's is not a hit") {
  for (const char* key : {"module", "diagnosis"}) {
    const Scratch scratch;
    lie(scratch, [&](auto& pair) {
      if (pair["file"] == kFault) pair[key] = "another";
    });
    const auto result = parity_check(on(scratch));
    CAPTURE(key);
    CHECK(result.status == 1);
    CHECK(result.out.find(std::string(key) == "module" ? "misplaced" : "misnamed") != std::string::npos);
  }
}

TEST_CASE("selftest: an unusable suite is one line and status 2") {
  const auto refused = [](const std::string& arguments, const std::string& what) {
    const auto result = parity_check(arguments);
    INFO(result.err);
    CHECK(result.status == 2);
    CHECK(result.err.find(what) != std::string::npos);
    CHECK(lines(result.err) == 1);
  };
  refused("selftest --suite /nonexistent", "/nonexistent/MANIFEST.json");
  refused("selftest --only 'no-such-pair*'", "no-such-pair*");
  const auto nothing = [](auto&) {};
  {
    const Scratch scratch;
    lie(scratch, nothing);
    fs::remove(scratch / kFault);
    refused(on(scratch), kFault + ": missing");
  }
  {
    const Scratch scratch;
    lie(scratch, nothing);
    fs::remove(scratch / kFault);
    fs::copy_file(reference_dump("selftest") / kHonest, scratch / kFault);  // another file under its name
    refused(on(scratch), kFault + ": is not the file");
  }
  {
    const Scratch scratch;
    lie(scratch, [](auto& pair) { pair.erase("kind"); });
    refused(on(scratch), "MANIFEST.json");
  }
  {
    const Scratch scratch;
    lie(scratch, [](auto& pair) { pair["file"] = "../x.h5"; });
    refused(on(scratch), "../x.h5");
  }
  {
    const Scratch scratch;
    lie(scratch, [](auto& pair) { pair["kind"] = "honest"; });
    refused("selftest --suite " + (scratch / "").string(), "faults and benign pairs");
  }
}
