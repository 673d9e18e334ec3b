// Histogram of the differences and the worst elements, against sorting in long double: another algorithm, other code.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "measure/measure.hpp"
#include "measure/spread.hpp"
#include "measure_numbers.hpp"

namespace parity::numbers {
namespace {

// By sorting: how many differences lie in [rms 2^k, rms 2^(k+1)).
void check_histogram(const at::Tensor& reference, const at::Tensor& candidate) {
  const auto r = to_vector(reference), c = to_vector(candidate);
  std::vector<long double> sorted;
  long double squares = 0;
  int64_t equal = 0, finite = 0;
  for (size_t i = 0; i < r.size(); ++i) {
    if (!std::isfinite(r[i]) || !std::isfinite(c[i])) continue;
    ++finite;
    squares += static_cast<long double>(r[i]) * r[i];
    if (c[i] == r[i])
      ++equal;
    else
      sorted.push_back(std::abs(static_cast<long double>(c[i]) - r[i]));
  }
  std::sort(sorted.begin(), sorted.end());
  const long double rms = std::sqrt(squares / static_cast<long double>(finite));
  const auto histogram = difference_histogram(reference, candidate, measure(reference, candidate));
  REQUIRE(histogram);
  CHECK(histogram->equal == equal);
  int64_t total = 0;
  for (size_t i = 0; i < histogram->counts.size(); ++i) {
    const int k = histogram->lowest + static_cast<int>(i);
    const auto below = [&](int e) {
      return std::lower_bound(sorted.begin(), sorted.end(), std::ldexp(rms, e)) - sorted.begin();
    };
    CAPTURE(k);
    CHECK(histogram->counts[i] == below(k + 1) - below(k));
    total += histogram->counts[i];
  }
  CHECK(total == static_cast<int64_t>(sorted.size()));
  if (histogram->counts.empty()) return;
  CHECK(histogram->counts.front() > 0);
  CHECK(histogram->counts.back() > 0);
}

}  // namespace

TEST_CASE("spread: known answers") {
  // rms = sqrt(8/2) = 2; d = 0 1 4 3 8 over 2: .5 2 1.5 4
  const at::Tensor r = tensor({2, 2, -2, 2, 2}), c = tensor({2, 3, 2, -1, 10});
  const auto h = difference_histogram(r, c, measure(r, c));
  REQUIRE(h);
  CHECK(h->equal == 1);
  CHECK(h->lowest == -1);
  CHECK(h->counts == std::vector<int64_t>{1, 1, 1, 1});
  CHECK_FALSE(difference_histogram(tensor({0, 0}), tensor({1, 2}), measure(tensor({0, 0}), tensor({1, 2}))));
  const auto same = difference_histogram(r, r, measure(r, r));
  REQUIRE(same);
  CHECK(same->equal == 5);
  CHECK(same->counts.empty());
}

TEST_CASE("spread: histogram agrees with a sort for every dtype and size") {
  for (const auto dtype : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf, at::kFloat8_e4m3fn})
    for (const int64_t n : {1, 7, 1023, 1025, 70001}) {
      CAPTURE(n);
      const at::Tensor r = random({n}, 3, dtype), c = (r.to(at::kDouble) * (1 + .05 * random({n}, 4))).to(dtype);
      check_histogram(r, c);
    }
  const at::Tensor whole = (random({3000}, 5, at::kDouble) * 1000).to(at::kLong);
  check_histogram(whole, whole + (random({3000}, 6, at::kDouble) * 2).to(at::kLong));
  at::Tensor special = random({2000}, 7, at::kFloat), other = special * 1.001;
  special[5] = NAN, other[9] = INFINITY;
  check_histogram(special, other);
  const at::Tensor tiny = random({500}, 8, at::kDouble);
  check_histogram(tiny, tiny + 0x1p-1070);  // differences and quotients are subnormal, or lost altogether
}

TEST_CASE("spread: worst elements, largest first, the earlier of equal ones first, never an equal pair") {
  const at::Tensor r = tensor({0, 1, 2, 3, 4, 5}).reshape({2, 3}), c = tensor({0, 3, 2, 1, 4.5, 5}).reshape({2, 3});
  const auto worst = worst_elements(r, c);
  REQUIRE(worst.size() == 3);
  CHECK(worst[0].index == std::vector<int64_t>{0, 1});
  CHECK(worst[0].reference == 1);
  CHECK(worst[0].candidate == 3);
  CHECK(worst[1].index == std::vector<int64_t>{1, 0});
  CHECK(worst[2].index == std::vector<int64_t>{1, 1});
  CHECK(worst_elements(r, c, 2).size() == 2);
  CHECK(worst_elements(r, r).empty());
}

TEST_CASE("spread: worst elements of many blocks, the earlier of equal ones first") {
  const int64_t n = 150001;
  const at::Tensor r = at::zeros({n}, at::kFloat), c = at::floor(random({n}, 11, at::kFloat).abs() * 4);
  const auto v = to_vector(c);
  const double most = *std::max_element(v.begin(), v.end());
  std::vector<int64_t> order;
  for (double size = most; size > 0 && order.size() < 8; --size)
    for (int64_t i = 0; i < n && order.size() < 8; ++i)
      if (v[static_cast<size_t>(i)] == size) order.push_back(i);
  const auto worst = worst_elements(r, c);
  REQUIRE(worst.size() == order.size());
  for (size_t i = 0; i < order.size(); ++i) CHECK(worst[i].index == std::vector<int64_t>{order[i]});
}

TEST_CASE("spread: worst elements agree with a sort, what one side alone cannot count comes first") {
  at::Tensor r = random({40, 50}, 9, at::kBFloat16),
             c = (r.to(at::kDouble) * (1 + .1 * random({40, 50}, 10))).to(at::kBFloat16);
  r[7][8] = NAN, c[7][8] = NAN;  // equal
  c[3][4] = NAN;
  const auto vr = to_vector(r), vc = to_vector(c);
  std::vector<size_t> order;
  for (size_t i = 0; i < vr.size(); ++i)
    if (std::isfinite(vr[i]) && std::isfinite(vc[i])) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(vc[a] - vr[a]) > std::abs(vc[b] - vr[b]); });
  const auto worst = worst_elements(r, c);
  REQUIRE(worst.size() == 8);
  CHECK(worst[0].index == std::vector<int64_t>{3, 4});
  CHECK(std::isnan(worst[0].candidate));
  for (size_t i = 1; i < worst.size(); ++i) {
    const auto at = static_cast<int64_t>(order[i - 1]);
    CHECK(worst[i].index == std::vector<int64_t>{at / 50, at % 50});
    CHECK(worst[i].reference == vr[order[i - 1]]);
    CHECK(worst[i].candidate == vc[order[i - 1]]);
  }
  const at::Tensor complex = at::view_as_complex(random({6, 2}, 11, at::kFloat)), moved = complex.clone();
  moved[4] += 1;
  REQUIRE(worst_elements(complex, moved).size() == 1);
  CHECK(worst_elements(complex, moved)[0].index == std::vector<int64_t>{4});
}

}  // namespace parity::numbers
