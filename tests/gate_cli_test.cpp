// The gate on real reports: one op made worse is red, the kernels of other machines are not.
#include <doctest/doctest.h>

#include <functional>

#include "command.hpp"

using namespace parity::test;
using nlohmann::json;

namespace {

constexpr const char* kReason = " --update --reason 'first'";

json document_at(const std::filesystem::path& file) { return json::parse(read_text(file)); }

/// The main job on one embedded recording.
void run_model(const std::filesystem::path& report, const std::string& environment = "", const std::string& more = "") {
  const Scratch out;
  const Finished done =
      parity_check("run --layer 'blocks.0*' --reference " + reference_dump("skyreels-v2-t2v.bf16.h5").string() +
                       " --quiet --out " + (out / "out").string() + " --json " + report.string() + more,
                   "OMP_WAIT_POLICY=PASSIVE " + environment);
  REQUIRE(done.status == 0);
}

/// A port of GPT-2 against its reference; 0 or 1.
void compare_port(const std::filesystem::path& report, const std::string& candidate) {
  const auto pairs = reference_dump("selftest");
  const Finished done = parity_check("compare " + (pairs / "gpt2.fp32.h5").string() + " " +
                                     (pairs / (candidate + ".h5")).string() + " --quiet --json " + report.string() +
                                     " --layer 'transformer.h.0.ln_*,transformer.h.0.attn.c_proj'");
  REQUIRE(done.status <= 1);
}

Finished gate(const std::filesystem::path& report, const std::filesystem::path& baseline,
              const std::string& more = "") {
  return parity_check("gate " + report.string() + " --baseline " + baseline.string() + more);
}

/// How the number that a limit is held against gets worse by twice that limit; false where the row does not have it.
bool twice_its_limit(json& op, json& limit) {
  const double by = 2 * (limit["at_least"] ? 1 - limit["value"].get<double>() : limit["value"].get<double>());
  const std::string statistic = limit["statistic"];
  json* held = !limit["measured"].is_null()       ? &limit["measured"]
               : statistic == "own_inputs_rel_l2" ? &op["free"]["candidate_error"]
               : op["forced"].contains(statistic) ? &op["forced"][statistic]
                                                  : nullptr;
  if (held == nullptr || held->is_null() || by == 0) return false;
  *held = held->get<double>() + (limit["at_least"] ? -by : by);
  return true;
}

/// One op after another, one number after another; each must turn the gate red and name that op alone.
int worsened_one_by_one(const std::filesystem::path& report, const std::filesystem::path& baseline, size_t stride) {
  const json good = document_at(report);
  const Scratch scratch;
  int tried = 0;
  for (size_t i = 0; i < good["ops"].size(); i += stride)
    for (size_t l = 0; l < good["ops"][i]["limits"].size(); ++l) {
      json bad = good;
      if (!twice_its_limit(bad["ops"][i], bad["ops"][i]["limits"][l])) continue;
      CAPTURE(bad["ops"][i]["path"]);
      CAPTURE(bad["ops"][i]["limits"][l].dump());
      std::ofstream(scratch / "bad.json") << bad;
      const Finished done = gate(scratch / "bad.json", baseline, " --quiet --json " + (scratch / "gate.json").string());
      CHECK(done.status == 1);
      const json said = document_at(scratch / "gate.json");
      CHECK(said["counts"]["worse"] == 1);
      CHECK(said["rows"][0]["path"] == bad["ops"][i]["path"]);
      ++tried;
    }
  return tried;
}

}  // namespace

