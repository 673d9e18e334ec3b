// Every statistic against a number worked out by hand or by an independent formula (plain loops, Eigen), and the ways
// in which comparators of other projects are known to go wrong.
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <Eigen/Core>
#include <thread>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "core/stats.hpp"
#include "measure/measure.hpp"
#include "measure_numbers.hpp"

namespace parity::numbers {

TEST_CASE("measure: known answer for every statistic") {
  // d = 1 0 -2 0 2: by hand.
  const Stats s = measure(tensor({1, 2, 4, -2, -4}), tensor({2, 2, 2, -2, -2}));
  CHECK(s.count == 5);
  CHECK(s.max_abs == 2.0);
  CHECK(s.mean_abs == 1.0);
  check_close(s.rmse, std::sqrt(9.0 / 5));
  check_close(s.rel_l2, 3 / std::sqrt(41.0));
  check_close(s.normalized_max, 2 / (13.0 / 5));
  check_close(s.cosine, (2 + 4 + 8 + 4 + 8) / std::sqrt(41.0 * 20));
  check_close(s.p95_abs, 2.0);
  check_close(s.gain, (1.0 - 8 - 8) / 41);
  CHECK(s.bitwise_equal_share == 0.4);
  CHECK(s.max_ulp == static_cast<double>(uint64_t{1} << 52));  // 4 -> 2 and 1 -> 2: one binade
  CHECK(s.worst_index == std::vector<int64_t>{2});             // the first of the two largest
  CHECK(s.worst_reference == 4);
  CHECK(s.worst_candidate == 2);
  check_close(s.reference_norm, std::sqrt(41.0));
  check_close(s.difference_norm, 3);
  CHECK(s.zeros_reference == 0);
  CHECK(s.special_mismatch == 0);
  CHECK_FALSE(s.constant_reference);
}

TEST_CASE("measure: percentiles interpolate between ranks as np.percentile does") {
  // np.percentile([0, 1, 2, 3], [95, 99]) = 2.85, 2.97
  const Stats s = measure(tensor({0, 0, 0, 0}), tensor({3, -1, 0, 2}));
  check_close(s.p95_abs, 2.85);
  check_close(s.p99_abs, 2.97);
}

TEST_CASE("measure: agrees with Eigen and a sort, for every dtype, shape and alignment") {
  for (const auto dtype : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf, at::kFloat8_e4m3fn, at::kFloat8_e5m2}) {
    for (const int64_t n : {1, 3, 7, 8, 15, 17, 1023, 1024, 1025, 5000, 70001}) {
      CAPTURE(dtype_name(dtype));
      CAPTURE(n);
      const at::Tensor r = random({n}, 1, dtype), c = (r.to(at::kDouble) * (1 + .05 * random({n}, 2))).to(dtype);
      const auto vr = to_vector(r), vc = to_vector(c);
      const Eigen::Map<const Eigen::VectorXd> er(vr.data(), n), ec(vc.data(), n);
      const Eigen::VectorXd d = ec - er;
      const Stats s = measure(r, c);
      CHECK(s.max_abs == d.cwiseAbs().maxCoeff());
      check_close(s.mean_abs, d.cwiseAbs().mean());
      check_close(s.rmse, std::sqrt(d.squaredNorm() / static_cast<double>(n)));
      check_close(s.rel_l2, d.norm() / er.norm());
      check_close(s.normalized_max, d.cwiseAbs().maxCoeff() / er.cwiseAbs().mean());
      check_close(s.cosine, er.dot(ec) / er.norm() / ec.norm());
      CHECK(std::abs(*s.gain - d.dot(er) / er.squaredNorm()) < 1e-13);
      const Eigen::VectorXd a = d.cwiseAbs();
      check_close(s.p95_abs, percentile({a.data(), a.data() + n}, .95));
      check_close(s.p99_abs, percentile({a.data(), a.data() + n}, .99));
      check_close(s.bitwise_equal_share,
                  static_cast<double>((er.array() == ec.array()).count()) / static_cast<double>(n));
      CHECK(std::abs(s.worst_candidate - s.worst_reference) == *s.max_abs);
      CHECK(r[s.worst_index.at(0)].item<double>() == s.worst_reference);
    }
  }
}

