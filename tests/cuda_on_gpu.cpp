// The CUDA kernels on a GPU against the same code on the CPU (bit by bit) and against sorted differences; a program of
// its own, linked with the objects that nvcc made. Exit status 0: equal; 1: not; 77: there is no device.
//   cuda_on_gpu                    on every device
//   cuda_on_gpu without-device     where the driver shows none: each function says so and does not crash
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#include "core/error.hpp"
#include "cuda_emulated.hpp"
#include "kernels/cuda/compare.hpp"

namespace {

using namespace parity;
using namespace parity::test;

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::printf("FAILED: %s\n", what.c_str());
}

class Uploaded {
 public:
  explicit Uploaded(const Array& array) {
    const size_t bytes = array.memory.size();
    if (cudaMalloc(&memory_, bytes) != cudaSuccess ||
        cudaMemcpy(memory_, array.memory.data(), bytes, cudaMemcpyHostToDevice) != cudaSuccess)
      throw Error("cannot upload a test's array");
  }
  ~Uploaded() { cudaFree(memory_); }
  Uploaded(const Uploaded&) = delete;
  Uploaded& operator=(const Uploaded&) = delete;
  const void* get() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

void check_ranks(const cuda::Measurement& there, std::vector<double> sorted, bool by_passes, const std::string& what) {
  const auto n = static_cast<int64_t>(sorted.size());
  if (n == 0) return;
  std::sort(sorted.begin(), sorted.end());
  const int64_t p95 = (n - 1) * 95 / 100, p99 = (n - 1) * 99 / 100;
  const auto same = [&](const std::vector<int64_t>& ranks) {
    const std::vector<double> found = there.ranks(ranks);
    for (size_t i = 0; i < ranks.size(); ++i)
      expect(found[i] == sorted[static_cast<size_t>(ranks[i])], "rank " + std::to_string(ranks[i]) + " of " + what);
  };
  same({p95, std::min(n - 1, p95 + 1), p99, std::min(n - 1, p99 + 1)});
  expect(by_passes || there.ranks_by_passes() == 0, "percentiles from the pass itself, " + what);
  same({0, n / 2, n - 1});
}

/// `by_passes`: the bands may miss.
void check_pair(const Array& r, const Array& c, int device, bool by_passes = false) {
  const std::string what = r.type.name + " against " + c.type.name + ", " + std::to_string(r.size()) + " elements";
  const cuda::Pair here = pair_of(r, c);
  const Uploaded on_r(r), on_c(c);
  cuda::Pair there = here;
  there.reference = on_r.get(), there.candidate = on_c.get();
  const cuda::PairTotals want = emulated_totals(here, 1, 0);
  for (const int blocks : {0, 1, 2, 7, 1000})
    expect(same_totals(want, cuda::Measurement(there, device, {}, blocks).result().totals), "sums of " + what);
  const cuda::Measurement ranked(there, device, {.95, .99});
  expect(same_totals(want, ranked.result().totals), "sums with bands of " + what);
  if (want.worst >= 0) {
    expect(ranked.result().worst_reference == r[want.worst], "the worst reference of " + what);
    expect(ranked.result().worst_candidate == c[want.worst], "the worst candidate of " + what);
  }
  check_ranks(ranked, distances_of(here), by_passes, what);
}

/// More elements than a sample has: bands are kept.
void check_large(int device) {
  const Stored &fp32 = stored_types()[1], &bf16 = stored_types()[3];
  const Array r = some_numbers(3 << 20, fp32, 3, true);
  check_pair(r, near_copy(r, bf16, 4), device);
  check_pair(r, near_copy(r, fp32, 5), device);
  const Array narrow = some_numbers(1 << 20, bf16, 6, false);
  check_pair(narrow, near_copy(narrow, bf16, 7), device);
  check_pair(narrow, narrow, device);  // one tie: zero
  Array uneven = some_numbers(1 << 20, fp32, 8, false), off = uneven;
  for (int64_t i = 0; i < 60000; ++i) off.memory[static_cast<size_t>(4 * i + 1)] ^= 1;  // all differences in few tiles
  check_pair(uneven, off, device);
}

int on_devices(size_t devices) {
  uint64_t seed = 1;
  for (size_t i = 0; i < devices; ++i) {
    const int device = static_cast<int>(i);
    cudaSetDevice(device);
    for (const Stored& a : stored_types())
      for (const Stored& b : stored_types())
        for (const bool hostile : {false, true}) {
          const Array r = some_numbers(3 * cuda::tile_of(1) + 301, a, ++seed, hostile);
          check_pair(r, near_copy(r, b, ++seed), device);
        }
    for (const int64_t n : {1, 255, 257})
      check_pair(some_numbers(n, stored_types()[1], 1, true), some_numbers(n, stored_types()[1], 2, true), device);
    check_large(device);
  }
  std::printf("%zu device(s), %d failures\n", devices, failures);
  return failures == 0 ? 0 : 1;
}

template <class F>
bool refuses(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    std::printf("refused: %s\n", error.what());
    return true;
  }
  return false;
}

int without_device() {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  std::string why;
  expect(cuda::devices(why).empty() && !why.empty(), "no device, and a reason");
  std::printf("no device: %s\n", why.c_str());
  expect(cuda::architectures() == "80 90 100", "architectures");
  const Array r = some_numbers(10, stored_types()[1], 1, false);
  expect(refuses([&] { cuda::Measurement(pair_of(r, r), 0, {}); }), "sums without a device are an error");
  expect(refuses([&] { cuda::Measurement({}, 0, {}); }), "sums of nothing are an error");
  expect(refuses([&] { cuda::Measurement(pair_of(r, r), 0, {.95, .99}); }), "ranks without a device are an error");
  expect(refuses([&] { cuda::read(r.memory.data(), 8, 0); }), "reading without a device is an error");
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "without-device") return without_device();
  std::string why;
  const auto devices = cuda::devices(why);
  if (devices.empty()) {
    std::printf("skipped: GPU: %s; run it where there is one\n", why.c_str());
    return 77;
  }
  for (const auto& device : devices)
    std::printf("%s, compute capability %s\n", device.name.c_str(), device.capability.c_str());
  return on_devices(devices.size());
}
