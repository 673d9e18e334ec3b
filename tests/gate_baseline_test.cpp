// Baselines: what changes them, what is refused, and files that hold anything.
#include <doctest/doctest.h>

#include <fstream>

#include "core/error.hpp"
#include "gate/change.hpp"
#include "gate/date.hpp"
#include "gate/read_report.hpp"
#include "report/sink.hpp"
#include "report_golden.hpp"
#include "report_sample.hpp"

using namespace parity;
using nlohmann::json;

namespace {

constexpr const char* kDay = "2026-06-15";

Baseline baseline_of(const Report& report) {
  Baseline baseline;
  update_baseline(baseline, report, "first", "2026-06-01");
  return baseline;
}

/// The second row far beyond its limit.
Report worsened() {
  Report r = test::sample_report();
  r.ops[1].forced->rel_l2 = .5;
  r.ops[1].verdict = Verdict::fail;
  return r;
}

std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "";
}

std::string accepting(AcceptRequest request, const Report& report = worsened()) {
  Baseline baseline = baseline_of(test::sample_report());
  const std::string said = refusal([&] { accept_worse(baseline, report, request, kDay); });
  if (!said.empty()) CHECK(baseline.classes[0].accepted.empty());
  return said;
}

template <class Edit>
std::string reading(const json& good, const char* name, Edit change) {
  json bad = good;
  change(bad);
  const auto file = test::scratch_folder("gate") / name;
  std::ofstream(file) << bad.dump();
  return refusal([&] { name == std::string("report.json") ? void(read_report(file)) : void(read_baseline(file)); });
}

}  // namespace

TEST_CASE("gate: a report comes back from its file with every number the gate looks at") {
  const Report r = test::sample_report();
  const auto file = test::scratch_folder("gate") / "report.json";
  write_json(r, file);
  const Report back = read_report(file);
  REQUIRE(back.ops.size() == r.ops.size());
  CHECK(machine_class(back) == machine_class(r));
  for (size_t i = 0; i < r.ops.size(); ++i) {
    CHECK(back.ops[i].verdict == r.ops[i].verdict);
    const auto before = numbers_of(r.ops[i]), after = numbers_of(back.ops[i]);
    REQUIRE(before.size() == after.size());
    for (const auto& [name, number] : before) {
      CHECK(after.at(name).value == number.value);
      CHECK(after.at(name).noise == number.noise);
    }
  }
}

TEST_CASE("gate: a baseline comes back from its file as it was") {
  Baseline baseline = baseline_of(test::sample_report());
  accept_worse(baseline, worsened(), {"blocks.0.norm1", "known", "2026-12-31"}, kDay);
  const auto file = test::scratch_folder("gate") / "baseline.json";
  write_baseline(baseline, file);
  CHECK(to_json(read_baseline(file)) == to_json(baseline));
}

TEST_CASE("gate: a new baseline needs a reason, and leaves other machine classes alone") {
  Baseline baseline = baseline_of(test::sample_report());
  CHECK(refusal([&] { update_baseline(baseline, worsened(), " ", kDay); }).find("--reason") != std::string::npos);
  Report other = test::sample_report();
  other.machine["threads"] = 8;
  update_baseline(baseline, other, "eight threads", kDay);
  REQUIRE(baseline.classes.size() == 2);
  update_baseline(baseline, worsened(), "later", kDay);
  REQUIRE(baseline.classes.size() == 2);
  CHECK(baseline.classes[0].reason == "later");
  CHECK(baseline.classes[1].reason == "eight threads");
}

TEST_CASE("gate: a loosening without reason, without a day to come, without a row or without need is refused") {
  CHECK(accepting({"blocks.0.norm1", "", "2026-12-31"}).find("--reason") != std::string::npos);
  CHECK(accepting({"blocks.0.norm1", "  ", "2026-12-31"}).find("--reason") != std::string::npos);
  CHECK(accepting({"blocks.0.norm1", "known", ""}).find("--until") != std::string::npos);
  for (const char* day :
       {"2026-13-01", "2026-02-29", "tomorrow", "2026-6-1", "2026-06-01 ", "31-12-2026", "2026-+1-01"})
    CHECK(accepting({"blocks.0.norm1", "known", day}).find("no day") != std::string::npos);
  CHECK(accepting({"blocks.0.norm1", "known", "2026-06-14"}).find("has passed") != std::string::npos);
  CHECK(accepting({"blocks.0.norm", "known", "2026-12-31"}).find("path of no row") != std::string::npos);
  CHECK(accepting({"blocks.0.*", "known", "2026-12-31"}).find("path of no row") != std::string::npos);
  CHECK(accepting({"patch_embedding", "known", "2026-12-31"}).find("nothing to loosen") != std::string::npos);
  CHECK(accepting({"blocks.0.norm1", "known", "2026-12-31"}, test::sample_report()).find("nothing to loosen") !=
        std::string::npos);
  Report elsewhere = worsened();
  elsewhere.machine["threads"] = 64;
  CHECK(accepting({"blocks.0.norm1", "known", "2026-12-31"}, elsewhere).find("no entry") != std::string::npos);
  CHECK(accepting({"blocks.0.norm1", "known", kDay}) == "");
}