TEST_CASE("gate: one op of a model made worse by twice its limit is red, other kernels and threads never are") {
  const Scratch scratch;
  const auto report = scratch / "report.json", baseline = scratch / "baseline.json", other = scratch / "other.json";
  run_model(report);
  CHECK(gate(report, baseline, kReason).status == 0);
  CHECK(worsened_one_by_one(report, baseline, 5) >= 8);
  const std::pair<const char*, const char*> settings[] = {
      {"", ""},
      {"ATEN_CPU_CAPABILITY=default", ""},
      {"ONEDNN_MAX_CPU_ISA=SSE41", ""},
      {"MKL_CBWR=COMPATIBLE", " --threads 1"},
      {"ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=AVX2 MKL_CBWR=COMPATIBLE", " --threads 1"}};
  for (const auto& [environment, more] : settings) {
    CAPTURE(environment);
    run_model(other, environment, more);
    const Finished done = gate(other, baseline, " --across-classes");
    CHECK_MESSAGE(done.status == 0, done.out);
    const Finished apart = gate(other, baseline);
    CHECK((apart.status == 0 || apart.status == 3));
    if (apart.status == 3) CHECK(apart.out.find("no entry for this machine class") != std::string::npos);
  }
}

TEST_CASE("gate: a port that got worse is red, another right port is not, and an acceptance ends the alarm") {
  const Scratch scratch;
  const auto first = scratch / "first.json", other = scratch / "other.json", fault = scratch / "fault.json",
             baseline = scratch / "baseline.json";
  compare_port(first, "gpt2.fp32.honest.products-in-three-parts");
  compare_port(other, "gpt2.fp32.honest.every-kernel-another");
  compare_port(fault, "gpt2.fp32.fault.norm-eps");
  CHECK(gate(first, baseline, kReason).status == 0);
  CHECK(worsened_one_by_one(first, baseline, 1) >= 5);
  CHECK(gate(other, baseline).status == 0);
  const Finished red = gate(fault, baseline);
  CHECK(red.status == 1);
  CHECK(red.out.find("pass -> fail") != std::string::npos);
  CHECK(gate(first, baseline).status == 0);  // nothing was promoted by itself

  const std::string path = " --accept transformer.h.0.ln_1";
  for (const std::string& refused :
       {path, path + " --reason r", path + " --until 2099-01-01", path + " --reason r --until x",
        path + " --reason r --until 2020-01-01", std::string(" --accept no.such --reason r --until 2099-01-01")}) {
    const Finished done = gate(fault, baseline, refused);
    CHECK(done.status == 2);
    CHECK(lines(done.err) == 1);
  }
  CHECK(gate(first, baseline, path + " --reason r --until 2099-01-01").status == 2);  // nothing to loosen
  const json found = document_at(fault);
  for (const json& op : found["ops"])
    if (op["verdict"] == "fail")
      gate(fault, baseline,
           " --reason 'eps is agreed on' --until 2099-01-01 --accept '" + op["path"].get<std::string>() + "'");
  CHECK(gate(fault, baseline).status == 0);
  CHECK(gate(fault, baseline).out.find("accepted until 2099-01-01: eps is agreed on") != std::string::npos);

  const Finished diff = parity_check("gate --diff " + first.string() + " " + fault.string());
  CHECK(diff.status == 1);
  CHECK(parity_check("gate --diff " + fault.string() + " " + first.string()).status == 0);
  const Finished tighter = parity_check("gate " + first.string() + " --tighten --baseline " + baseline.string());
  CHECK(tighter.out.find("could be tightened") != std::string::npos);
}

TEST_CASE("gate: usage that says too little or too much is one line") {
  const Scratch scratch;
  const auto report = scratch / "report.json";
  compare_port(report, "gpt2.fp32.honest.products-in-three-parts");
  const std::string r = report.string(), none = (scratch / "none.json").string();
  for (const std::string& arguments :
       {std::string(""), r, r + " --baseline " + none, r + " --baseline " + r, r + " --update --baseline " + none,
        r + " --update --reason x --tighten --baseline " + none, "--diff " + r + " " + none,
        "--diff " + r + " " + r + " --baseline " + r, "--history " + none, "--history " + r + " --out " + r,
        r + " --reason x --baseline " + none, r + " --until 2099-01-01 --baseline " + none}) {
    CAPTURE(arguments);
    const Finished done = parity_check("gate " + arguments);
    CHECK(done.status == 2);
    CHECK(lines(done.err) == 1);
    CHECK(done.out.empty());
  }
  CHECK_FALSE(std::filesystem::exists(none));
}
