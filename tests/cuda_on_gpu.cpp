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

void check_pair(const Array& r, const Array& c, int device) {
  const std::string what = r.type.name + " against " + c.type.name + ", " + std::to_string(r.size()) + " elements";
  const cuda::Pair here = pair_of(r, c);
  const Uploaded on_r(r), on_c(c);
  cuda::Pair there = here;
  there.reference = on_r.get(), there.candidate = on_c.get();
  const cuda::PairTotals want = emulated_totals(here, 1, 0);
  for (const int blocks : {0, 1, 2, 7, 1000})
    expect(same_totals(want, cuda::pair_totals(there, device, blocks)), "sums of " + what);
  const std::vector<double> sorted = emulated_gather(here, {});
  const auto n = static_cast<int64_t>(sorted.size());
  if (n == 0) return;
  const std::vector<int64_t> ranks{0, n / 2, (n - 1) * 95 / 100, std::min(n - 1, (n - 1) * 95 / 100 + 1), n - 1};
  const std::vector<double> found = cuda::ranks(there, n, ranks, device);
  for (size_t i = 0; i < ranks.size(); ++i)
    expect(found[i] == sorted[static_cast<size_t>(ranks[i])], "rank " + std::to_string(ranks[i]) + " of " + what);
}

int on_devices(size_t devices) {
  uint64_t seed = 1;
  for (size_t device = 0; device < devices; ++device) {
    cudaSetDevice(static_cast<int>(device));
    for (const Stored& a : stored_types())
      for (const Stored& b : stored_types())
        for (const bool hostile : {false, true}) {
          const Array r = some_numbers(3 * cuda::kTile + 301, a, ++seed, hostile);
          check_pair(r, near_copy(r, b, ++seed), static_cast<int>(device));
        }
    for (const int64_t n : {1, 255, 257})
      check_pair(some_numbers(n, stored_types()[1], 1, true), some_numbers(n, stored_types()[1], 2, true),
                 static_cast<int>(device));
    const Array r = some_numbers(3 << 20, stored_types()[1], 3, true);  // more than are gathered at once
    check_pair(r, near_copy(r, stored_types()[3], 4), static_cast<int>(device));
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
  expect(refuses([&] { cuda::pair_totals(pair_of(r, r), 0); }), "sums without a device are an error");
  expect(refuses([&] { cuda::pair_totals({}, 0); }), "sums of nothing are an error");
  expect(refuses([&] { cuda::ranks(pair_of(r, r), 10, {3}, 0); }), "ranks without a device are an error");
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