TEST_CASE("gate: what is accepted is green until its day, and no worse than accepted") {
  Baseline baseline = baseline_of(test::sample_report());
  CHECK(exit_status(compare_with(baseline.classes[0], worsened(), kDay)) == 1);
  accept_worse(baseline, worsened(), {"blocks.0.norm1", "waits for a kernel", "2026-12-31"}, kDay);
  const ClassBaseline& entry = baseline.classes[0];
  CHECK(exit_status(compare_with(entry, worsened(), "2026-12-31")) == 0);
  CHECK(count_of(compare_with(entry, worsened(), "2026-12-31"), Change::accepted) == 1);
  const GateResult late = compare_with(entry, worsened(), "2027-01-01");
  CHECK(exit_status(late) == 1);
  CHECK(late.rows[0].note.find("accepted until 2026-12-31: waits for a kernel (this has run out)") == 0);
  Report more = worsened();
  more.ops[1].forced->rel_l2 = .6;
  CHECK(exit_status(compare_with(entry, more, kDay)) == 1);
  Report other = worsened();
  other.ops[0].verdict = Verdict::fail;
  CHECK(exit_status(compare_with(entry, other, kDay)) == 1);
  const GateResult repaired = compare_with(entry, test::sample_report(), kDay);
  REQUIRE(repaired.notes.size() == 1);
  CHECK(repaired.notes[0].find("no use") != std::string::npos);
}

TEST_CASE("gate: what is better is proposed, and nothing is written by itself") {
  Baseline baseline = baseline_of(worsened());
  const json before = to_json(baseline);
  const auto proposals = tightening(compare_with(baseline.classes[0], test::sample_report(), kDay));
  REQUIRE(proposals.size() == 1);
  CHECK(proposals[0].find("blocks.0.norm1 (bf16): pass where it was fail, forced.rel_l2 0 where it was 0.5") == 0);
  CHECK(to_json(baseline) == before);
}

TEST_CASE("gate: machine classes are makers, instruction sets, threads, versions and devices, not models") {
  const auto so = [](const char* key, json value) {
    Report r = test::sample_report();
    r.machine = {{"cpu", "AMD EPYC 7763 64-Core Processor"},
                 {"cpu_flags", "avx2 fma"},
                 {"cpu_capability", "AVX2"},
                 {"threads", 2},
                 {"libtorch", "2.13.0+cpu"}};
    r.candidate.details = {{"device", "cpu"}, {"jax", "0.10.2"}, {"time", "2026-01-01"}};
    const MachineClass plain_class = machine_class(r);
    (r.candidate.details.contains(key) ? r.candidate.details : r.machine)[key] = std::move(value);
    return class_differences(plain_class, machine_class(r)).size();
  };
  CHECK(so("cpu", "AMD EPYC 9654 96-Core Processor") == 0);
  CHECK(so("cpu_flags", "fma avx2 sse4_1") == 0);
  CHECK(so("libtorch", "2.13.0+cu130") == 0);
  CHECK(so("time", "2026-02-02") == 0);
  CHECK(so("cpu", "Intel(R) Xeon(R) Platinum 8370C") == 1);
  CHECK(so("cpu_flags", "avx2 avx512f") == 1);
  CHECK(so("cpu_capability", "DEFAULT") == 1);
  CHECK(so("threads", 4) == 1);
  CHECK(so("libtorch", "2.14.0") == 1);
  CHECK(so("device", "cuda") == 1);
  CHECK(so("sdpa", {{"flash", true}}) == 0);  // chooses nothing on a CPU
  CHECK(so("jax", "0.11.0") == 1);
  CHECK(so("kernel_settings", {{"ONEDNN_MAX_CPU_ISA", "AVX2"}}) == 1);
}

TEST_CASE("gate: on a GPU its settings are part of the machine class") {
  Report r = test::sample_report();
  r.candidate.details = {{"device", "cuda:0"}, {"cudnn", {{"version", 91002}}}, {"sdpa", {{"flash", true}}}};
  const MachineClass before = machine_class(r);
  for (const auto& [table, name, value] :
       {std::tuple{"cudnn", "version", json(90800)}, {"sdpa", "flash", json(false)}}) {
    Report other = r;
    other.candidate.details[table][name] = value;
    CHECK(class_differences(before, machine_class(other)).size() == 1);
  }
}

