// What a report says to run next can be run, and whose cast placements `paths` shows is said truly.
#include <doctest/doctest.h>

#include "command.hpp"
#include "program_file.hpp"

using namespace parity::test;
using parity::testing::json;
using parity::testing::ref;
using parity::testing::value_json;

namespace {

json named_value(int id, const at::Tensor& value, const std::string& name) {
  json out = value_json(id, value, std::to_string(id));
  out["n"] = name;
  return out;
}

/// A linear layer without bias, x w^T, in a model of its own; its result times `factor` is what the file holds.
void write_linear(const std::filesystem::path& path, double factor) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({8, 32}), w = at::randn({16, 32}), wt = w.t(), y = at::mm(x, wt);
  parity::testing::RecordingFile file(path);
  file.attribute("model", "Net");
  file.attribute("level", "op");
  file.value("0", x);
  file.value("1", w);
  file.value("2", wt.contiguous());
  file.value("3", y * factor);
  file.link("inputs/0/x", "0");
  file.link("weights/fc.weight", "1");
  for (const auto& [id, name] : {std::pair(0, "inputs/0/x"), std::pair(1, "weights/fc.weight")}) {
    json leaf = value_json(id, id == 0 ? x : w, std::to_string(id));
    leaf.update({{"e", "leaf"}, {"names", {name}}});
    file.event(leaf);
  }
  for (const auto& [id, module] : {std::pair(0, ""), std::pair(1, "fc")})
    file.event({{"e", "call"},
                {"id", id},
                {"path", module},
                {"call", 0},
                {"parent", id - 1},
                {"class", "Linear"},
                {"inputs", json::array({named_value(0, x, "x")})},
                {"literals", json::object()},
                {"grad", false},
                {"autocast", nullptr}});
  const auto op = [&](const char* name, const json& arguments, const json& out) {
    file.event({{"e", "op"}, {"op", name}, {"in", 1}, {"args", arguments}, {"kwargs", json::object()}, {"out", {out}}});
  };
  op("aten::t", json::array({ref(1)}), value_json(2, wt, "2"));
  op("aten::mm", json::array({ref(0), ref(2)}), value_json(3, y, "3"));
  for (const int id : {1, 0})
    file.event({{"e", "ret"}, {"id", id}, {"outputs", json::array({named_value(3, y, "y")})}});
  file.close();
}

std::string in_quotes(const std::filesystem::path& path) { return " '" + path.string() + "'"; }

json report_of(const std::string& arguments, const std::filesystem::path& file, int status) {
  const Finished done = parity_check(arguments + " --json" + in_quotes(file));
  INFO(done.out << done.err);
  REQUIRE(done.status == status);
  return json::parse(read_text(file));
}

}  // namespace

TEST_CASE("cli: every command that a report proposes runs") {
  const Scratch scratch;
  const auto good = scratch / "good.h5", bad = scratch / "bad.h5";
  write_linear(good, 1);
  write_linear(bad, 1.5);
  const json report = report_of("compare" + in_quotes(good) + in_quotes(bad), scratch / "r.json", 1);
  REQUIRE(report["next"].size() >= 2);
  CHECK(report["findings"].size() >= 1);
  CHECK(report["findings"][0]["first"] == report["first_divergence"]["path"]);
  for (const json& step : report["next"]) {
    std::string command = step["command"];
    REQUIRE(command.starts_with("parity-check "));
    const Finished done = parity_check(command.substr(13));
    INFO(command << "\n" << done.err);
    CHECK(done.status < 2);
  }
}

TEST_CASE("cli: whose cast placements are shown is said truly") {
  const Scratch scratch;
  const auto good = scratch / "good.h5", bad = scratch / "bad.h5";
  write_linear(good, 1);
  write_linear(bad, 1.5);
  const json alone = report_of("paths" + in_quotes(good), scratch / "a.json", 0),
             port = report_of("paths" + in_quotes(good) + in_quotes(bad), scratch / "b.json", 1);
  REQUIRE(alone["dtype_paths"].size() > 0);
  REQUIRE(port["dtype_paths"].size() > 0);
  for (const json& path : alone["dtype_paths"]) {
    CHECK(path["side"] == "reference");
    CHECK(path["sentence"].get<std::string>().find("candidate") == std::string::npos);
  }
  for (const json& path : port["dtype_paths"]) {
    CHECK(path["side"] == "candidate");
    CHECK(path["sentence"].get<std::string>().find("; candidate: ") != std::string::npos);
  }
}