TEST_CASE("measure: ULP steps are counted one by one, across binades and across zero") {
  for (const auto dtype : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    CAPTURE(dtype_name(dtype));
    const double u = 2 * unit_roundoff(dtype);
    const auto ulp = [&](double r, double c) { return measure(tensor({r, 7}, dtype), tensor({c, 7}, dtype)).max_ulp; };
    CHECK(ulp(1, 1 + u) == 1.0);
    CHECK(ulp(1, 1 - u / 2) == 1.0);
    CHECK(ulp(-1, -1 - 3 * u) == 3.0);
    CHECK(ulp(0.0, -0.0) == 0.0);  // and yet not bitwise equal
    CHECK(measure(tensor({0.0, 7}, dtype), tensor({-0.0, 7}, dtype)).bitwise_equal_share == 0.5);
  }
  // The smallest denormals of either sign are 2 apart, not 2^31 (a published comparator's fault).
  const float tiny = std::numeric_limits<float>::denorm_min();
  CHECK(measure(at::scalar_tensor(tiny, at::kFloat), at::scalar_tensor(-tiny, at::kFloat)).max_ulp == 2.0);
  CHECK(measure(at::scalar_tensor(1e-3, at::kFloat), at::scalar_tensor(-1e-3, at::kFloat)).max_ulp.value() > 1e9);
}

TEST_CASE("measure: a NaN never hides a difference and is counted by position") {
  const Stats s = measure(tensor({1, kNaN, kInf, -kInf, 5}), tensor({1.5, kNaN, kInf, kInf, kNaN}));
  CHECK(s.nan_reference == 3);
  CHECK(s.nan_candidate == 4);
  CHECK(s.special_mismatch == 2);  // -Inf against Inf, 5 against NaN
  CHECK(s.max_abs == .5);          // of the one finite pair
  CHECK(s.worst_index == std::vector<int64_t>{0});
  CHECK(s.bitwise_equal_share == 0.4);  // NaN and Inf
  CHECK(s.count == 5);
  for (const auto dtype :
       {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf, at::kFloat8_e5m2}) {  // deep in a long tensor
    const at::Tensor r = random({4099}, 3, dtype), c = r.clone();
    c[2049] = kNaN;
    const Stats deep = measure(r, c);
    CHECK(deep.special_mismatch == 1);
    CHECK(deep.nan_candidate == 1);
    CHECK(deep.max_abs == 0.0);
    check_close(deep.bitwise_equal_share, 4098.0 / 4099);
    CHECK(deep.max_ulp == 0.0);
  }
}

TEST_CASE("measure: the place of the worst element is right behind non-finite neighbours") {
  at::Tensor r = random({40, 100}, 4, at::kFloat), c = r.clone();
  c[20][50] += 3;
  r[20][10] = kNaN;
  c[20][10] = kNaN;
  CHECK(measure(r, c).worst_index == std::vector<int64_t>{20, 50});
}

TEST_CASE("measure: nothing finite, nothing at all, and one element") {
  const Stats nan = measure(tensor({kNaN, kNaN}), tensor({kNaN, kInf}));
  CHECK_FALSE(nan.max_abs);
  CHECK_FALSE(nan.rel_l2);
  CHECK_FALSE(nan.p95_abs);
  CHECK_FALSE(nan.max_ulp);
  CHECK(nan.worst_index.empty());
  CHECK(nan.special_mismatch == 1);
  const Stats empty = measure(at::empty({0, 3}), at::empty({0, 3}));
  CHECK(empty.count == 0);
  CHECK_FALSE(empty.max_abs);
  CHECK_FALSE(empty.bitwise_equal_share);
  CHECK_FALSE(empty.cosine);
  const Stats scalar = measure(at::scalar_tensor(4.0), at::scalar_tensor(5.0));
  CHECK(scalar.max_abs == 1.0);
  CHECK(scalar.worst_index.empty());
  CHECK_FALSE(scalar.constant_reference);
}

TEST_CASE("measure: numbers relative to nothing do not exist") {
  const Stats s = measure(tensor({0, 0}), tensor({1, 0}));
  CHECK(s.max_abs == 1.0);
  for (const auto& absent : {s.rel_l2, s.normalized_max, s.cosine, s.gain}) CHECK_FALSE(absent);
  CHECK(s.zeros_reference == 2);
  CHECK(s.constant_reference);
  CHECK_FALSE(measure(tensor({1, 2}), tensor({0, 0})).cosine);
}

TEST_CASE("measure: identical values score exactly zero, whatever their size") {
  const at::Tensor t = random({3000}, 5, at::kFloat) * 1e30;
  const Stats s = measure(t, t.clone());
  for (const auto& zero :
       {s.max_abs, s.mean_abs, s.rmse, s.rel_l2, s.normalized_max, s.p95_abs, s.p99_abs, s.max_ulp, s.gain})
    CHECK(zero == 0.0);
  CHECK(s.bitwise_equal_share == 1.0);
  check_close(s.cosine, 1.0, 1e-15);
}

TEST_CASE("measure: one wrong element in a million shows, with its place") {
  const at::Tensor r = random({1 << 20}, 8, at::kFloat), c = r.clone();
  c[777777] += 100;
  const Stats s = measure(r, c);
  CHECK(s.max_abs.value() > 99);
  CHECK(s.worst_index == std::vector<int64_t>{777777});
  CHECK(s.p99_abs == 0.0);
}

