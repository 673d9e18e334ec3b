// How fast measuring is against reading the two tensors at all. Not part of a test run: `parity-tests -tc="speed*" -ns`
// prints the table. Only the ratios mean something, and only those of one run.
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>

#include "core/precision.hpp"
#include "core/stats.hpp"
#include "measure/blocks.hpp"
#include "measure/measure.hpp"

using namespace parity;

namespace {

/// Best of several, in seconds.
template <class F>
double best(F&& f) {
  double least = 1e9;
  for (int i = 0; i < 7; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

/// Every cache line of both, in the same order as measuring does.
uint64_t read(const at::Tensor& a, const at::Tensor& b) {
  std::atomic<uint64_t> total{0};
  const auto words = static_cast<int64_t>(a.nbytes() / 8);
  const auto *pa = static_cast<const uint64_t*>(a.const_data_ptr()),
             *pb = static_cast<const uint64_t*>(b.const_data_ptr());
  at::parallel_for(0, words, 1 << 15, [&](int64_t begin, int64_t end) {
    std::array<uint64_t, 16> sum{};
    for (int64_t i = begin; i + 16 <= end; i += 16)
      for (size_t k = 0; k < 16; ++k) sum[k] += pa[i + static_cast<int64_t>(k)] ^ pb[i + static_cast<int64_t>(k)];
    for (const uint64_t s : sum) total += s;
  });
  return total;
}

}  // namespace

TEST_CASE("speed: all statistics against reading both tensors" * doctest::skip()) {
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const int64_t n = (int64_t{256} << 20) / static_cast<int64_t>(c10::elementSize(dtype));
    const at::Tensor r = at::randn({n}, at::kFloat).to(dtype),
                     c = (r.to(at::kFloat) + 1e-3 * at::randn({n}, at::kFloat)).to(dtype);
    uint64_t kept = 0;
    const double reading = best([&] { kept += read(r, c); });
    const double sums = best([&] { kept += static_cast<uint64_t>(measure_blocks<double>(r, c, nullptr).equal); });
    const double all = best([&] { kept += static_cast<uint64_t>(measure(r, c).count); });
    const double bytes = 2.0 * static_cast<double>(r.nbytes());
    MESSAGE(fmt::format(
        "{}, {} threads: reading {:.1f} GB/s; without percentiles {:.1f} = {:.2f}; with p95, p99 {:.1f} = {:.2f}",
        dtype_name(dtype), at::get_num_threads(), bytes / reading / 1e9, bytes / sums / 1e9, reading / sums,
        bytes / all / 1e9, reading / all));
    CHECK(kept != 0);
  }
}
