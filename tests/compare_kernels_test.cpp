// The kernels behind the statistics against plain loops in long double, under every instruction set, at sizes that
// leave every kind of rest.
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "instruction_sets.hpp"
#include "kernels/cpu/compare_bits.hpp"
#include "kernels/cpu/compare_block.hpp"

namespace parity::kernel_sums {

using namespace kernels;

template <class T>
using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

template <class T>
struct Pairs {
  std::vector<T> r, c;
};

template <class T>
T number(double x) {
  if constexpr (sizeof(T) == 2) return static_cast<T>(static_cast<float>(x));
  return static_cast<T>(x);
}

/// Pairs close to each other, among them equal ones, zeros of both signs, denormals, and pairs on both sides of zero.
template <class T>
Pairs<T> pairs(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Pairs<T> out;
  for (int64_t i = 0; i < n; ++i) {
    double r = normal(random), c = r + 1e-2 * normal(random);
    if (i % 7 == 3) c = r;
    if (i % 19 == 5) r = i % 2 == 0 ? 0. : -0.;
    if (i % 53 == 11) c = -r;
    if (i % 61 == 13) r = 1e-6 * normal(random), c = 1e-7 * normal(random);
    out.r.push_back(number<T>(r));
    out.c.push_back(number<T>(c));
  }
  return out;
}

const uint16_t* half_bits(const void* p) { return static_cast<const uint16_t*>(p); }
BlockFigures figures(const double* r, const double* c, int64_t n, BlockDifferences* d) {
  return compare_block(r, c, n, d);
}
BlockFigures figures(const float* r, const float* c, int64_t n, BlockDifferences* d) {
  return compare_block(r, c, n, d);
}
BlockFigures figures(const c10::BFloat16* r, const c10::BFloat16* c, int64_t n, BlockDifferences* d) {
  return compare_block_bf16(half_bits(r), half_bits(c), n, d);
}
BlockFigures figures(const c10::Half* r, const c10::Half* c, int64_t n, BlockDifferences* d) {
  return compare_block_fp16(half_bits(r), half_bits(c), n, d);
}

constexpr double BlockSums::*kSums[] = {&BlockSums::max_d, &BlockSums::sum_d,  &BlockSums::sum_dd,
                                        &BlockSums::sum_r, &BlockSums::sum_rr, &BlockSums::sum_dr};

template <class T>
void check_sums(const Pairs<T>& p, const BlockSums& got) {
  long double want[6] = {}, size[6] = {};
  for (size_t i = 0; i < p.r.size(); ++i) {
    const long double r = static_cast<double>(p.r[i]);
    const long double d = static_cast<double>(p.c[i]) - static_cast<double>(p.r[i]);
    want[0] = std::max(want[0], std::abs(d));
    const long double terms[] = {std::abs(d), d * d, std::abs(r), r * r, d * r};
    for (size_t k = 0; k < 5; ++k) {
      want[k + 1] += terms[k];
      size[k + 1] += std::abs(terms[k]);
    }
  }
  for (size_t k = 0; k < 6; ++k) {
    CAPTURE(k);
    CHECK(std::abs(got.*kSums[k] - want[k]) <= 1e-14L * size[k]);  // the greatest: exactly
  }
}

/// What is kept, in ascending order, and that nothing was written beyond the room for it.
template <class T>
std::vector<double> kept(const Pairs<T>& p, double above, const BlockSums& plain) {
  constexpr double kUntouched = -7;
  std::vector<double> out(static_cast<size_t>(kBlock + kBlockSpill) + 3, kUntouched);
  BlockDifferences differences{above, out.data(), -1};
  const auto same = figures(p.r.data(), p.c.data(), static_cast<int64_t>(p.r.size()), &differences).sums;
  for (const auto sum : kSums) CHECK(same.*sum == plain.*sum);
  for (size_t i = out.size() - 3; i < out.size(); ++i) CHECK(out[i] == kUntouched);
  REQUIRE(differences.count >= 0);
  out.resize(static_cast<size_t>(differences.count));
  std::sort(out.begin(), out.end());
  return out;
}

template <class T>
void check_kept(const Pairs<T>& p, const BlockSums& plain) {
  std::vector<double> all;
  for (size_t i = 0; i < p.r.size(); ++i)
    all.push_back(std::abs(static_cast<double>(p.c[i]) - static_cast<double>(p.r[i])));
  std::sort(all.begin(), all.end());
  CHECK(kept(p, -1, plain) == all);
  for (const double above : {0., all[all.size() / 2], all[all.size() * 9 / 10], all.back()})
    CHECK(kept(p, above, plain) == std::vector(std::upper_bound(all.begin(), all.end(), above), all.end()));
}

/// As integers in the order of the numbers they stand for: two zeros are one place.
template <class U>
__int128 ordered(U bits) {
  constexpr U kSign = U(U(1) << (8 * sizeof(U) - 1));
  const auto magnitude = static_cast<__int128>(U(bits & U(~kSign)));
  return (bits & kSign) != 0 ? -magnitude : magnitude;
}

void check_bits(const BlockBits& got, const BlockBits& want) {
  CHECK(got.max_ulp == want.max_ulp);
  CHECK(got.equal == want.equal);
  CHECK(got.zeros == want.zeros);
}

/// Found beside the sums, and alone.
template <class T>
void check_bits(const Pairs<T>& p, const BlockBits& beside) {
  using U = Bits<T>;
  BlockBits want;
  std::vector<U> r, c;
  for (size_t i = 0; i < p.r.size(); ++i) {
    r.push_back(std::bit_cast<U>(p.r[i]));
    c.push_back(std::bit_cast<U>(p.c[i]));
    const __int128 apart = ordered(c.back()) - ordered(r.back());
    want.max_ulp = std::max(want.max_ulp, static_cast<uint64_t>(apart < 0 ? -apart : apart));
    want.equal += r.back() == c.back();
    want.zeros += p.r[i] == T(0);
  }
  check_bits(beside, want);
  check_bits(block_bits(r.data(), c.data(), static_cast<int64_t>(r.size())), want);
}

template <class T>
void check_all() {
  for (const int64_t n : {1, 7, 31, 63, 64, 65, 129, 500, 1023, 1024})
    for (const unsigned seed : {1U, 2U}) {
      CAPTURE(n);
      const auto p = pairs<T>(n, seed);
      const auto plain = figures(p.r.data(), p.c.data(), n, nullptr);
      check_sums(p, plain.sums);
      check_kept(p, plain.sums);
      check_bits(p, plain.bits);
    }
}

TEST_CASE_TEMPLATE("compare kernels: sums, bits and kept differences are those of plain loops", T, double, float,
                   c10::BFloat16, c10::Half) {
  on_every_instruction_set([] { check_all<T>(); });
}

TEST_CASE("compare kernels: a NaN or Inf wherever it stands leaves a sum that is not finite") {
  on_every_instruction_set([] {
    for (const float special : {NAN, INFINITY, -INFINITY})
      for (const size_t at : {0, 63, 64, 698, 699})
        for (const bool in_reference : {true, false}) {
          auto p = pairs<c10::BFloat16>(700, 3);
          (in_reference ? p.r : p.c)[at] = special;
          const auto s = figures(p.r.data(), p.c.data(), 700, nullptr).sums;
          CHECK_FALSE((std::isfinite(s.sum_rr) && std::isfinite(s.sum_dd)));
        }
  });
}

TEST_CASE("compare kernels: the ULP distance of a far pair is found on either side of zero") {
  on_every_instruction_set([] {
    for (const size_t at : {0, 77, 191, 255, 256, 299}) {
      std::vector<float> r(300, 1.F), c(300, 1.F);
      c[at] = -1;
      const auto u = [](const std::vector<float>& v) { return reinterpret_cast<const uint32_t*>(v.data()); };
      CHECK(block_bits(u(r), u(c), 300).max_ulp == uint64_t{2} * std::bit_cast<uint32_t>(1.F));
      r[at] = c[at] = 1;
      c[at] = 2;
      CHECK(block_bits(u(r), u(c), 300).max_ulp == uint64_t{1} << 23);
    }
  });
}

}  // namespace parity::kernel_sums
