// Statistics from the CUDA kernels' sums, emulated, against the CPU's own measuring.
#include <ATen/ATen.h>
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
  const RankSource ranks = [&](int64_t finite, const std::vector<int64_t>& wanted) {
    cuda::RankSearch search(
        finite, 1000, [&](const cuda::Prefix& p) { return emulated_counts(*pair, p); },
        [&](const cuda::Prefix& p, int64_t) { return emulated_gather(*pair, p); });
    std::vector<double> out;
    for (const int64_t rank : wanted) out.push_back(search.at(rank));
    return out;
  };
  return statistics_of(emulated_totals(*pair, 3, 1), r, c, ranks);
}

void check_same(const std::optional<double>& got, const std::optional<double>& want, double tolerance) {
  REQUIRE(got.has_value() == want.has_value());
  if (want) CHECK(std::abs(*got - *want) <= tolerance * std::max(std::abs(*want), 1e-300));
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
    for (const auto& row : kStatistics) {
      CAPTURE(row.name);
      check_same((*got).*row.field, want.*row.field, row.name == "gain" || row.name == "cosine" ? 1e-9 : 1e-12);
    }
    check_same(got->p95_abs, want.p95_abs, 0);
    check_same(got->p99_abs, want.p99_abs, 0);
    CHECK(got->worst_index == want.worst_index);
    CHECK(got->worst_reference == want.worst_reference);
    CHECK(got->worst_candidate == want.worst_candidate);
    CHECK(got->nan_reference == want.nan_reference);
    CHECK(got->special_mismatch == want.special_mismatch);
    CHECK(got->zeros_reference == want.zeros_reference);
    CHECK(got->constant_reference == want.constant_reference);
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
  CHECK_THROWS_WITH_AS(cuda::pair_totals({}, 0), doctest::Contains("-DPARITY_CUDA=ON"), Error);
  CHECK_THROWS_AS(cuda::ranks({}, 1, {0}, 0), Error);
}
