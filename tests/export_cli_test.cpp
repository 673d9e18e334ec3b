// Model Explorer's files from a real pair of recordings: their shape, and that they say what the report says.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "command.hpp"

using namespace parity::test;
using nlohmann::json;

namespace {

json document(const std::filesystem::path& file) { return json::parse(read_text(file)); }

std::string file_word(const std::filesystem::path& file) { return " '" + file.string() + "'"; }

/// GPT-2 with a wrong epsilon in its norms against its reference; both exports of one comparison.
void compare_eps(const Scratch& scratch, const std::string& more = "") {
  const auto pairs = reference_dump("selftest");
  const Finished done = parity_check("compare" + file_word(pairs / "gpt2.fp32.h5") +
                                     file_word(pairs / "gpt2.fp32.fault.norm-eps-1e-6.h5") + " --quiet --json" +
                                     file_word(scratch / "r.json") + more);
  INFO(done.err);
  REQUIRE(done.status == 1);
}

using Nodes = std::map<std::string, json>;

/// Model Explorer's GraphNode, held against graph_builder.py: every key, every type, every edge's end.
Nodes checked_graph(const json& file) {
  REQUIRE(file["label"].is_string());
  REQUIRE(file["graphs"].size() == 1);
  Nodes nodes;
  for (const json& node : file["graphs"][0]["nodes"]) {
    CHECK(node.size() == 6);
    for (const char* key : {"id", "label", "namespace"}) REQUIRE(node[key].is_string());
    CHECK_MESSAGE(nodes.emplace(node["id"], node).second, node["id"]);
    for (const json& attribute : node["attrs"]) {
      REQUIRE(attribute["key"].is_string());
      const json& value = attribute["value"];
      CHECK((value.is_string() || (value["type"] == "node_ids" && value["nodeIds"].is_array())));
    }
    for (const json& output : node["outputsMetadata"]) CHECK(output["id"].is_string());
  }
  for (const auto& [id, node] : nodes)
    for (const json& edge : node["incomingEdges"]) {
      REQUIRE(nodes.contains(edge["sourceNodeId"]));
      for (const char* key : {"sourceNodeOutputId", "targetNodeInputId"}) CHECK(edge[key].is_string());
      const json& outputs = nodes[edge["sourceNodeId"]]["outputsMetadata"];
      CHECK(std::stoul(edge["sourceNodeOutputId"].get<std::string>()) < outputs.size());
    }
  return nodes;
}

bool has_edge(const Nodes& nodes, const std::string& from, const std::string& to) {
  for (const json& edge : nodes.at(to)["incomingEdges"])
    if (edge["sourceNodeId"] == from) return true;
  return false;
}

const json* attribute_of(const json& node, const std::string& key) {
  for (const json& attribute : node["attrs"])
    if (attribute["key"] == key) return &attribute["value"];
  return nullptr;
}

void check_sync(const json& sync, const Nodes& reference, const Nodes& candidate) {
  CHECK(sync["type"] == "sync_navigation");
  CHECK(sync["disableMappingFallback"] == true);
  std::set<std::string> left, right;
  for (const json& entry : sync["mappingEntries"]) {
    CHECK(entry["leftNodeIds"].size() > 0);
    CHECK(entry["rightNodeIds"].size() > 0);
    for (const std::string id : entry["leftNodeIds"]) CHECK((reference.contains(id) && left.insert(id).second));
    for (const std::string id : entry["rightNodeIds"]) CHECK((candidate.contains(id) && right.insert(id).second));
  }
  CHECK(right.size() == candidate.size());
  CHECK(left.size() > 5 * right.size());  // a compared value stands for the ops before it
}

}  // namespace

TEST_CASE("export model-explorer: graphs, pairing, error path and colours of a real comparison") {
  const Scratch scratch;
  compare_eps(scratch, " --export model-explorer=" + (scratch / "me").string());
  const Nodes reference = checked_graph(document(scratch / "me/reference.json")),
              candidate = checked_graph(document(scratch / "me/candidate.json"));
  const std::string norm = "transformer.h.0.ln_1/native_layer_norm.0";
  REQUIRE(reference.contains(norm));
  CHECK(reference.at(norm)["namespace"] == "transformer/h/0/ln_1");
  CHECK(*attribute_of(reference.at(norm), "verdict") == "fail");
  CHECK(has_edge(reference, "transformer/add.1", norm));
  CHECK(has_edge(reference, norm, "transformer.h.0.attn.c_attn/view.0"));
  CHECK_FALSE(has_edge(reference, "transformer.h.0.attn.c_attn/view.0", norm));
  CHECK(has_edge(candidate, "transformer.h.0.ln_1", "transformer.h.0.attn.c_attn"));  // as the reference flows
  const json* cause = attribute_of(reference.at("transformer.h.0.ln_2/native_layer_norm.0"), "first divergence");
  REQUIRE(cause != nullptr);
  CHECK((*cause)["nodeIds"] == json::array({norm}));
  check_sync(document(scratch / "me/sync.json"), reference, candidate);

  const json overlay = document(scratch / "me/error_path.json");
  CHECK(overlay["type"] == "edge_overlays");
  const json& edges = overlay["overlays"][0]["edges"];
  CHECK(edges[0]["sourceNodeId"] == norm);
  bool labelled = false;
  for (size_t i = 0; i < edges.size(); ++i) {
    CHECK(has_edge(reference, edges[i]["sourceNodeId"], edges[i]["targetNodeId"]));
    if (i > 0) CHECK(edges[i]["sourceNodeId"] == edges[i - 1]["targetNodeId"]);
    labelled = labelled || edges[i].contains("label");
  }
  CHECK(labelled);
  CHECK(edges.back()["targetNodeId"].get<std::string>().starts_with("lm_head/"));
}