TEST_CASE("measure: constants are told, zeros of both signs too") {
  CHECK(measure(at::full({5000}, 3.0), random({5000}, 9)).constant_reference);
  CHECK_FALSE(measure(at::full({5000}, 3.0), random({5000}, 9)).constant_candidate);
  CHECK(measure(tensor({0.0, -0.0, 0.0}), tensor({0, 1, 2})).constant_reference);
  at::Tensor last = at::full({5000}, 3.0);
  last[4999] = 4;
  CHECK_FALSE(measure(last, last).constant_reference);
}

TEST_CASE("measure: the same digits for any thread count") {
  const at::Tensor r = random({3000001}, 10, at::kFloat), c = r + 1e-3 * random({3000001}, 11, at::kFloat);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Stats one = measure(r, c);
  at::set_num_threads(3);
  const Stats three = measure(r, c);
  at::set_num_threads(threads);
  for (const auto member :
       {&Stats::mean_abs, &Stats::rmse, &Stats::rel_l2, &Stats::cosine, &Stats::gain, &Stats::p95_abs, &Stats::p99_abs})
    CHECK(one.*member == three.*member);
}

TEST_CASE("measure: LibTorch's loops run on several threads in this build") {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  std::array<std::thread::id, 2> ran;
  at::parallel_for(0, 2, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) ran[static_cast<size_t>(i)] = std::this_thread::get_id();
  });
  at::set_num_threads(threads);
  CHECK(ran[0] != ran[1]);  // compiled without OpenMP the template is a plain loop
}

TEST_CASE("measure: sums alone are those of the whole measure") {
  const at::Tensor r = random({257, 301}, 12, at::kBFloat16), c = (r + 1e-2 * random({257, 301}, 13, at::kBFloat16));
  c.flatten()[5] = NAN;
  const Stats whole = measure(r, c), sums = measure_sums(r, c);
  for (const auto member : {&Stats::max_abs, &Stats::mean_abs, &Stats::rmse, &Stats::rel_l2, &Stats::normalized_max,
                            &Stats::cosine, &Stats::gain, &Stats::bitwise_equal_share, &Stats::max_ulp}) {
    REQUIRE((whole.*member).has_value());
    CHECK(whole.*member == sums.*member);
  }
  CHECK(sums.nan_candidate == 1);
  CHECK(sums.special_mismatch == whole.special_mismatch);
  CHECK(sums.difference_norm == whole.difference_norm);
  CHECK_FALSE(sums.p95_abs);
}

TEST_CASE("measure: percentiles are exact at every size, ties and zeros included") {
  const auto check = [&](const at::Tensor& r, const at::Tensor& c) {
    const Stats s = measure(r, c);
    const auto d = to_vector((c.to(at::kDouble) - r.to(at::kDouble)).abs());
    CHECK(s.p95_abs == doctest::Approx(percentile(d, .95)).epsilon(1e-14));
    CHECK(s.p99_abs == doctest::Approx(percentile(d, .99)).epsilon(1e-14));
  };
  // Kept whole and sorted; narrowed by a sample (from 2^15, the rank of a selection 95 % of it); not kept (above 2^18).
  for (const int64_t n : {3000, 40000, 1 << 18, (1 << 21) + 12345}) {
    CAPTURE(n);
    const at::Tensor r = random({n}, 12, at::kFloat);
    check(r, r + 1e-3 * random({n}, 13, at::kFloat));
    check(r.to(at::kBFloat16), (r + 1e-3 * random({n}, 13, at::kFloat)).to(at::kBFloat16));
    check(r, r.clone());                                          // all zero
    check(at::zeros({n}), at::ones({n}));                         // all one
    check(r, at::where(random({n}, 14) > 1.645, r + 1, r));       // p95 at the edge of the zeros
    check(at::zeros({n}), at::arange(n, at::kDouble));            // sorted: a sample from the front would mislead
    check(at::zeros({n}), at::floor(random({n}, 15).abs() * 2));  // few values
  }
}

TEST_CASE("measure: unlike shapes and layouts are errors that name both") {
  CHECK_THROWS_AS(measure(at::zeros({2, 3}), at::zeros({3, 2})), Error);
  CHECK_THROWS_AS(measure(at::zeros({2}), at::zeros({2}, at::kComplexFloat)), Error);
  CHECK_THROWS_AS(measure(at::Tensor(), at::zeros({2})), Error);
  CHECK_THROWS_AS(measure(at::eye(3).to_sparse(), at::eye(3)), Error);
}

}  // namespace parity::numbers
