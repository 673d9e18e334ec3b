// A plain C++ model that records itself through probes/cpp/parity_probe.hpp, and the situations that a recording must
// survive. One program, so that tests/python/test_cpp_probe.py compiles once: port MODE FILE.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>

#include "troubles.hpp"
#include "values.hpp"

namespace {

void model(const char* file) {
  const Model m;
  Options options;
  options.model = "Block", options.config = R"({"dim": 8})";
  Writer w(file, options);
  m.write_weights(w);
  const Floats y = m.forward(numbers(kTokens * kDim, 9, 1), w);
  m.forward(y, w);
  w.note("");
  w.note("two \"calls\"\n\xff");
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