TEST_CASE("export model-explorer: error over limit is 1 at the limit, and a failing node is red") {
  const Scratch scratch;
  compare_eps(scratch, " --export model-explorer=" + (scratch / "me").string());
  const json data = document(scratch / "me/error_over_limit.fp32.json");
  const Nodes reference = checked_graph(document(scratch / "me/reference.json"));
  CHECK(data["reference"]["thresholds"][0]["value"] == 1);
  const json& results = data["reference"]["results"];
  const json report = document(scratch / "r.json");
  CHECK(results.size() == report["ops"].size());
  for (const auto& [id, result] : results.items()) {
    REQUIRE(reference.contains(id));
    CHECK(result["value"].is_number());
    const bool failed = *attribute_of(reference.at(id), "verdict") == "fail";
    CHECK(failed == (result["value"] > 1));
    CHECK(failed == result.contains("bgColor"));
  }
  for (const json& op : report["ops"]) {
    if (op["path"] != "transformer.h.0.ln_1") continue;
    const double measured = op["forced"]["candidate_error"], limit = op["limits"][0]["value"];
    CHECK(results["transformer.h.0.ln_1/native_layer_norm.0"]["value"].get<double>() ==
          doctest::Approx(measured / limit).epsilon(.001));
  }
}

TEST_CASE("export: from a report's file the same as from the comparison itself") {
  const Scratch scratch;
  const auto at = [&](const std::string& name) { return (scratch / name).string(); };
  compare_eps(scratch, " --export model-explorer=" + at("me") + " --export perfetto=" + at("t.json") +
                           " --export csv=" + at("t.csv"));
  for (const auto& [format, file] :
       {std::pair("model-explorer", "me"), std::pair("perfetto", "t.json"), std::pair("csv", "t.csv")}) {
    const Finished done =
        parity_check("export" + file_word(scratch / "r.json") + " --to " + format + " --out " + at("again"));
    INFO(done.out << done.err);
    REQUIRE(done.status == 0);
    CHECK(done.out.find("note:") == std::string::npos);
    CHECK(shell("diff -r " + at(file) + " " + at("again")).status == 0);
    std::filesystem::remove_all(scratch / "again");
  }
}

TEST_CASE("export: without the recordings there are nodes and no edges, and that is said") {
  const Scratch scratch;
  compare_eps(scratch);
  json report = document(scratch / "r.json");
  for (const char* side : {"reference", "candidate"}) report[side]["path"] = "gone.h5";
  std::ofstream(scratch / "moved.json") << report;
  const std::string command =
      "export" + file_word(scratch / "moved.json") + " --to model-explorer --out" + file_word(scratch / "me");
  const Finished done = parity_check(command);
  CHECK(done.status == 0);
  CHECK(done.out.find("note: the reference's graph has no edges; no recording at 'gone.h5'") != std::string::npos);
  for (const char* side : {"reference", "candidate"}) {
    const Nodes nodes = checked_graph(document(scratch / ("me/" + std::string(side) + ".json")));
    CHECK(nodes.size() == report["ops"].size());
    for (const auto& [id, node] : nodes) CHECK(node["incomingEdges"].empty());
  }
  CHECK_FALSE(std::filesystem::exists(scratch / "me/error_path.json"));
  const auto pairs = reference_dump("selftest");
  CHECK(parity_check(command + " --reference" + file_word(pairs / "gpt2.fp32.h5")).out.find("note: the ref") ==
        std::string::npos);
  const Finished other = parity_check(command + " --reference" + file_word(pairs / "gpt2.fp32.fault.norm-eps-1e-6.h5"));
  CHECK(other.status == 2);
  CHECK(other.err.find("is not the recording that the report is about") != std::string::npos);
}

TEST_CASE("export refuses in one line") {
  const Scratch scratch;
  std::ofstream(scratch / "cut.json") << "{\"schema\": \"parity-report/1\", \"ops\"";
  std::ofstream(scratch / "other.json") << "{}";
  const std::string out = " --out" + file_word(scratch / "x");
  for (const std::string& arguments :
       {"export" + file_word(scratch / "cut.json") + " --to csv" + out,
        "export" + file_word(scratch / "other.json") + " --to csv" + out,
        "export" + file_word(scratch / "gone.json") + " --to csv" + out,
        "export" + file_word(scratch / "cut.json") + " --to excel" + out, std::string("compare a b --export csv"),
        std::string("compare . . --export excel=x")}) {
    CAPTURE(arguments);
    const Finished done = parity_check(arguments);
    CHECK(done.status == 2);
    CHECK(lines(done.err) == 1);
    CHECK_FALSE(std::filesystem::exists(scratch / "x"));
  }
}
