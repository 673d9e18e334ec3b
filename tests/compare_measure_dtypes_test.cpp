// Statistics of huge and tiny numbers, of every dtype and layout, and errors against an oracle.
#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "core/stats.hpp"
#include "measure/local.hpp"
#include "measure/measure.hpp"
#include "measure_numbers.hpp"

namespace parity::numbers {

TEST_CASE("measure: norms of huge and of tiny numbers neither overflow nor vanish") {
  for (const double scale : {1e20, 1e150, 1e300, 1e-170, 1e-300}) {
    CAPTURE(scale);
    const Stats s = measure(tensor({3, 4, 5}) * scale, tensor({3, 4, 5 * 1.5}) * scale);
    check_close(s.rel_l2, 2.5 / std::sqrt(50.0));
    check_close(s.rmse, 2.5 * scale / std::sqrt(3.0));
    check_close(s.cosine, 62.5 / std::sqrt(50 * (25 + 56.25)));
    check_close(s.gain, 12.5 / 50);
    check_close(s.reference_norm, std::sqrt(50.0) * scale);
  }
  // The difference itself does not fit: then that number does not exist, and the relative one does.
  const Stats s = measure(tensor({1.7e308, 1e308}), tensor({-1.7e308, 1e308}));
  CHECK_FALSE(s.max_abs);
  check_close(s.rel_l2, 3.4 / std::sqrt(1.7 * 1.7 + 1));
  check_close(measure(tensor({1e20, 2e20}, at::kFloat), tensor({-1e20, 2e20}, at::kFloat)).rel_l2, 2 / std::sqrt(5.0),
              1e-6);
  // A difference 1e-220 beside elements of size 1 is still one.
  CHECK(measure(tensor({1, 1e-200}), tensor({1, 1.1e-200})).rel_l2.value() > 0);
}

TEST_CASE("measure: integers and bool are exact") {
  const int64_t big = (int64_t{1} << 53) + 1;
  const Stats s = measure(at::tensor({big, int64_t{7}}), at::tensor({big - 1, int64_t{7}}));
  CHECK(s.max_abs == 1.0);  // in fp64 both round to 2^53
  CHECK(s.bitwise_equal_share == 0.5);
  CHECK_FALSE(s.max_ulp);
  const Stats b = measure(at::tensor({1, 0, 1, 1}).to(at::kBool), at::tensor({1, 1, 1, 1}).to(at::kBool));
  CHECK(b.mean_abs == .25);
  CHECK(b.constant_candidate);
  const Stats u = measure(at::scalar_tensor(250, at::kByte), at::scalar_tensor(3, at::kByte));
  CHECK(u.max_abs == 247.0);  // no wrap-around
}

TEST_CASE("measure: complex numbers are pairs of reals") {
  const at::Tensor r = at::complex(tensor({3, 0}), tensor({4, 1})), c = at::complex(tensor({3, 0}), tensor({4, 3}));
  const Stats s = measure(r, c);
  CHECK(s.max_abs == 2.0);
  check_close(s.rel_l2, 2 / std::sqrt(26.0));
  CHECK(s.worst_index == std::vector<int64_t>{1});
  CHECK_FALSE(s.max_ulp);
  CHECK(s.bitwise_equal_share == .75);
  CHECK(measure(r, r.conj()).max_abs == 8.0);  // lazy conjugation is seen
}

TEST_CASE("measure: views compare by value") {
  const at::Tensor base = random({30, 50}, 6, at::kFloat), other = base.clone();
  other[7][31] += 1;
  const Stats s = measure(base.t(), other.t());
  CHECK(s.worst_index == std::vector<int64_t>{31, 7});
  CHECK(measure(base.slice(1, 0, 50, 3), base.slice(1, 0, 50, 3).clone()).max_abs == 0.0);
  CHECK(measure(base.slice(0, 0, 1).expand({4, 50}), base.slice(0, 0, 1).repeat({4, 1})).max_abs == 0.0);
  CHECK(measure(base, at::_neg_view(base.neg())).max_abs == 0.0);
}

TEST_CASE("measure: other dtypes compare by value, bits only where rounding is exact") {
  const at::Tensor r = random({2000}, 7, at::kBFloat16);
  const Stats exact = measure(r, r.to(at::kFloat));
  CHECK(exact.max_ulp == 0.0);
  CHECK(exact.bitwise_equal_share == 1.0);
  const Stats inexact = measure(r, r.to(at::kFloat) * (1 + 1e-4));
  CHECK_FALSE(inexact.max_ulp);
  CHECK_FALSE(inexact.bitwise_equal_share);
  CHECK(inexact.max_abs.value() > 0);
  CHECK(measure(r.to(at::kDouble), r).max_ulp == 0.0);
  CHECK_FALSE(measure(at::tensor({1, 2}), at::tensor({1.0, 2.0})).bitwise_equal_share);
}

TEST_CASE("oracle: R and rho of known errors") {
  const at::Tensor o = tensor({10, 20, 30, 40}), e = tensor({1, 2, -2, 0}), f = tensor({-2, 1, 0, 7});  // e . f = 0
  const OracleStats s = measure_against_oracle(o, o + e, o + 2 * e);
  check_close(s.ratio, 2.0);
  check_close(s.correlation, 1.0);
  check_close(s.reference_error, 3 / std::sqrt(3000.0));
  check_close(s.candidate_error, 6 / std::sqrt(3000.0));
  check_close(s.scale, std::sqrt(3000.0));
  check_close(s.reference_distance, 3.0);
  check_close(s.candidate_distance, 6.0);
  CHECK(std::abs(measure_against_oracle(o, o + e, o + f).correlation.value()) < 1e-15);
  check_close(measure_against_oracle(o, o + e, o - e).correlation, -1.0);
}

TEST_CASE("oracle: the floor keeps an exact reference from making R infinite") {
  const at::Tensor o = tensor({1, 2, 4, 8});
  const OracleStats copy = measure_against_oracle(o, o.to(at::kBFloat16), o.to(at::kBFloat16));
  CHECK(copy.ratio == 0.0);
  CHECK_FALSE(copy.correlation);
  const OracleStats off = measure_against_oracle(o, o.to(at::kBFloat16), o * (1 + 0x1p-8));
  check_close(off.ratio, 1 / .4);  // one unit roundoff over the floor of .4
  CHECK_FALSE(measure_against_oracle(at::zeros({3}), at::zeros({3}), at::zeros({3})).ratio);
}

TEST_CASE("oracle: where it is exactly zero there are distances, and no relative errors") {
  const at::Tensor zero = at::zeros({3});
  const OracleStats s = measure_against_oracle(zero, tensor({0, 1, 0}), tensor({3, 0, -4}));
  CHECK(s.scale == 0.0);
  CHECK(s.reference_distance == 1.0);
  CHECK(s.candidate_distance == 5.0);
  CHECK_FALSE(s.reference_error);
  CHECK_FALSE(s.candidate_error);
  check_close(s.ratio, 5.0);
  const Evidence e = measure_local({tensor({3, 0, -4}), zero, tensor({0, 1, 0}), {tensor({0, 0, 2})}});
  CHECK(e.scale == 0.0);
  CHECK(e.error == 5.0);
  CHECK(e.recorded_error == 1.0);
  CHECK(e.null_error == 2.0);
}

TEST_CASE("oracle: huge values, non-finite elements and complex numbers") {
  const at::Tensor o = tensor({1, 2, 3}) * 1e200, e = tensor({1, -1, 1}) * 1e195;
  check_close(measure_against_oracle(o, o + e, o + 3 * e).ratio, 3.0, 1e-9);
  const OracleStats s = measure_against_oracle(tensor({1, kNaN, 3}), tensor({2, kNaN, 3}), tensor({3, 5, 3}));
  check_close(s.ratio, 2.0);
  const at::Tensor z = at::complex(tensor({1, 2}), tensor({3, 4}));
  check_close(measure_against_oracle(z, z + 1, z - 2).ratio, 2.0);
  CHECK_THROWS_AS(measure_against_oracle(at::zeros({2}), at::zeros({2}), at::zeros({3})), Error);
}

}  // namespace parity::numbers
