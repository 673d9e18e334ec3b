// What stands in a file never moves the terminal's cursor, begins a line of its own or turns text around: not on the
// console, not in an error, not in a report.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>

#include "command.hpp"
#include "core/plain.hpp"
#include "program_file.hpp"
#include "test_places.hpp"

using namespace parity::test;
using parity::testing::json;
using parity::testing::ref;
using parity::testing::value_json;

namespace {

// Clears the screen, sets the window's title, begins a line, writes backwards, and is a C1 control sequence.
const std::string kHostile = "x\x1b[2J\x1b]0;owned\x07\n# forged\r\u202e\u009b31m";

// Characters that text must not hold; line ends are the program's own.
std::string unprintable(const std::string& text) {
  std::string found;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n') || c == 0x7f) found += fmt::format("{:02x} at {}; ", c, i);
  }
  for (const char* sequence : {"\u202e", "\u009b"})
    if (text.find(sequence) != std::string::npos) found += "a mark that is not to be seen; ";
  return found;
}

void check_clean(const Finished& done, int errors) {
  INFO(done.out << done.err);
  CHECK(unprintable(done.out) == "");
  CHECK(unprintable(done.err) == "");
  CHECK(lines(done.err) == errors);
  CHECK(("\n" + done.out).find("\n# forged") == std::string::npos);
}

void check_clean_files(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string suffix = entry.path().extension();
    if (suffix != ".md" && suffix != ".html" && suffix != ".xml" && suffix != ".svg" && suffix != ".json") continue;
    CAPTURE(entry.path().string());
    std::string text = read_text(entry.path());
    CHECK_FALSE(text.empty());
    if (suffix == ".svg")
      text.erase(std::remove(text.begin(), text.end(), '\t'), text.end());  // gnuplot indents by them
    if (suffix != ".json") CHECK(unprintable(text) == "");  // JSON escapes what it must; a reader gets the name itself
    CHECK(("\n" + text).find("\n# forged") == std::string::npos);
  }
}

json with_name(json value, const std::string& name) {
  value["n"] = name;
  return value;
}

json call(int id, const std::string& path, const json& input) {
  return {{"e", "call"},
          {"id", id},
          {"path", path},
          {"call", 0},
          {"parent", id - 1},
          {"class", "Class" + kHostile},
          {"inputs", json::array({input})},
          {"literals", {{"text", kHostile}}},
          {"grad", false},
          {"autocast", nullptr}};
}

// The model, a module in it, and in this one op on the leaves 0 (an input) and 1 (a weight), which gives value 2.
void write_program(parity::testing::RecordingFile& file, const std::array<at::Tensor, 3>& values) {
  const auto& [x, w, y] = values;
  for (const int id : {0, 1}) {
    json leaf = value_json(id, id == 0 ? x : w, std::to_string(id));
    leaf.update({{"e", "leaf"}, {"names", {id == 0 ? "inputs/0/" + kHostile : "weights/w" + kHostile}}});
    file.event(leaf);
  }
  const json input = with_name(value_json(0, x, "0"), kHostile), result = with_name(value_json(2, y, "2"), kHostile);
  file.event(call(0, "", input));
  file.event(call(1, "block" + kHostile, input));
  file.event({{"e", "op"},
              {"op", "aten::mul.Tensor"},
              {"in", 1},
              {"args", {ref(0), ref(1)}},
              {"kwargs", json::object()},
              {"out", {value_json(2, y, "2")}}});
  for (const int id : {1, 0}) file.event({{"e", "ret"}, {"id", id}, {"outputs", json::array({result})}});
}

// A module and a weight of that name, an op inside; the values as given.
void write(const std::filesystem::path& path, float factor, const std::string& level = "op") {
  parity::testing::RecordingFile file(path);
  file.attribute("model", "Model" + kHostile);
  file.attribute("producer", "producer" + kHostile);
  file.attribute("level", level);
  file.attribute("provenance", json{{"torch", kHostile}, {"cpu", kHostile}, {"config", {{"a", factor}}}}.dump());
  at::manual_seed(1);
  const at::Tensor x = at::randn({4, 32}), w = at::randn({4, 32}), y = (x * w) * factor;
  file.value("0", x);
  file.value("1", w);
  file.value("2", y);
  file.link("inputs/0/" + kHostile, "0");
  file.link("weights/w" + kHostile, "1");
  if (level == "op") write_program(file, {x, w, y});
  json point = value_json(2, y, "2");
  point.update({{"e", "point"}, {"path", "point" + kHostile}, {"call", 0}, {"role", "output"}, {"class", kHostile}});
  file.event(point);
  file.close();
}

std::string quoted(const std::filesystem::path& path) { return " '" + path.string() + "'"; }

}  // namespace

