// HDF5 files whose structure is a trap: deep nests, circles, many names for one thing. One line, quickly.
#include <doctest/doctest.h>

#include <chrono>

#include "command.hpp"
#include "recording_file.hpp"

using namespace parity::test;
using parity::testing::contains;
using parity::testing::RecordingFile;

namespace {

struct Timed {
  Finished done;
  double seconds = 0;
};

Timed timed(const std::string& arguments) {
  const auto start = std::chrono::steady_clock::now();
  Timed result{parity_check(arguments)};
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

hid_t group(hid_t parent, const char* name) { return H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT); }

}  // namespace

TEST_CASE("dump: groups nested without end are refused at once") {
  const Scratch scratch;
  const auto file = scratch / "nested.h5";
  RecordingFile recording(file);
  const at::Tensor x = at::ones({2, 2});
  recording.value("0", x);
  auto point = parity::testing::value_json(0, x, "0");
  point.update({{"e", "point"}, {"path", "a"}, {"call", 0}, {"role", "output"}});
  recording.event(point);
  int levels = 1500;
  bool refused = true;
  SUBCASE("1500") {}
  SUBCASE("12: odd, but no harm") { levels = 12, refused = false; }
  hid_t inner = group(recording.id(), "g");
  for (int i = 1; i < levels; ++i) {
    const hid_t next = group(inner, "g");
    H5Gclose(inner);
    inner = next;
  }
  H5Gclose(inner);
  recording.close();
  const std::string name = "'" + file.string() + "'";
  for (const std::string& command : {"inspect " + name, "compare " + name + " " + name}) {
    CAPTURE(command);
    const auto [done, seconds] = timed(command);
    INFO(done.err);
    CHECK((done.status == 2) == refused);
    CHECK(lines(done.err) == (refused ? 1 : 0));
    if (refused) CHECK(contains(done.err, "nested.h5: holds groups more than 64 levels deep"));
    CHECK(seconds < 5);  // 0.3 s on an idle machine; 26 s of processor time before there was a limit
  }
}

TEST_CASE("dump: groups in a circle, and one group on 4096 paths, are read once") {
  const Scratch scratch;
  const auto file = scratch / "circle.h5";
  RecordingFile recording(file);
  const at::Tensor x = at::ones({2, 2});
  recording.value("0", x);
  auto point = parity::testing::value_json(0, x, "0");
  point.update({{"e", "point"}, {"path", "a"}, {"call", 0}, {"role", "output"}});
  recording.event(point);
  H5Gclose(group(recording.id(), "weights/a"));
  H5Lcreate_hard(recording.id(), "/", recording.id(), "weights/a/root", H5P_DEFAULT, H5P_DEFAULT);
  // Twelve levels, each with two names for the next: 2^12 paths.
  hid_t inner = group(recording.id(), "many");
  for (int i = 0; i < 12; ++i) {
    const hid_t next = group(inner, "one");
    H5Lcreate_hard(inner, "one", inner, "other", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(inner);
    inner = next;
  }
  H5Gclose(inner);
  recording.close();
  const auto [done, seconds] = timed("inspect '" + file.string() + "'");
  CHECK_MESSAGE(done.status == 0, done.err);
  CHECK(seconds < 5);
}
