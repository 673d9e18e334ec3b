// A plain C++ model that records itself through probes/cpp/parity_probe.hpp, and the situations that a recording must
// survive. One program, so that tests/python/test_cpp_probe.py compiles once: port MODE FILE.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <thread>

namespace {

// With PORT_CHANGES=N the process dies before its Nth change to bytes that the file already has, as by kill -9.
ssize_t write_or_die(int file, const void* data, std::size_t size, off_t address) {
  static const char* limit = std::getenv("PORT_CHANGES");
  static long left = limit == nullptr ? -1 : std::atol(limit);
  struct stat status {};
  if (limit != nullptr && fstat(file, &status) == 0 && address < status.st_size && left-- == 0) _exit(9);
  return pwrite(file, data, size, address);
}

}  // namespace
#define pwrite write_or_die
#include "parity_probe.hpp"
#undef pwrite

using parity::probe::Options;
using parity::probe::Role;
using parity::probe::Writer;
using Floats = std::vector<float>;

namespace {

constexpr int kTokens = 5, kDim = 8;

Floats numbers(int count, int seed, float scale) {
  Floats all(count);
  for (int i = 0; i < count; ++i) all[i] = scale * static_cast<float>(std::sin(0.7 * i + seed));
  return all;
}

// One transformer feed-forward block: norm, linear, GELU, linear, residual; every step is a named point.
struct Model {
  Floats gain = numbers(kDim, 1, 1), bias = numbers(kDim, 2, 0.1F), up = numbers(4 * kDim * kDim, 3, 0.3F),
         down = numbers(4 * kDim * kDim, 4, 0.2F);  // (out, in)

  Floats forward(const Floats& x, Writer& w) const {
    w.write("block.x", x.data(), {kTokens, kDim}, Role::input);
    Floats y = norm(x);
    w.write("block.norm", y.data(), {kTokens, kDim});
    y = linear(y, up, kDim, 4 * kDim);
    w.write("block.up", y.data(), {kTokens, 4 * kDim});
    for (float& v : y) v = 0.5F * v * (1 + std::erf(v / std::sqrt(2.0F)));
    w.write("block.gelu", y.data(), {kTokens, 4 * kDim});
    y = linear(y, down, 4 * kDim, kDim);
    w.write("block.down", y.data(), {kTokens, kDim});
    for (int i = 0; i < kTokens * kDim; ++i) y[i] += x[i];
    w.write("block", y.data(), {kTokens, kDim});
    return y;
  }

  Floats norm(const Floats& x) const {
    Floats y(x.size());
    for (int t = 0; t < kTokens; ++t) {
      const float* row = &x[t * kDim];
      float mean = 0, variance = 0;
      for (int i = 0; i < kDim; ++i) mean += row[i] / kDim;
      for (int i = 0; i < kDim; ++i) variance += (row[i] - mean) * (row[i] - mean) / kDim;
      for (int i = 0; i < kDim; ++i)
        y[t * kDim + i] = (row[i] - mean) / std::sqrt(variance + 1e-5F) * gain[i] + bias[i];
    }
    return y;
  }

  static Floats linear(const Floats& x, const Floats& weight, int in, int out) {
    Floats y(static_cast<std::size_t>(kTokens) * out);
    for (int t = 0; t < kTokens; ++t)
      for (int o = 0; o < out; ++o)
        for (int i = 0; i < in; ++i) y[t * out + o] += x[t * in + i] * weight[o * in + i];
    return y;
  }

