// What stands in a file never moves the terminal's cursor, begins a line of its own or turns text around: not on the
// console, not in an error, not in a report.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "command.hpp"
#include "core/plain.hpp"
#include "program_file.hpp"

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
    const std::string text = read_text(entry.path());
    CHECK_FALSE(text.empty());
    if (suffix != ".json") CHECK(unprintable(text) == "");  // JSON escapes what it must; a reader gets the name itself
    CHECK(("\n" + text).find("\n# forged") == std::string::npos);
  }
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
  if (level == "op") {
    const auto named = [](json value, const std::string& name) {
      value["n"] = name;
      return value;
    };
    for (const int id : {0, 1}) {
      json leaf = value_json(id, id == 0 ? x : w, std::to_string(id));
      leaf.update({{"e", "leaf"}, {"names", {id == 0 ? "inputs/0/" + kHostile : "weights/w" + kHostile}}});
      file.event(leaf);
    }
    file.event({{"e", "call"},
                {"id", 0},
                {"path", "block" + kHostile},
                {"call", 0},
                {"parent", -1},
                {"class", "Class" + kHostile},
                {"inputs", {named(value_json(0, x, "0"), kHostile)}},
                {"literals", {{"text", kHostile}}},
                {"grad", false},
                {"autocast", nullptr}});
    file.event({{"e", "op"},
                {"op", "aten::mul.Tensor"},
                {"in", 0},
                {"args", {ref(0), ref(1)}},
                {"kwargs", json::object()},
                {"out", {value_json(2, y, "2")}}});
    file.event({{"e", "ret"}, {"id", 0}, {"outputs", {named(value_json(2, y, "2"), kHostile)}}});
  }
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
  SUBCASE("an attribute that is not what it should be") {
    parity::testing::RecordingFile broken(file);
    broken.attribute("format", "format" + kHostile);
    broken.close();
  }
  SUBCASE("an event of an unknown kind") {
    parity::testing::RecordingFile broken(file);
    broken.event({{"e", kHostile}});
    broken.close();
  }
  SUBCASE("a value of an unknown dtype, under a key that is not there") {
    parity::testing::RecordingFile broken(file);
    broken.event({{"e", "leaf"}, {"v", 0}, {"d", "float32"}, {"s", {2}}, {"k", kHostile}, {"names", json::array()}});
    broken.event({{"e", "op"},
                  {"op", "aten::neg"},
                  {"in", -1},
                  {"args", {ref(0)}},
                  {"kwargs", json::object()},
                  {"out", {{{"v", 1}, {"d", "float32"}, {"s", {2}}, {"k", kHostile}}}}});
    broken.close();
  }
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
