// A program that streams through probes/cpp/parity_probe.hpp what tests/python/stream_port.py tells it to:
// stream_port ADDRESS STEPS [LEVEL]. STEPS is a file, one step a line; what is thrown is printed.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <complex>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "parity_probe.hpp"

namespace {

using namespace parity::probe;
using Words = std::istringstream;

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

void pause_for(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

Dtype dtype_named(const std::string& name) {
  for (const Dtype& dtype : {f64, f32, f16, bf16, f8_e4m3, f8_e5m2, i64, i32, i16, i8, u64, u32, u16, u8, boolean, c64})
    if (name == dtype.name) return dtype;
  return c128;
}

// tensor PATH ROLE DTYPE FILE SIZE…
void tensor(Writer& w, Words& words) {
  std::string path, role, dtype, file;
  words >> path >> role >> dtype >> file;
  const std::vector<std::int64_t> shape{std::istream_iterator<std::int64_t>(words), {}};
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  w.write(path, bytes.data(), shape, dtype_named(dtype),
          role == "weight"  ? Role::weight
          : role == "input" ? Role::input
                            : Role::output);
}

// Arrays of C++'s own types, and one whose axes are turned.
void typed(Writer& w, Words&) {
  const float single[] = {1.5F, -0.F};
  const double wide[] = {1e300};
  const std::int64_t whole[] = {std::int64_t{1} << 62, -1};
  const bool truth[] = {true, false, true};
  const std::complex<float> complex[] = {{1, -2}};
  const std::int16_t turned[] = {0, 1, 2, 3, 4, 5};
  w.write("float", single, {2});
  w.write("double", wide, {});
  w.write("whole", whole, {2, 1});
  w.write("truth", truth, {3});
  w.write("complex", complex, {1});
  w.write("turned", turned, {3, 2}, Role::output, {1, 3});
}

// big COUNT ELEMENTS: tensor k is filled with k; after each a line.
void big(Writer& w, Words& words) {
  int count = 0;
  std::int64_t elements = 0;
  words >> count >> elements;
  std::vector<std::int32_t> x(static_cast<std::size_t>(elements));
  for (int k = 0; k < count; ++k) {
    std::fill(x.begin(), x.end(), k);
    w.write("big", x.data(), {elements}, Role::input);
    say("sent " + std::to_string(k));
  }
}

// wait FILE: until it is there.
void wait_for(Writer&, Words& words) {
  std::string file;
  words >> file;
  say("waiting");
  while (access(file.c_str(), F_OK) != 0) pause_for(10);
}

// until-error: writes until recording has stopped, and then once more.
void until_error(Writer& w, Words&) {
  const float x[] = {1, 2};
  for (int i = 0; i < 1000 && w.error().empty(); ++i) w.write("x", x, {2}), pause_for(5);
  w.write("x", x, {2});
  say(w.error().empty() ? "still recording" : "went on without recording");
}

// until-stopped: writes until that throws; then every call must throw the same.
void until_stopped(Writer& w, Words&) {
  const float x[] = {1, 2};
  const std::function<void()> calls[] = {[&] {
                                           for (int i = 0; i < 1000; ++i) w.write("x", x, {2}), pause_for(5);
                                         },
                                         [&] { w.write("x", x, {2}); }, [&] { w.note("x"); }, [&] { w.flush(); },
                                         [&] { w.close(); }};
  for (const auto& call : calls) try {
      call();
      say("not stopped");
    } catch (const Stopped& stop) {
      say("stopped at [" + stop.path + "] because [" + stop.diagnosis + "]: " + stop.what());
    }
}

// flush-each: writes and flushes for as long as that works.
void flush_each(Writer& w, Words&) {
  const float x[] = {1, 2};
  for (int i = 0; i < 1000; ++i) w.write("x", x, {2}), w.flush(), pause_for(5);
}

// threads: four of them write 200 tensors each.
void threads(Writer& w, Words&) {
  std::vector<std::thread> running;
  for (int t = 0; t < 4; ++t)
    running.emplace_back([&w, t] {
      const std::vector<std::int32_t> x(500, t);
      for (int i = 0; i < 200; ++i) w.write("thread." + std::to_string(t), x.data(), {500}), w.write("all", &t, {1});
    });
  for (std::thread& thread : running) thread.join();
}

// interrupted: signals arrive all the time while a tensor is sent.
void interrupted(Writer& w, Words&) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);
  ualarm(2000, 2000);
  const std::vector<std::int32_t> x(4 << 20, 7);
  w.write("interrupted", x.data(), {4 << 20});
  ualarm(0, 0);
}

// fork: the child has no part in it, and ends with its copy of the writer.
void fork_child(Writer& w, Words&) {
  const float x[] = {1, 2};
  if (const pid_t child = fork(); child == 0) {
    w.write("x", x, {2}), w.flush(), w.close();
    std::exit(0);
  } else {
    waitpid(child, nullptr, 0);
  }
}

void run(const char* address, const char* steps, const std::string& level) {
  const std::map<std::string, std::function<void(Writer&, Words&)>> known{
      {"tensor", tensor},
      {"typed", typed},
      {"big", big},
      {"wait", wait_for},
      {"until-error", until_error},
      {"until-stopped", until_stopped},
      {"flush-each", flush_each},
      {"threads", threads},
      {"interrupted", interrupted},
      {"fork", fork_child},
      {"note", [](Writer& w, Words& words) { w.note(words.str().substr(5)); }},
      {"close", [](Writer& w, Words&) { w.close(); }},
      {"throw", [](Writer&, Words&) { throw std::runtime_error("the model failed"); }},
      {"exit", [](Writer&, Words&) { _exit(9); }}};
  Options options;
  options.model = "Tiny", options.producer = "stream_port", options.config = "{\n  \"dim\": 8\n}";
  options.sketches = level == "sketch", options.statistics_only = level == "stats";
  Writer w(address, options);
  std::ifstream file(steps);
  for (std::string line, step; std::getline(file, line);) {
    Words words(line);
    words >> step;
    if (step == "leave") return;
    known.at(step)(w, words);
  }
  w.close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    run(argv[1], argv[2], argc > 3 ? argv[3] : "");
  } catch (const Stopped& stop) {
    say("stopped at " + stop.path + " because " + stop.diagnosis);
    return 7;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