TEST_CASE("gate: days of the calendar") {
  for (const char* day : {"2026-12-31", "2028-02-29", "2026-01-01"}) CHECK(is_day(day));
  for (const char* day : {"", "2026-12-32", "2026-00-10", "2027-02-29", "2026/12/31", "２０２６"})
    CHECK_FALSE(is_day(day));
}

TEST_CASE("gate: reports that hold anything are one line") {
  const json good = to_json(test::sample_report());
  const auto said = [&](auto change) { return reading(good, "report.json", change); };
  CHECK(said([](json&) {}) == "");
  for (const char* key : {"schema", "command", "date", "machine", "reference", "candidate", "ops"})
    CHECK(said([&](json& j) { j.erase(key); }) != "");
  for (const char* key : {"path", "call", "dtype", "kind", "verdict", "logic", "forced", "free", "limits", "reference",
                          "candidate_path", "index", "predicted_free"})
    CHECK(said([&](json& j) { j["ops"][0].erase(key); }).find("ops[0]") != std::string::npos);
  CHECK(said([](json& j) { j["schema"] = "parity-report/2"; }).find("parity-report/1 is needed") != std::string::npos);
  CHECK(said([](json& j) { j = json::array({1}); }) != "");
  CHECK(said([](json& j) { j["ops"] = json::array(); }).find("no comparison") != std::string::npos);
  CHECK(said([](json& j) { j["ops"][3] = "row"; }) != "");
  CHECK(said([](json& j) { j["ops"][0]["verdict"] = "good"; }) != "");
  CHECK(said([](json& j) { j["ops"][0]["forced"]["rel_l2"] = "0"; }) != "");
  CHECK(said([](json& j) { j["ops"][0]["forced"]["rel_l2"] = -1; }) != "");
  CHECK(said([](json& j) { j["ops"][0]["forced"]["bitwise_equal_share"] = 2; }) != "");
  CHECK(said([](json& j) { j["ops"][0]["forced"]["count"] = 1e300; }) != "");
  CHECK(said([](json& j) { j["ops"][0]["limits"][0]["at_least"] = 1; }) != "");
  CHECK(said([](json& j) { j["machine"]["cpu_flags"] = {{"a", {1, 2}}}; }) == "");  // described in another way
}

TEST_CASE("gate: files that are no JSON, or too deep, are one line") {
  const auto file = test::scratch_folder("gate") / "report.json";
  const auto said = [&](const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
    return refusal([&] { read_report(file); });
  };
  for (const std::string text : {"", "{", "\xff\xfe", "nan", "{\"schema\":\"parity-report/1\"", "[1e999]"})
    CHECK(said(text).find("is no JSON") != std::string::npos);
  CHECK(said(std::string(1 << 20, '[')).find("is no JSON") != std::string::npos);
  CHECK(said(std::string(1 << 20, '[') + std::string(1 << 20, ']')).find("names no schema") != std::string::npos);
  CHECK(refusal([&] { read_report(file.parent_path() / "none.json"); }).find("cannot be read") != std::string::npos);
  CHECK(refusal([&] { read_report(file.parent_path()); }).find("is a folder") != std::string::npos);
}

TEST_CASE("gate: baselines that hold anything are one line") {
  Baseline baseline = baseline_of(test::sample_report());
  accept_worse(baseline, worsened(), {"blocks.0.norm1", "known", "2026-12-31"}, kDay);
  const json good = to_json(baseline);
  const auto said = [&](auto change) { return reading(good, "baseline.json", change); };
  CHECK(said([](json&) {}) == "");
  for (const auto& [key, value] : good.items()) CHECK(said([&](json& j) { j.erase(key); }) != "");
  for (const auto& [key, value] : good["classes"][0].items())
    CHECK(said([&](json& j) { j["classes"][0].erase(key); }) != "");
  for (const auto& [key, value] : good["classes"][0]["rows"][0].items())
    CHECK(said([&](json& j) { j["classes"][0]["rows"][0].erase(key); }) != "");
  for (const auto& [key, value] : good["classes"][0]["accepted"][0].items())
    CHECK(said([&](json& j) { j["classes"][0]["accepted"][0].erase(key); }) != "");
  CHECK(said([](json& j) { j["classes"].push_back(j["classes"][0]); }).find("second entry") != std::string::npos);
  CHECK(said([](json& j) { j["classes"][0]["rows"].push_back(j["classes"][0]["rows"][0]); }).find("second time") !=
        std::string::npos);
  CHECK(said([](json& j) { j["classes"][0]["accepted"][0]["until"] = "soon"; }) != "");
  CHECK(said([](json& j) { j["classes"][0]["accepted"][0]["reason"] = ""; }) != "");
  CHECK(said([](json& j) { j["classes"][0]["rows"][0]["numbers"]["forced.rel_l2"]["noise"] = nullptr; }) != "");
}
