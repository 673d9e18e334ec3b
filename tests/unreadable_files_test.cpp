// Every door through which a file comes in: one that cannot be read ends the program with status 2 and one line that
// names it, whatever is wrong with it and whatever it was wanted for.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <functional>

#include "command.hpp"
#include "program_file.hpp"
#include "test_places.hpp"
#include "zip_writer.hpp"

using namespace parity::test;
using parity::testing::contains;
using parity::testing::json;
using parity::testing::RecordingFile;

namespace {

const std::filesystem::path kDamagedFrom = std::filesystem::path(PARITY_SOURCE_DIR) / "tests" / "data";
const std::filesystem::path kGood = kDamagedFrom / "gpt2.h5";

void put(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::string binary() {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 2654435761U >> 13);
  return bytes + " = *\n";
}

// os.system("true"), as pickle would call it.
const std::string kEvil =
    "\x80\x02"
    "cos\nsystem\nX\x04" +
    std::string(3, '\0') + "true\x85R.";

struct Bad {
  std::string name;
  std::function<void(const std::filesystem::path& file)> make;
};

void check_named(const std::string& command, const std::filesystem::path& file) {
  const Finished done = parity_check(command);
  INFO(command << "\n" << done.out << done.err);
  CHECK(done.status == 2);
  CHECK(lines(done.err) == 1);
  CHECK(done.err.starts_with("parity-check: "));
  CHECK(contains(done.err, file.string()));
  CHECK(done.err.size() < 600);
  CHECK(done.out.empty());
}

// Each bad file at three of the commands that take such a one, in turn, so that every command meets several.
void check_in_turn(const std::vector<Bad>& all, const std::vector<std::string>& others) {
  size_t turn = 0;
  for (const Bad& bad : all) {
    CAPTURE(bad.name);
    const Scratch scratch;
    const auto file = scratch / bad.name;
    bad.make(file);
    const std::string name = " '" + file.string() + "'", good = " '" + kGood.string() + "'";
    std::vector<std::string> commands{"compare" + good + name, "inspect" + name, "compare" + name + good,
                                      "weights" + name + good, "weights" + good + name};
    for (const std::string& other : others) commands.push_back(other + name);
    for (int i = 0; i < 3; ++i) check_named(commands[turn++ % commands.size()], file);
  }
}

// Take recordings alone.
const std::vector<std::string> kOfRecordings{"replay", "extract --layer x -o /dev/null", "paths",
                                             "run --layer all --reference"};

// A point without a program, under attributes of the caller's choice.
void write_recording(const std::filesystem::path& path, const std::function<void(RecordingFile&)>& attributes) {
  RecordingFile file(path);
  const at::Tensor x = at::ones({2, 2});
  file.value("0", x);
  file.link("weights/w", "0");
  json point = parity::testing::value_json(0, x, "0");
  point.update({{"e", "point"}, {"path", "a"}, {"call", 0}, {"role", "output"}});
  file.event(point);
  attributes(file);
  file.close();
}

}  // namespace

TEST_CASE("unreadable: recordings, at every command that takes one") {
  const std::vector<Bad> all{
      {"missing.h5", [](const auto&) {}},
      {"empty.h5", [](const auto& file) { put(file, ""); }},
      {"binary.h5", [](const auto& file) { put(file, binary()); }},
      {"cut.h5", [](const auto& file) { put(file, read_text(kGood).substr(0, 5000)); }},
      {"format.h5",
       [](const auto& file) {
         write_recording(file, [](RecordingFile& recording) { recording.attribute("format", "parity-dump/9"); });
       }},
      {"provenance.h5",
       [](const auto& file) {
         write_recording(file, [](RecordingFile& recording) { recording.attribute("provenance", "[1, 2]"); });
       }},
      {"events.h5", [](const auto& file) {
         write_recording(file, [](RecordingFile& recording) { recording.text("{\"e\": \n"); });
       }}};
  check_in_turn(all, kOfRecordings);
}