  void write_weights(Writer& w) const {
    w.write("block.norm.weight", gain.data(), {kDim}, Role::weight);
    w.write("block.norm.bias", bias.data(), {kDim}, Role::weight);
    w.write("block.up.weight", up.data(), {4 * kDim, kDim}, Role::weight);
    w.write("block.down.weight", down.data(), {kDim, 4 * kDim}, Role::weight);
  }
};

void model(const char* file) {
  const Model m;
  Options options;
  options.model = "Block", options.config = R"({"dim": 8})";
  Writer w(file, options);
  m.write_weights(w);
  const Floats y = m.forward(numbers(kTokens * kDim, 9, 1), w);
  m.forward(y, w);
  w.note("two \"calls\"\n\xff");
}

void statistics(const char* file) {
  Options options;
  options.statistics_only = true;
  Writer w(file, options);
  Model().forward(numbers(kTokens * kDim, 9, 1), w);
  const float odd[] = {1, -2, 0, INFINITY, NAN, -INFINITY, NAN};
  w.write("odd", odd, {7});
  w.write("empty", odd, {0, 3});
  const std::uint16_t half[] = {0x3c00, 0xc000, 0x0001, 0x7c00, 0x7e01};  // 1, -2, 2^-24, inf, nan
  w.write("half", half, {5}, parity::probe::f16);
  const std::uint8_t eight[] = {0x38, 0xc0, 0x01, 0x7f, 0x7e};  // 1, -2, 2^-9, nan, 448
  w.write("e4m3", eight, {5}, parity::probe::f8_e4m3);
  const std::int8_t whole[] = {-3, 4};
  w.write("whole", whole, {2});
  const std::complex<float> complex[] = {{3, 4}, {0, 0}};
  w.write("complex", complex, {2});
}

void every_kind(Writer& w) {
  using namespace parity::probe;
  constexpr int kCount = 6000;
  const Floats x = numbers(kCount, 3, 2);
  std::vector<std::uint16_t> brain(kCount), half(kCount);
  std::vector<unsigned char> bytes(kCount);
  std::vector<double> wide(x.begin(), x.end());
  std::vector<std::int32_t> whole(kCount);
  std::vector<std::complex<float>> complex(kCount);
  for (int i = 0; i < kCount; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, &x[i], sizeof bits);
    brain[i] = static_cast<std::uint16_t>(bits >> 16);
    half[i] = static_cast<std::uint16_t>(7 * i);  // NaN and infinities among them
    bytes[i] = static_cast<unsigned char>(i);
    whole[i] = i - 5 * (i % 1000);
    complex[i] = {x[i], static_cast<float>(i)};
  }
  wide[17] = INFINITY;
  w.write("f32", x.data(), {20, 30, 10});
  w.write("turned", x.data(), {10, 30, 20}, Role::output, {1, 10, 300});
  w.write("bf16", brain.data(), {60, 100}, bf16);
  w.write("f16", half.data(), {60, 100}, f16);
  w.write("e4m3", bytes.data(), {kCount}, f8_e4m3);
  w.write("e5m2", bytes.data(), {kCount}, f8_e5m2);
  w.write("u8", bytes.data(), {kCount});
  w.write("f64", wide.data(), {2, 3, 10, 100});
  w.write("i32", whole.data(), {kCount});
  w.write("c64", complex.data(), {60, 100});
  w.write("long", Floats(600 * 2000, 1.5F).data(), {600, 2000});  // more buckets
  w.write("small", x.data(), {5, 5});
  w.write("weight", x.data(), {100}, Role::weight);
}

// Every tensor as a sketch, in FILE.full as it is, and tensor f32 in four parts in FILE.rank0 …
void sketches(const char* file) {
  const std::string name = file;
  Options options;
  options.sketches = true;
  Writer sketched(name, options), full(name + ".full");
  every_kind(sketched);
  every_kind(full);
  const Floats x = numbers(6000, 3, 2);
  for (int rank = 0; rank < 4; ++rank) {
    Writer w(name + ".rank" + std::to_string(rank), options);
    w.write("f32", x.data() + 5 * (rank % 2) + 3000 * (rank / 2), {10, 30, 5}, Role::output, {300, 10, 1},
            {{0, 10 * (rank / 2), 20}, {2, 5 * (rank % 2), 10}});
  }
}

void dtypes(const char* file) {
  using namespace parity::probe;
  Writer w(file);
  std::vector<unsigned char> bytes(16 * 24);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(37 * i + 11);
  for (const Dtype& dtype : {f64, f32, f16, bf16, f8_e4m3, f8_e5m2, i64, i32, i16, i8, u64, u32, u16, u8, c64, c128})
    w.write(dtype.name, bytes.data(), {2, 3, 4}, dtype);
  const bool truths[] = {true, false, true};
  w.write("bool", truths, {3});
  const double one = 1;
  w.write("scalar", &one, {});
  w.write("empty", &one, {0, 4});
  w.write("a/b", &one, {1}, Role::weight);
  w.write(".", &one, {1}, Role::weight);
  const std::vector<long> from_vector(6, 7);
  const std::vector<std::int64_t> shape{2, 3};
  w.write("vector", from_vector.data(), shape);
}

