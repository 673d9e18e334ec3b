// What a recording must survive: kills, full disks, forks, threads, wrong calls.
#pragma once
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <thread>

#include "model.hpp"

namespace {

// Value k is filled with k, so that a reader can tell what belongs where.
[[noreturn]] void forever(const char* file) {
  Options options;
  options.flush_seconds = 0.03;
  Writer w(file, options);
  for (float k = 0;; ++k) {
    const Floats x(100, k);
    w.write("x", x.data(), {10, 10}, static_cast<int>(k) % 7 == 0 ? Role::weight : Role::output);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// 300 values in about 0.4 s, the k-th filled with k; after each flush the number of values that must outlive a kill.
void counted(const char* file) {
  Options options;
  options.flush_seconds = std::getenv("PORT_CHANGES") == nullptr ? 0.01 : 0;  // all depends on the number alone
  Writer w(file, options);
  for (int k = 0; k < 300; ++k) {
    const int columns = k % 60 == 59 ? 20'000 : 8;  // 1 MiB now and then: longer under way
    const Floats x(static_cast<std::size_t>(1 + k % 13) * columns, static_cast<float>(k));
    w.write("x", x.data(), {1 + k % 13, columns}, k % 7 == 0 ? Role::weight : Role::output);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (k % 25 != 24) continue;
    w.flush();
    std::printf("%d\n", k + 1);
    std::fflush(stdout);
  }
}

// A full disk: the model's result is printed beside that without recording, and what close says.
void until_full(const char* file, const Options& options) {
  const Model m;
  Writer off, w(file, options);
  Floats x = numbers(kTokens * kDim, 9, 1), y = x;
  const Floats large(100'000, 3);
  for (int i = 0; i < 200; ++i) {
    x = m.norm(m.forward(x, w)), y = m.norm(m.forward(y, off));
    w.write("large", large.data(), {1000, 100});
    if (i == 1) w.flush();  // there is room yet: that much the file holds, however long the writing thread had to wait
  }
  std::printf("%d\n", x == y);
  try {
    w.close();
  } catch (const parity::probe::Error& error) {
    std::printf("%s\n", error.what());
  }
}

Options often() {
  Options options;
  options.flush_seconds = 0.002;
  return options;
}

void limited(const char* file) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{3'000'000, 3'000'000};
  setrlimit(RLIMIT_FSIZE, &limit);
  until_full(file, often());
}

void small_disk(const char* file) { until_full(file, often()); }

void small_disk_without_reserve(const char* file) {
  Options options = often();
  options.reserve_bytes = 0;
  until_full(file, options);
}

void little_room(const char* file) {
  Options options;
  options.reserve_bytes = std::uint64_t{1} << 60;
  Writer w(file, options);
  Model().forward(numbers(kTokens * kDim, 9, 1), w);
}  // the destructor prints the failure

void thrown(const char* file) {
  try {
    Writer w(file);
    Model().forward(numbers(kTokens * kDim, 9, 1), w);
    throw std::runtime_error("x");
  } catch (const std::runtime_error&) {
  }
}

void forked(const char* file) {
  static Writer w(file);  // its destructor runs in the child too
  Model().forward(numbers(kTokens * kDim, 9, 1), w);
  if (const pid_t child = fork(); child == 0) {
    Model().forward(numbers(kTokens * kDim, 9, 1), w);
    std::exit(0);
  } else {
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("%d\n", status);
  }
  Model().forward(numbers(kTokens * kDim, 9, 1), w);
}

void threads(const char* file) {
  Writer w(file);
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&w, t] {
      for (int i = 0; i < 300; ++i) {
        const Floats x(50, static_cast<float>(t));
        w.write(i % 2 == 0 ? "shared" : "own." + std::to_string(t), x.data(), {50});
      }
    });
  for (std::thread& thread : all) thread.join();
}

void refusals(const char* file) {
  const float x = 1;
  Writer w(file);
  const auto says = [](const std::function<void()>& run) {
    try {
      run();
      std::printf("nothing\n");
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
    }
  };
  says([&] { w.write("x", static_cast<const float*>(nullptr), {1}); });
  says([&] { w.write("x", &x, {-1}); });
  says([&] { w.write("x", &x, {1}, Role::output, {1, 1}); });
  says([&] { w.write("x", &x, {std::int64_t{1} << 40, std::int64_t{1} << 40}); });
  w.close();
  w.close();
  says([&] { w.write("x", &x, {1}); });
  says([&] { Writer("/nonexistent/folder/a.h5"); });
  says([&] { Writer("/tmp"); });
}

}  // namespace
