// SHA-256 of both sides of a comparison: in the report unless it is declined.
#include <doctest/doctest.h>

#include "command.hpp"

using namespace parity::test;
using nlohmann::json;

namespace {

const std::string kPair = reference_dump("selftest/gpt2.fp32.h5").string() + " " +
                          reference_dump("selftest/gpt2.fp32.fault.norm-eps.h5").string();

json compared_with(const std::string& options) {
  const Scratch scratch;
  const auto file = scratch / "r.json";
  const Finished done = parity_check("compare " + kPair + " --quiet --json " + file.string() + options);
  INFO(done.err);
  CHECK(done.status == 1);
  CHECK_FALSE(std::filesystem::exists(file.string() + ".units"));
  return json::parse(read_text(file));
}

}  // namespace

TEST_CASE("cli: --no-digest leaves SHA-256 out, says so, and changes no row") {
  const json with = compared_with(""), without = compared_with(" --no-digest");
  for (const char* side : {"reference", "candidate"}) {
    CAPTURE(side);
    CHECK(with[side]["sha256"].get<std::string>().size() == 64);
    CHECK(without[side]["sha256"] == "");
    CHECK(with[side]["path"] == without[side]["path"]);
  }
  CHECK(with["warnings"].dump().find("--no-digest") == std::string::npos);
  CHECK(without["warnings"].dump().find("--no-digest") != std::string::npos);
  CHECK(with["ops"] == without["ops"]);
}

TEST_CASE("cli: what is told by SHA-256 refuses --no-digest") {
  const Scratch scratch;
  const Finished done =
      parity_check("compare " + kPair + " --no-digest --resume --json " + (scratch / "r.json").string());
  CHECK(done.status == 2);
  CHECK(lines(done.err) == 1);
  CHECK(done.err.find("--resume") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(scratch / "r.json"));
}