void strides(const char* file) {
  Writer w(file);
  const Floats x = numbers(2 * 3 * 4, 0, 1);
  w.write("plain", x.data(), {2, 3, 4});
  w.write("turned", x.data(), {4, 3, 2}, Role::output, {1, 4, 12});
  w.write("part", x.data() + 1, {2, 3, 2}, Role::output, {12, 4, 2});
  w.write("wide", x.data(), {5, 4}, Role::output, {0, 1});
  w.write("backwards", x.data() + 23, {24}, Role::output, {-1});
  w.write("ones", x.data(), {1, 4, 1}, Role::output, {77, 1, 99});
}

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

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// ns a call when off; seconds to hand over and to write 1 GiB in 16 MiB tensors; peak memory in MiB.
void cost(const char* file) {
  const Floats x(4 << 20, 1);
  Writer off(nullptr);
  const int calls = 20'000'000;
  const double idle = seconds([&] {
    for (int i = 0; i < calls; ++i) off.write("blocks.0.norm1", x.data(), {1, 12, 64}, parity::probe::bf16);
  });
  Writer w(file);
  const double small = seconds([&] {
    for (int i = 0; i < 10'000; ++i) w.write("small", x.data(), {16, 64});
  });
  w.flush();
  const double handed = seconds([&] {
    for (int i = 0; i < 64; ++i) w.write("large", x.data(), {4 << 20});
  });
  const double written = handed + seconds([&] { w.flush(); });
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(R"({"off_ns": %.3f, "small_us": %.2f, "handed_s": %.3f, "written_s": %.3f, "peak_mib": %ld})",
              idle / calls * 1e9, small / 10'000 * 1e6, handed, written, usage.ru_maxrss / 1024);
}

// CPU seconds (of both threads) of a model of 8 layers (64 tokens, width 256: 64 KiB a tensor) that records each: off,
// on, statistics alone. The least of 15 rounds.
void ratio(const char* file) {
  constexpr int tokens = 64, dim = 256;
  const Floats weight = numbers(dim * dim, 1, 0.06F), start = numbers(tokens * dim, 2, 1);
  Floats memory(2 * tokens * dim +
                512);  // half a page between the two: else a load may wait for a store that only looks alike
  const auto run = [&](Writer& w) {
    float *x = memory.data(), *y = x + tokens * dim + 512;
    std::copy(start.begin(), start.end(), x);
    for (int layer = 0; layer < 8; ++layer) {
      for (int t = 0; t < tokens; ++t)
        for (int o = 0; o < dim; ++o) {
          float sum = 0;
          for (int i = 0; i < dim; ++i) sum += x[t * dim + i] * weight[o * dim + i];
          y[t * dim + o] = std::tanh(sum);
        }
      std::swap(x, y);
      w.write("layer", x, {tokens, dim});
    }
  };
  Options statistics;
  statistics.statistics_only = true;
  double least[3] = {1e9, 1e9, 1e9};
  for (int round = 0; round < 15; ++round)
    for (int kind = 0; kind < 3; ++kind) {
      Writer w = kind == 0 ? Writer() : Writer(file, kind == 1 ? Options() : statistics);
      least[kind] = std::min(least[kind], seconds([&] {
                               for (int forward = 0; forward < 2; ++forward) run(w);
                               w.flush();
                             }));
    }
  std::printf(R"({"off_s": %.4f, "on_s": %.4f, "statistics_s": %.4f})", least[0], least[1], least[2]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(const char*)> modes{{"model", model},
                                                           {"statistics", statistics},
                                                           {"dtypes", dtypes},
                                                           {"strides", strides},
                                                           {"forever", forever},
                                                           {"counted", counted},
                                                           {"full", limited},
                                                           {"disk", small_disk},
                                                           {"disk-to-the-brim", small_disk_without_reserve},
                                                           {"room", little_room},
                                                           {"thrown", thrown},
                                                           {"forked", forked},
                                                           {"threads", threads},
                                                           {"sketches", sketches},
                                                           {"refusals", refusals},
                                                           {"cost", cost},
                                                           {"ratio", ratio}};
  if (argc != 3 || modes.count(argv[1]) == 0) return 2;
  modes.at(argv[1])(argv[2]);
}
