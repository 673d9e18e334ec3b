// Long work says how far it is, and a comparison that is stopped gives what it had, marked as partial.
#include <doctest/doctest.h>

#include "command.hpp"
#include "dump/verify.hpp"
#include "jobs/plain_job.hpp"
#include "jobs/port_job.hpp"
#include "jobs/repro.hpp"
#include "jobs/sides.hpp"
#include "jobs/sketch_job.hpp"
#include "recording_file.hpp"
#include "test_places.hpp"
#include "trace/extract.hpp"

namespace parity {
namespace {

using testing::contains;

const std::filesystem::path kGpt2Recording =
    std::filesystem::path(PARITY_SOURCE_DIR) / "reference_dumps" / "selftest" / "gpt2.fp32.h5";

GoOn stop_after(int times) {
  return [times, asked = 0](const JobResult&) mutable { return ++asked <= times; };
}

JobResult port_job(const Sides& sides, const GoOn& go_on) {
  PortJobOptions options;
  options.diagnose = false;
  options.go_on = go_on;
  return run_port_job(*sides.reference.dump, sides.reference.program, sides.candidate.tensors, sides.pairing, options);
}

// The first rows of the whole comparison, and nothing said of the others.
void check_partial(const JobResult& part, const JobResult& whole) {
  CHECK(part.interrupted);
  CHECK(!whole.interrupted);
  REQUIRE(!part.rows.empty());
  REQUIRE(part.rows.size() < whole.rows.size());
  for (size_t i = 0; i < part.rows.size(); ++i) {
    CHECK(part.rows[i].path == whole.rows[i].path);
    CHECK(part.rows[i].verdict == whole.rows[i].verdict);
  }
  CHECK(part.coverage.uncovered_paths.empty());
}

// Shares rise from above 0 to 1.
class Heard {
 public:
  ShareDone listener() {
    return [this](double done) {
      CHECK(done >= last_);
      CHECK(done <= 1);
      last_ = done;
      ++times_;
    };
  }
  ~Heard() {
    CHECK(times_ > 2);
    CHECK(last_ > .99);
  }

 private:
  double last_ = 0;
  int times_ = 0;
};

}  // namespace

TEST_CASE("interrupted: a comparison by replay gives the rows so far") {
  const Sides sides = open_sides(kGpt2Recording, kGpt2Recording, "");
  check_partial(port_job(sides, stop_after(60)), port_job(sides, nullptr));
  const JobResult none = port_job(sides, stop_after(0));
  CHECK(none.interrupted);
  CHECK(none.rows.empty());
}

TEST_CASE("interrupted: a comparison of tensors gives the rows so far") {
  const Sides sides = open_sides(kGpt2Recording, kGpt2Recording, "");
  const auto run = [&](const GoOn& go_on) {
    return run_plain_job(sides.candidate.tensors, sides.candidate.tensors, nullptr, "all", go_on);
  };
  check_partial(run(stop_after(5)), run(nullptr));
}

TEST_CASE("interrupted: a comparison of sketches gives the rows so far") {
  const Sides sides = open_sides(kGpt2Recording, kGpt2Recording, "");
  const auto run = [&](const GoOn& go_on) { return run_sketch_job(sides, "all", go_on); };
  check_partial(run(stop_after(40)), run(nullptr));
}

TEST_CASE("progress: pairing, extracting, replaying and verifying tell what share is done") {
  const Dump dump(kGpt2Recording);
  const Program program = load_program(dump);
  SUBCASE("pairing by content") {
    Heard heard;
    std::vector<CandidateTensor> renamed = tensors_of(dump, program);
    for (CandidateTensor& tensor : renamed) tensor.path = "port." + std::to_string(&tensor - renamed.data());
    pair_recordings(dump, program, renamed, &program, nullptr, heard.listener());
  }
  SUBCASE("extracting") {
    Heard heard;
    const testing::TemporaryFile file("progress-extract.h5");
    extract(dump, program, {"transformer.h.1", 0, nullptr, heard.listener()}, file.path());
  }
  SUBCASE("replaying") {
    Heard heard;
    run_again(dump, program, Precision::recorded, heard.listener());
  }
  SUBCASE("verifying") {
    Heard heard;
    CHECK(verify(dump, nullptr, heard.listener()).empty());
  }
}

TEST_CASE("progress: a part of the work lies within the whole") {
  std::vector<double> heard;
  const ShareDone whole = [&](double done) { heard.push_back(done); };
  part_of(whole, .5, 1)(0);
  part_of(whole, .5, 1)(.5);
  part_of(whole, .5, 1)(1);
  CHECK((heard == std::vector<double>{.5, .75, 1}));
  CHECK(part_of(nullptr, 0, 1) == nullptr);
}

TEST_CASE("interrupted: SIGINT and SIGTERM leave a valid partial report, and exit status 3") {
  const test::Scratch scratch;
  const std::string file = test::reference_dump("diffusers-wan-t2v.fp32.h5").string(),
                    json = (scratch / "r.json").string(), out = (scratch / "out").string();
  for (const char* signal : {"INT", "TERM"}) {
    CAPTURE(signal);
    // Sent as soon as the comparison listens: bits 1 and 14 (SIGINT, SIGTERM) of the caught signals, and no more the
    // shell that was forked for it, which catches SIGINT. A background shell ignores SIGINT.
    const test::Finished done =
        test::shell("env --default-signal=INT " PARITY_CHECK_BINARY " compare " + file + " " + file +
                    " --budget-time 1000 --json " + json + " --out " + out +
                    " & p=$!; while kill -0 $p && ! { grep -q parity-check /proc/$p/comm && "
                    "[ $(( 0x$(sed -n 's/^SigCgt:[[:space:]]*//p' /proc/$p/status) & 0x4002 )) = 16386 ]; }; "
                    "do sleep .01; done; kill -" +
                    signal + " $p; wait $p");
    CHECK(done.status == 3);
    const nlohmann::json report = nlohmann::json::parse(test::read_text(json));
    CHECK(report["schema"] == "parity-report/1");
    CHECK(report["verdict"] == "inconclusive");
    CHECK(report["ops"].back()["path"] == "(interrupted)");
    CHECK(report["ops"].back()["verdict"] == "untrusted");
    CHECK(contains(report["ops"].back()["diagnosis"], "did not run to its end"));
    CHECK(nlohmann::json::parse(test::read_text(out + "/report.json"))["ops"].size() == report["ops"].size());
    std::filesystem::remove(json);
    std::filesystem::remove_all(out);
  }
}

TEST_CASE("interrupted: a comparison that is killed outright leaves the report of some time before") {
  const test::Scratch scratch;
  const std::string wan = test::reference_dump("diffusers-wan-t2v.fp32.h5").string(),
                    json = (scratch / "r.json").string();
  const test::Finished done =
      test::shell(PARITY_CHECK_BINARY " compare " + wan + " " + wan + " --budget-time 1000 --threads 1 --json " + json +
                  " & p=$!; while kill -0 $p && [ ! -e " + json + " ]; do sleep .01; done; kill -9 $p; wait $p");
  CHECK(done.status == 128 + 9);
  const nlohmann::json report = nlohmann::json::parse(test::read_text(json));
  CHECK(report["ops"].back()["path"] == "(interrupted)");
  CHECK(report["ops"].size() > 1);
}

}  // namespace parity