TEST_CASE("unreadable: what a recording says about itself may be of another kind than it should") {
  const Scratch scratch;
  const auto file = scratch / "threads.h5";
  std::string key = "threads";
  json value = "many";
  SUBCASE("the number of threads") {}
  SUBCASE("the processor") { key = "cpu", value = {1, 2}; }
  SUBCASE("the version") { key = "torch", value = 2.13; }
  write_recording(file, [&](RecordingFile& recording) {
    recording.attribute("provenance", json{{key, value}}.dump());
  });
  const Finished done = parity_check("inspect '" + file.string() + "'");
  INFO(done.out << done.err);
  CHECK(done.status == 2);
  CHECK(lines(done.err) == 1);
  CHECK(done.err.starts_with("parity-check: " + file.string() + ": "));
}

TEST_CASE("unreadable: folders in place of files") {
  const Scratch scratch;
  const auto folder = scratch / "folder.h5";
  std::filesystem::create_directory(folder);
  const std::string name = " '" + folder.string() + "'", good = " '" + kGood.string() + "'";
  for (const std::string& command :
       {"inspect" + name, "compare" + name + good, "compare" + good + name, "weights" + name + good, "replay" + name,
        "extract --layer x -o /dev/null" + name, "run --layer all --reference" + name, "paths" + name,
        "compare" + good + good + " --map" + name, "compare" + good + good + " --thresholds" + name,
        "bench wan --config" + name, "selftest --suite" + name})
    check_named(command, folder);
}

TEST_CASE("unreadable: sets of tensors") {
  const std::string npz = read_text(kDamagedFrom / "tensors.npz"), pt = read_text(kDamagedFrom / "tensors.pt"),
                    npy = read_text(kDamagedFrom / "tensors.npy");
  const auto file_of = [](const std::string& bytes) { return [bytes](const auto& file) { put(file, bytes); }; };
  const std::vector<Bad> all{{"cut.npz", file_of(npz.substr(0, npz.size() / 2))},
                             {"cut.npy", file_of(npy.substr(0, npy.size() - 3))},
                             {"cut.pt", file_of(pt.substr(0, pt.size() - 40))},
                             {"plain.pt", file_of(kEvil)},
                             {"evil.pt",
                              [](const auto& file) {
                                const auto size = static_cast<uint32_t>(kEvil.size());
                                write_zip(file, {{"m/data.pkl", kEvil, false, size}});
                              }},
                             {"long.safetensors", file_of(std::string("\xff\xff\xff\x7f\0\0\0\0{}", 10))},
                             {"text.safetensors", file_of("not at all a safetensors file")},
                             {"binary.npz", file_of(binary())},
                             {"empty.npy", file_of("")}};
  check_in_turn(all, {});
}

TEST_CASE("unreadable: map files and thresholds") {
  const Scratch scratch;
  const auto file = scratch / "given";
  std::string bytes, option = "--thresholds";
  SUBCASE("map: binary") { bytes = binary(), option = "--map"; }
  SUBCASE("map: one endless line") { bytes = std::string(1 << 20, 'x'), option = "--map"; }
  SUBCASE("map: a number too large for one") { bytes = "a = b perm(99999999999999999999)\n", option = "--map"; }
  SUBCASE("map: an unbalanced brace") { bytes = "a.{i = b\n", option = "--map"; }
  SUBCASE("thresholds: NaN") { bytes = R"({"z": {"value": NaN, "origin": "x"}})"; }
  SUBCASE("thresholds: beyond any number") { bytes = R"({"z": {"value": 1e999, "origin": "x"}})"; }
  SUBCASE("thresholds: a text for a number") { bytes = R"({"z": {"value": "6", "origin": "x"}})"; }
  SUBCASE("thresholds: paths that are no text") { bytes = R"({"accept_paths": [1]})"; }
  SUBCASE("thresholds: binary") { bytes = binary(); }
  SUBCASE("thresholds: empty") {}
  put(file, bytes);
  const std::string good = " '" + kGood.string() + "'";
  check_named("compare" + good + good + " " + option + " '" + file.string() + "'", file);
}
