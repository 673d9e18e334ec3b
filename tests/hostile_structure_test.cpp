// HDF5 files whose structure is a trap: deep nests, circles, many names for one thing. One line, quickly.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <functional>

#include "command.hpp"
#include "recording_file.hpp"

using namespace parity::test;
using parity::testing::contains;
using parity::testing::RecordingFile;

namespace {

struct Timed {
  Finished done;
  double seconds = 0;  // of processor time: a busy machine is not a hang
};

double children_seconds() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * t.tv_usec; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

Timed timed(const std::string& arguments) {
  const double before = children_seconds();
  Timed result{parity_check(arguments)};
  result.seconds = children_seconds() - before;
  return result;
}

hid_t group(hid_t parent, const char* name) { return H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT); }

// One point with its value: a sound recording, before the trap is added.
struct SoundRecording {
  explicit SoundRecording(const std::filesystem::path& path) : file(path) {
    const at::Tensor x = at::ones({2, 2});
    file.value("0", x);
    auto point = parity::testing::value_json(0, x, "0");
    point.update({{"e", "point"}, {"path", "a"}, {"call", 0}, {"role", "output"}});
    file.event(point);
  }
  RecordingFile file;
};

// `levels` groups below `parent`, each in the one before; `also` may give an inner one a second name.
void nest(hid_t parent, const char* name, int levels, const std::function<void(hid_t outer)>& also = nullptr) {
  hid_t inner = group(parent, name);
  for (int i = 1; i < levels; ++i) {
    const hid_t next = group(inner, "inner");
    if (also) also(inner);
    H5Gclose(inner);
    inner = next;
  }
  H5Gclose(inner);
}

}  // namespace

TEST_CASE("dump: groups nested without end are refused at once") {
  const Scratch scratch;
  const auto file = scratch / "nested.h5";
  SoundRecording sound(file);
  RecordingFile& recording = sound.file;
  int levels = 1500;
  bool refused = true;
  SUBCASE("1500") {}
  SUBCASE("12: odd, but no harm") { levels = 12, refused = false; }
  nest(recording.id(), "g", levels);
  recording.close();
  const std::string name = "'" + file.string() + "'";
  for (const std::string& command : {"inspect " + name, "compare " + name + " " + name}) {
    CAPTURE(command);
    const auto [done, seconds] = timed(command);
    INFO(done.err);
    CHECK((done.status == 2) == refused);
    CHECK(lines(done.err) == (refused ? 1 : 0));
    if (refused) CHECK(contains(done.err, "nested.h5: holds groups more than 64 levels deep"));
    CHECK(seconds < 5);  // 0.3 s on an idle machine; 26 s before there was a limit
  }
}

TEST_CASE("dump: groups in a circle, and one group on 4096 paths, are read once") {
  const Scratch scratch;
  const auto file = scratch / "circle.h5";
  SoundRecording sound(file);
  RecordingFile& recording = sound.file;
  H5Gclose(group(recording.id(), "weights/a"));
  H5Lcreate_hard(recording.id(), "/", recording.id(), "weights/a/root", H5P_DEFAULT, H5P_DEFAULT);
  // Thirteen levels, each but the last with two names for the next: 2^12 paths.
  nest(recording.id(), "many", 13,
       [](hid_t outer) { H5Lcreate_hard(outer, "inner", outer, "other", H5P_DEFAULT, H5P_DEFAULT); });
  recording.close();
  const auto [done, seconds] = timed("inspect '" + file.string() + "'");
  CHECK_MESSAGE(done.status == 0, done.err);
  CHECK(seconds < 5);
}
