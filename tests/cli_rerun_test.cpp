// "rerun" of a row, pasted into a shell, decides that row as it was decided: whatever the files are called, and with
// the map, the limits and the accepted roundings that decided it.
#include <doctest/doctest.h>

#include "command.hpp"
#include "core/shell.hpp"
#include "test_places.hpp"

using namespace parity::test;
using nlohmann::json;
using parity::shell_word;

namespace {

const std::string kNorm = "transformer.h.0.ln_1";

/// Two recordings in a folder whose name means much to a shell.
class NastyFolder {
 public:
  explicit NastyFolder(const std::string& candidate) {
    std::filesystem::create_directories(folder());
    const auto pairs = reference_dump("selftest");
    std::filesystem::copy(pairs / "gpt2.bf16.h5", folder() / "ref $x.h5");
    std::filesystem::copy(pairs / candidate, folder() / "cand `id`.h5");
  }
  std::filesystem::path folder() const { return scratch_ / "it's a \"$(touch owned)\" & folder"; }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder() / name) << text;
    return shell_word((folder() / name).string());
  }
  Finished compare(const std::string& more, json& row) const {
    const Finished done =
        parity_check("compare " + shell_word((folder() / "ref $x.h5").string()) + " " +
                     shell_word((folder() / "cand `id`.h5").string()) + " --no-diagnosis --quiet --json " +
                     shell_word((folder() / "r.json").string()) + more);
    INFO(done.err);
    REQUIRE(done.status < 2);
    const json report = json::parse(read_text(folder() / "r.json"));
    for (const json& op : report["ops"])
      if (op["path"] == kNorm) row = op;
    return done;
  }

 private:
  Scratch scratch_;
};

/// The line as it stands, in a shell of its own in which `parity-check` is found.
Finished pasted(const std::string& line) {
  const auto folder = std::filesystem::path(PARITY_CHECK_BINARY).parent_path();
  return shell("PATH=" + shell_word(folder.string()) + ":$PATH bash -c " + shell_word(line));
}

void check_the_same(const json& row) {
  const Scratch scratch;
  const std::string line =
      row["rerun"].get<std::string>() + " --no-diagnosis --quiet --json " + (scratch / "r.json").string();
  const Finished done = pasted(line);
  INFO(line << "\n" << done.err);
  REQUIRE(done.status < 2);
  const json ops = json::parse(read_text(scratch / "r.json"))["ops"];
  REQUIRE(ops.size() == 1);
  for (const char* key : {"path", "candidate_path", "verdict", "gate"}) CHECK(ops[0][key] == row[key]);
}

}  // namespace

TEST_CASE("cli: a row's rerun line keeps the map, whatever files are called") {
  const NastyFolder here("gpt2.bf16.h5");
  json row;
  here.compare(" --map " + here.file("a map.txt", kNorm + " = transformer.h.0.ln_2\n"), row);
  CHECK(row["candidate_path"] == "transformer.h.0.ln_2");
  CHECK(row["verdict"] == "fail");
  check_the_same(row);
}

TEST_CASE("cli: a row's rerun line keeps accepted roundings and limits") {
  const NastyFolder here("gpt2.bf16.fault.norm-in-bf16.h5");
  json plain_row, row;
  here.compare("", plain_row);
  REQUIRE(plain_row["verdict"] == "fail");
  REQUIRE(plain_row["gate"] == "dtype_path");
  check_the_same(plain_row);
  for (const std::string& more : {std::string(" --accept-path 'transformer.h.*.ln_?'"),
                                  " --thresholds " + here.file("my limits.json", R"({"accept_paths": ["*.ln_1"]})")}) {
    here.compare(more, row);
    CHECK(row["verdict"] == "pass");
    check_the_same(row);
  }
}

TEST_CASE("cli: a report's own command is one that a shell takes") {
  const NastyFolder here("gpt2.bf16.h5");
  json row;
  here.compare("", row);
  const json first = json::parse(read_text(here.folder() / "r.json"));
  std::filesystem::remove(here.folder() / "r.json");
  CHECK(pasted(first["command"]).status < 2);
  CHECK(json::parse(read_text(here.folder() / "r.json"))["ops"] == first["ops"]);
}