TEST_CASE("plain: control characters, marks of direction and bytes that are no text become escapes, twice as once") {
  CHECK(parity::plain("a\x1b[2Jb\n\r\x7f") == "a\\x1b[2Jb\\n\\x0d\\x7f");
  CHECK(parity::plain("\u009b\u202e\u2028\ufeff") == "\\x9b\\u202e\\u2028\\ufeff");
  CHECK(parity::plain("\xff\xc0\x80\xed\xa0\x80") == "\\xff\\xc0\\x80\\xed\\xa0\\x80");
  CHECK(parity::plain("häuser/層.0 → 🙂") == "häuser/層.0 → 🙂");
  CHECK(parity::plain(parity::plain(kHostile)) == parity::plain(kHostile));
}

TEST_CASE("cli: names in a recording reach the console and the reports as printable text") {
  const Scratch scratch;
  const auto good = scratch / "good.h5", bad = scratch / "bad.h5", out = scratch / "out", extract = scratch / "e.h5";
  write(good, 1);
  write(bad, 1.5F);
  check_clean(parity_check("inspect" + quoted(good)), 0);
  check_clean(parity_check("inspect --ops" + quoted(good)), 0);
  check_clean(parity_check("inspect --verify" + quoted(good) + " --json" + quoted(scratch / "i.json")), 0);
  CHECK(parity_check("inspect" + quoted(good)).out.find("block") != std::string::npos);
  const Finished compared = parity_check("compare" + quoted(good) + quoted(bad) + " --out" + quoted(out));
  CHECK(compared.status == 1);
  check_clean(compared, 0);
  check_clean_files(out);
  check_clean(parity_check("paths" + quoted(good) + quoted(bad)), 0);
  check_clean(parity_check("blame" + quoted(good) + quoted(bad)), 0);
  check_clean(parity_check("weights" + quoted(good) + quoted(bad)), 0);
  const std::string layer = "block" + kHostile;
  const Finished extracted = parity_check("extract" + quoted(good) + " --layer '" + layer + "' -o" + quoted(extract));
  CHECK(extracted.status == 0);
  check_clean(extracted, 0);
  check_clean(parity_check("replay" + quoted(extract)), 0);
}

TEST_CASE("cli: names in points and sketches reach the console as printable text") {
  const Scratch scratch;
  const auto good = scratch / "good.h5", bad = scratch / "bad.h5";
  write(good, 1, "sketch");
  write(bad, 1.5F, "sketch");
  check_clean(parity_check("inspect" + quoted(good)), 0);
  check_clean(parity_check("compare" + quoted(good) + quoted(bad) + " --out" + quoted(scratch / "out")), 0);
  check_clean_files(scratch / "out");
}

TEST_CASE("cli: errors quote names as printable text, on one line") {
  const Scratch scratch;
  const auto file = scratch / "good.h5";
  write(file, 1);
  const std::string name = (scratch / "").string() + kHostile;
  for (const std::string& command :
       {"inspect '" + name + "'", "compare '" + name + "' '" + name + "'", "video '" + name + "' '" + name + "'",
        "inspect" + quoted(file) + " --layer '" + kHostile + "'",
        "extract" + quoted(file) + " --layer '" + kHostile + "' -o" + quoted(scratch / "e.h5"),
        "weights '" + name + "' '" + name + "'", "inspect '--" + kHostile + "'"}) {
    CAPTURE(parity::plain(command));
    const Finished done = parity_check(command);
    CHECK(done.status == 2);
    check_clean(done, 1);
  }
}

TEST_CASE("cli: problems within a recording quote what it holds as printable text") {
  const Scratch scratch;
  const auto file = scratch / "bad.h5";
  parity::testing::RecordingFile broken(file);
  SUBCASE("an attribute that is not what it should be") { broken.attribute("format", "format" + kHostile); }
  SUBCASE("an event of an unknown kind") { broken.event({{"e", kHostile}}); }
  SUBCASE("a value of an unknown dtype, under a key that is not there") {
    broken.event({{"e", "leaf"}, {"v", 0}, {"d", "float32"}, {"s", {2}}, {"k", kHostile}, {"names", json::array()}});
    broken.event({{"e", "op"},
                  {"op", "aten::neg"},
                  {"in", -1},
                  {"args", {ref(0)}},
                  {"kwargs", json::object()},
                  {"out", {{{"v", 1}, {"d", "float32"}, {"s", {2}}, {"k", kHostile}}}}});
  }
  broken.close();
  for (const std::string command : {"inspect --verify", "replay"}) {
    const Finished done = parity_check(command + quoted(file));
    CHECK(done.status != 0);
    INFO(done.err);
    CHECK(unprintable(done.out + done.err) == "");
    CHECK(("\n" + done.err).find("\n# forged") == std::string::npos);
  }
}

TEST_CASE("cli: only print.hpp prints") {
  const auto folder = std::filesystem::path(PARITY_SOURCE_DIR) / "src" / "cli";
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename() == "print.hpp" || entry.path().extension() == ".txt") continue;
    const std::string text = read_text(entry.path());
    ++seen;
    for (const char* word : {"fmt::print", "std::cout", "std::cerr", "fputs(", "printf("}) {
      CAPTURE(entry.path().string());
      CAPTURE(word);
      CHECK(text.find(word) == std::string::npos);
    }
  }
  CHECK(seen > 20);
}
