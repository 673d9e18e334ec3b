// Damaged, foreign and malicious files: one clear error each, naming file and dataset; never a crash, a hang or a
// silent skip.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "core/error.hpp"
#include "dump/verify.hpp"
#include "recording_file.hpp"
#include "test_places.hpp"
#include "trace/replay.hpp"

using namespace parity;
using namespace parity::testing;
using nlohmann::json;

namespace {

template <typename Run>
std::string error_of(Run run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string opening(const std::filesystem::path& path) {
  return error_of([&] { const Dump dump(path); });
}

// The error of reading value "0" of a recording that `write` fills.
template <typename Write>
std::string reading(Write write) {
  const TemporaryFile path("hostile.h5");
  RecordingFile file(path.path());
  write(file);
  file.close();
  const Dump dump(path.path());
  std::string message = error_of([&] { dump.value("0"); });
  if (message != "no error") CHECK(contains(message, path.path().string() + ": dataset '/values/0'"));
  return message;
}

const float kOnes[24] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

}  // namespace

TEST_CASE("dump: what is not a recording says so") {
  const TemporaryFile path("foreign.h5");
  CHECK(contains(opening("/nonexistent/x.h5"), "/nonexistent/x.h5: no such file"));
  CHECK(contains(opening("/tmp"), "/tmp: is not a regular file"));
  write_bytes(path.path(), "");
  CHECK(contains(opening(path.path()), "is empty"));
  write_bytes(path.path(), "this is a text");
  CHECK(contains(opening(path.path()), "is not an HDF5 file"));
  for (const auto& [attribute, text, message] :
       {std::tuple{"format", static_cast<const char*>(nullptr), "no recording (attribute 'format' is missing)"},
        {"format", "parity-dump/2", "format 'parity-dump/2' is not 'parity-dump/1'"},
        {"level", nullptr, "attribute 'level' is missing"},
        {"producer", nullptr, "attribute 'producer' is missing"},
        {"provenance", "[1", "attribute 'provenance' is not a JSON object"}}) {
    RecordingFile file(path.path());
    if (text == nullptr)
      file.no_attribute(attribute);
    else
      file.attribute(attribute, std::string(text));
    file.close();
    CHECK(contains(opening(path.path()), message));
  }
}

TEST_CASE("dump: truncated at any length") {
  const TemporaryFile whole("whole.h5"), cut("cut.h5");
  RecordingFile file(whole.path());
  file.value("0", at::ones({64, 64}));
  file.event({{"e", "note"}});
  file.close();
  const std::string bytes = bytes_of(whole.path());
  for (size_t size = 1; size < bytes.size(); size += bytes.size() / 40) {
    write_bytes(cut.path(), bytes.substr(0, size));
    CHECK(contains(opening(cut.path()), cut.path().string()));
  }
}

TEST_CASE("dump: types and attributes that do not belong together") {
  CHECK(reading([](RecordingFile& f) { f.raw("0", H5T_IEEE_F32LE, {2, 3}, kOnes, "float32"); }) == "no error");
  CHECK(contains(reading([](RecordingFile& f) {
                   f.raw("0", H5T_IEEE_F32LE, {2, 3}, kOnes, "");
                 }),
                 "has no attribute 'dtype'"));
  CHECK(contains(reading([](RecordingFile& f) { f.raw("0", H5T_IEEE_F32LE, {2}, kOnes, "float17"); }),
                 "unknown dtype 'float17'"));
  CHECK(contains(reading([](RecordingFile& f) { f.raw("0", H5T_IEEE_F32LE, {2}, kOnes, "int32"); }),
                 "says dtype=int32 but holds 32-bit floats"));
  CHECK(contains(reading([](RecordingFile& f) { f.raw("0", H5T_IEEE_F32BE, {2}, kOnes, "float32"); }),
                 "holds 32-bit floats"));
  CHECK(contains(reading([](RecordingFile& f) { f.raw("0", H5T_STD_U32LE, {2}, kOnes, "int32"); }),
                 "holds 32-bit integers"));
  CHECK(contains(reading([](RecordingFile& f) { f.raw("0", H5T_STD_I64LE, {2}, kOnes, "complex64"); }),
                 "holds 64-bit integers"));
  // The two 16-bit floats must never be taken for each other.
  for (const auto& [stored, said] : {std::pair{at::kHalf, "bfloat16"}, {at::kBFloat16, "float16"}})
    CHECK(contains(reading([&](RecordingFile& f) {
                     const hid_t type = file_type(stored);
                     f.raw("0", type, {2}, kOnes, said);
                     H5Tclose(type);
                   }),
                   "but holds 16-bit floats"));
  CHECK(contains(reading([](RecordingFile& f) {
                   const hid_t opaque = H5Tcreate(H5T_OPAQUE, 2);
                   f.raw("0", opaque, {2}, kOnes, "bfloat16");
                   H5Tclose(opaque);
                 }),
                 "ml_dtypes.bfloat16"));
  CHECK(contains(reading([](RecordingFile& f) {
                   const uint8_t two = 2;
                   f.raw("0", H5T_STD_U8LE, {1}, &two, "bool");
                 }),
                 "values other than 0 and 1"));
}

TEST_CASE("dump: shapes and sizes that cannot be") {
  CHECK(contains(reading([](RecordingFile& f) {
                   f.raw("0", H5T_IEEE_F32LE, {1u << 30, 1u << 30}, nullptr, "float32");
                 }),
                 "declares"));
  CHECK(contains(reading([](RecordingFile& f) {
                   f.raw("0", H5T_IEEE_F32LE, {1ull << 40, 1ull << 40}, nullptr, "float32");
                 }),
                 "declares an impossible shape"));
  CHECK(contains(reading([](RecordingFile& f) { f.raw("0", H5T_IEEE_F32LE, {5}, nullptr, "float32"); }),
                 "declares 20 bytes but 0 are stored"));
  for (const auto& strides : std::vector<std::vector<int64_t>>{{1}, {1, 1}, {1, 1000000000}, {-3, 1}, {3, 0}})
    CHECK(contains(reading([&](RecordingFile& f) {
                     f.raw("0", H5T_IEEE_F32LE, {2, 3}, kOnes, "float32");
                     f.integers("0", "strides", strides);
                   }),
                   "do not lay out shape [2, 3] densely"));
  for (const int64_t bytes : {-8, 64, 3})
    CHECK(contains(reading([&](RecordingFile& f) {
                     f.raw("0", H5T_IEEE_F32LE, {2, 3}, kOnes, "float32");
                     f.integers("0", "misalignment", {bytes});
                   }),
                   "attribute 'misalignment'"));
  CHECK(contains(reading([](RecordingFile& f) {
                   H5Gclose(H5Gcreate2(f.id(), "values/0", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
                 }),
                 "is not a dataset"));
  CHECK(contains(reading([](RecordingFile&) {}), "is missing"));
}

TEST_CASE("dump: links out of the file, in circles or to nothing are not followed") {
  const auto linked = [](auto link) { return reading([&](RecordingFile& f) { link(f.id()); }); };
  CHECK(contains(linked([](hid_t f) { H5Lcreate_soft("/values/0", f, "values/0", H5P_DEFAULT, H5P_DEFAULT); }),
                 "is missing"));
  CHECK(contains(
      linked([](hid_t f) { H5Lcreate_external("/etc/passwd", "/x", f, "values/0", H5P_DEFAULT, H5P_DEFAULT); }),
      "is missing"));
  CHECK(contains(linked([](hid_t f) { H5Lcreate_hard(f, "values", f, "values/0", H5P_DEFAULT, H5P_DEFAULT); }),
                 "is not a dataset"));
  CHECK(contains(linked([](hid_t f) {
                   const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
                   const hsize_t size = 4;
                   const hid_t space = H5Screate_simple(1, &size, nullptr);
                   H5Pset_external(create, "/etc/passwd", 0, 16);
                   H5Dclose(H5Dcreate2(f, "values/0", H5T_IEEE_F32LE, space, H5P_DEFAULT, create, H5P_DEFAULT));
                   H5Sclose(space);
                   H5Pclose(create);
                 }),
                 "has no attribute 'dtype'"));
}

TEST_CASE("dump: a key is one name, never a path, and a group behind a soft link is not there") {
  const TemporaryFile path("path.h5");
  RecordingFile file(path.path());
  file.value("0", at::ones({2}));
  H5Gclose(H5Gcreate2(file.id(), "values/inner", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Lcreate_hard(file.id(), "values/0", file.id(), "values/inner/x", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/values", file.id(), "inputs/7", H5P_DEFAULT, H5P_DEFAULT);
  file.close();
  const Dump dump(path.path());
  CHECK(dump.has_value("0"));
  for (const char* key : {"inner/x", "../values/0", "./0", "/values/0"}) {
    CAPTURE(key);
    CHECK_FALSE(dump.has_value(key));
    CHECK(contains(error_of([&] { dump.value(key); }), "is missing"));
    CHECK(contains(error_of([&] { dump.value_type(key); }), "is missing"));
  }
  CHECK_FALSE(dump.has_input("0", 7));
  CHECK(contains(error_of([&] { dump.input("0", 7); }), "is missing"));
}

TEST_CASE("dump: a bad line of the program names its number") {
  const TemporaryFile path("lines.h5");
  RecordingFile file(path.path());
  file.event({{"e", "note"}});
  file.text("{\"e\": \"op\",\n");
  file.close();
  CHECK(contains(opening(path.path()), "dataset '/trace/events', line 2"));
}

TEST_CASE("dump: verify names what is absent, of another kind, or not finite") {
  const TemporaryFile path("verify.h5");
  const at::Tensor x = at::tensor({1.0f, INFINITY, NAN});
  const auto leaf = [](json value) {
    value.update({{"e", "leaf"}, {"names", json::array()}});
    return value;
  };
  RecordingFile file(path.path());
  file.value("0", x);
  file.value("1", x);
  file.value("7", x);
  file.event(leaf(value_json(0, x, "0")));
  CHECK(file.id() >= 0);
  SUBCASE("nothing wrong") {
    file.event(leaf(value_json(1, x, "1")));
    file.close();
    std::vector<std::string> information;
    CHECK(verify(Dump(path.path()), &information).empty());
    CHECK(information == std::vector<std::string>{"value '0' has 2 non-finite of 3 elements",
                                                  "value '1' has 2 non-finite of 3 elements",
                                                  "value '7' is stored but no event refers to it"});
  }
  SUBCASE("interrupted") {
    file.event(leaf(value_json(1, x, "1")));
    file.close(/*complete=*/false);
    CHECK(verify(Dump(path.path())) ==
          std::vector<std::string>{"the recording is incomplete: it was interrupted, or an exception left it"});
  }
  SUBCASE("another dtype, an absent value, an absent weight") {
    file.event(leaf(value_json(1, x.to(at::kDouble), "1")));
    json gone = leaf(value_json(2, x, "2"));
    gone["names"] = {"weights/w"};
    file.event(gone);
    file.close();
    CHECK(verify(Dump(path.path())) ==
          std::vector<std::string>{"value '1' is stored as float32 [3], event 2 says float64 [3]",
                                   "event 3 refers to value '2', which is not stored",
                                   "'/weights/w' is named by the events but missing"});
  }
}

TEST_CASE("dump: an interrupted recording whose events name what is not there was torn, and is refused") {
  const TemporaryFile path("torn.h5");
  const at::Tensor x = at::ones({3});
  RecordingFile file(path.path());
  file.value("0", x);
  file.event({{"e", "op"}, {"args", {value_json(0, x, "0"), value_json(1, x, "1")}}});
  bool complete = false;
  SUBCASE("interrupted") {}
  SUBCASE("complete: said by verify and by whoever reads the value") { complete = true; }
  file.close(complete);
  CHECK(opening(path.path()) ==
        (complete ? "no error"
                  : path.path().string() +
                        ": is torn, interrupted in the middle of a write: value '1', which an event names, cannot be "
                        "found or read; record it again"));
}

TEST_CASE("dump: names that are not text are refused") {
  const TemporaryFile path("names.h5");
  RecordingFile file(path.path());
  file.value("\x90\xff", at::ones({3}));
  file.close();
  const Dump dump(path.path());
  CHECK(contains(error_of([&] { dump.value_keys(); }), "group '/values' holds names that are not text"));
}

TEST_CASE("dump: recordings with flipped bytes are read or refused") {
  const std::string bytes = bytes_of(std::filesystem::path(PARITY_SOURCE_DIR) / "tests/data/in_place.h5");
  const TemporaryFile path("flipped.h5");
  int refused = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    std::string damaged = bytes;
    for (int i = 0; i < 4; ++i)
      damaged[random() % (seed % 2 == 0 ? 4096 : damaged.size())] = static_cast<char>(random());
    write_bytes(path.path(), damaged);
    const std::string message = error_of([&] {
      const Dump dump(path.path());
      verify(dump);
      const Program program = load_program(dump);
      replay(dump, program, {}, {});
    });
    if (message == "no error") continue;
    ++refused;
    CHECK(contains(message, path.path().string()));
    CHECK_FALSE(contains(message, "\n"));
  }
  CHECK(refused > 5);
}
