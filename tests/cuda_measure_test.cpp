// Statistics from the CUDA kernels' sums, emulated, against the CPU's own measuring.
#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/statistics.hpp"
#include "cuda_emulated.hpp"
#include "kernels/cuda/compare.hpp"
#include "measure/measure.hpp"
#include "measure/on_device.hpp"

using namespace parity;
using namespace parity::test;

namespace {

// In the order of stored_types().
constexpr std::array kDtypes{at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2};

at::Tensor as_tensor(Array& array, at::IntArrayRef shape) {
  size_t i = 0;
  while (stored_types()[i].name != array.type.name) ++i;
  return at::from_blob(array.memory.data(), shape, kDtypes[i]);
}

// The emulated device in the place of measured_on_device.
std::optional<Stats> emulated_measure(const at::Tensor& r, const at::Tensor& c) {
  const auto pair = device_pair(r, c);
  REQUIRE(pair.has_value());
  const RankSource ranks = [&](const std::vector<int64_t>& wanted) {
    cuda::RankSearch search = emulated_search(distances_of(*pair), cuda::Interval(), {}, 1000);
    std::vector<double> out;
    for (const int64_t rank : wanted) out.push_back(search.at(rank));
    return out;
  };
  return statistics_of(cuda::finished(*pair, emulated_totals(*pair, 3, 1)), r.sizes(), ranks);
}

void check_same(const std::optional<double>& got, const std::optional<double>& want, double tolerance) {
  REQUIRE(got.has_value() == want.has_value());
  if (want) CHECK(std::abs(*got - *want) <= tolerance * std::max(std::abs(*want), 1e-300));
}

void check_stats(const Stats& got, const Stats& want) {
  for (const auto& row : kStatistics) {
    CAPTURE(row.name);
    check_same(got.*row.field, want.*row.field, row.name == "gain" || row.name == "cosine" ? 1e-9 : 1e-12);
  }
  check_same(got.p95_abs, want.p95_abs, 0);
  check_same(got.p99_abs, want.p99_abs, 0);
  CHECK(got.worst_index == want.worst_index);
  CHECK(got.worst_reference == want.worst_reference);
  CHECK(got.worst_candidate == want.worst_candidate);
  CHECK(got.nan_reference == want.nan_reference);
  CHECK(got.special_mismatch == want.special_mismatch);
  CHECK(got.zeros_reference == want.zeros_reference);
  CHECK(got.constant_reference == want.constant_reference);
}

}  // namespace

TEST_CASE("cuda: statistics from the kernels' sums are those that the CPU measures") {
  uint64_t seed = 200;
  for (const KindOfPair& kind : kinds_of_pairs()) {
    CAPTURE(kind.name());
    Array r = some_numbers(3 * 47 * 211, kind.a, ++seed, kind.hostile), c = near_copy(r, kind.b, ++seed);
    const at::Tensor tr = as_tensor(r, {3, 47, 211}), tc = as_tensor(c, {3, 47, 211});
    const Stats want = measure(tr, tc);
    const auto got = emulated_measure(tr, tc);
    const Plain plain = plain_statistics(r, c);
    const bool extreme = plain.sum_rr > 1e299L || plain.sum_cc > 1e299L || plain.sum_dd > 1e299L;
    REQUIRE(got.has_value() == !extreme);  // the rest is the CPU's
    if (!got) continue;
    check_stats(*got, want);
  }
}

TEST_CASE("cuda: tensors on a GPU are measured there, as the CPU measures them") {
  if (!at::hasCUDA() || at::detail::getCUDAHooks().deviceCount() == 0 || cuda::architectures().empty()) {
    MESSAGE("skipped: needs a GPU, a LibTorch that knows it and this project's CUDA kernels");
    return;
  }
  uint64_t seed = 400;
  for (const KindOfPair& kind : kinds_of_pairs()) {
    CAPTURE(kind.name());
    Array r = some_numbers(5 * 199 * 211, kind.a, ++seed, kind.hostile), c = near_copy(r, kind.b, ++seed);
    const at::Tensor tr = as_tensor(r, {5, 199, 211}).transpose(0, 2), tc = as_tensor(c, {5, 199, 211}).transpose(0, 2);
    const auto got = measured_on_device(tr.cuda(), tc.cuda(), true),
               sums = measured_on_device(tr.cuda(), tc.cuda(), false);
    REQUIRE(got.has_value() == emulated_measure(tr.contiguous(), tc.contiguous()).has_value());
    if (!got) continue;
    check_stats(*got, measure(tr, tc));
    CHECK(sums->rel_l2 == got->rel_l2);
  }
}

TEST_CASE("cuda: sums that leave a double's range are left to the CPU") {
  const auto stats = [](double r, double c) {
    const at::Tensor tr = at::full({100}, r, at::kDouble), tc = at::full({100}, c, at::kDouble);
    return emulated_measure(tr, tc);
  };
  CHECK_FALSE(stats(1e160, 1e160).has_value());
  CHECK_FALSE(stats(1, 1e-170).has_value());
  CHECK_FALSE(stats(1e-170, 1).has_value());
  CHECK_FALSE(stats(1e308, -1e308).has_value());
  const auto zero = stats(1, 0);
  REQUIRE(zero.has_value());
  CHECK(zero->rel_l2 == 1.);
  CHECK_FALSE(zero->cosine.has_value());
  CHECK(zero->constant_candidate);
}

TEST_CASE("cuda: a build without the kernels says so, in one line that says what to do") {
  if (!cuda::architectures().empty()) return;  // this build has them: cuda_on_gpu.cpp runs them
  std::string why;
  CHECK(cuda::devices(why).empty());
  CHECK(why.find("preset cuda") != std::string::npos);
  CHECK_THROWS_WITH_AS(cuda::Measurement({}, 0, {}), doctest::Contains("-DPARITY_CUDA=ON"), Error);
  CHECK_THROWS_AS(cuda::read(nullptr, 0, 0), Error);
}
