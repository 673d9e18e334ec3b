// The CUDA kernels' arithmetic on the CPU, in the GPU's order, against plain loops. Stands alone, so that
// check_cuda_faults.py can compile it with a fault in the kernels.
#include <doctest/doctest.h>

#include "cuda_emulated.hpp"

using namespace parity::test;

namespace {

// `size`: the sum of the absolute values of what was added: rounding is relative to it.
void check_sum(double got, long double want, long double size) {
  if (size > 1e300L) {  // overflowed, and says so
    CHECK_FALSE(std::abs(got) < 1e300);
    return;
  }
  CHECK(static_cast<double>(std::abs(got - want)) <= static_cast<double>(1e-13L * size) + 1e-300);
}

void check_totals(const Array& r, const Array& c, const cuda::PairTotals& got) {
  const Plain want = plain_statistics(r, c);
  CHECK(r.size() - got.not_finite == want.finite);
  CHECK(got.worst == want.worst);
  if (want.worst >= 0) {
    const cuda::PairResult whole = cuda::finished(pair_of(r, c), got);
    CHECK(whole.finite == want.finite);
    CHECK(whole.worst_reference == r[want.worst]);
    CHECK(whole.worst_candidate == c[want.worst]);
  }
  if (want.finite > 0) CHECK(got.max_d == static_cast<double>(want.max_d));
  CHECK(got.special_reference == want.special_r);
  CHECK(got.special_candidate == want.special_c);
  CHECK(got.special_mismatch == want.mismatch);
  CHECK(got.zeros_reference == want.zeros_r);
  CHECK((got.any_candidate == 0) == (want.zeros_c == r.size()));
  CHECK((got.differs_reference != 0) == want.varies_r);
  CHECK((got.differs_candidate != 0) == want.varies_c);
  check_sum(got.sum_d, want.sum_d, want.sum_d), check_sum(got.sum_dd, want.sum_dd, want.sum_dd);
  check_sum(got.sum_r, want.sum_r, want.sum_r), check_sum(got.sum_rr, want.sum_rr, want.sum_rr);
  check_sum(got.sum_c, want.sum_c, want.sum_c), check_sum(got.sum_cc, want.sum_cc, want.sum_cc);
  if (want.sum_rr < 1e300L && want.sum_cc < 1e300L) {
    check_sum(got.sum_rc, want.sum_rc, want.size_rc);
    check_sum(got.sum_dr, want.sum_dr, want.size_dr);
  }
  int64_t equal = 0;
  long double ulp = 0;
  REQUIRE(got.bits_known == plain_bits(r, c, equal, ulp));
  if (!got.bits_known) return;
  CHECK(got.equal == equal);
  CHECK(static_cast<long double>(got.max_ulp) == ulp);
}

}  // namespace

TEST_CASE("cuda: bits of every narrow float decode to its number and back") {
  for (size_t e = 1; e < stored_types().size(); ++e) {
    const Stored& type = stored_types()[e];
    const cuda::Format format = cuda::format_of(static_cast<cuda::Element>(e));
    CAPTURE(type.name);
    const uint64_t step = type.bytes == 4 ? 65521 : 1;  // a prime: all exponents, most mantissas
    int64_t wrong = 0;
    for (uint64_t bits = 0; bits < uint64_t{1} << (8 * type.bytes); bits += step) {
      const double want = number_of(bits, type), got = cuda::decoded(bits, static_cast<cuda::Element>(e));
      uint64_t back = 0;
      if (std::isnan(want))
        wrong += !std::isnan(got);
      else
        wrong += got != want || std::signbit(got) != std::signbit(want);
      if (std::isfinite(want)) wrong += !cuda::encoded_exactly(want, format, back) || back != bits;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("cuda: what is no number of a narrower float is not encoded") {
  for (size_t e = 1; e < stored_types().size(); ++e) {
    const Stored& type = stored_types()[e];
    const cuda::Format format = cuda::format_of(static_cast<cuda::Element>(e));
    CAPTURE(type.name);
    const uint64_t last = bits_near(1e308, type);
    const double greatest = number_of(last, type), smallest = number_of(1, type),
                 one = number_of(bits_near(1, type) + 1, type);
    uint64_t bits = 0;
    for (const double x : {greatest * 1.01, greatest * 2, greatest + (greatest - number_of(last - 1, type)),
                           smallest / 2, smallest * 1.5, one + 1e-12, 5e-324, std::numeric_limits<double>::max()})
      for (const double sign : {1., -1.}) CHECK_FALSE(cuda::encoded_exactly(sign * x, format, bits));
  }
}

TEST_CASE("cuda: sums and counts of hostile pairs of all element types are those of plain loops") {
  uint64_t seed = 1;
  for (const KindOfPair& kind : kinds_of_pairs()) {
    CAPTURE(kind.name());
    const Array r = some_numbers(2 * cuda::tile_of(1) + 301, kind.a, ++seed, kind.hostile),
                c = near_copy(r, kind.b, ++seed);
    check_totals(r, c, emulated_totals(pair_of(r, c), 2, seed));
  }
}

TEST_CASE("cuda: small, constant, zero and special arrays") {
  const Stored &fp32 = stored_types()[1], &bf16 = stored_types()[3];
  for (const int64_t n : {1, 2, 255, 256, 257, 2048, 2049, 16385}) {
    CAPTURE(n);
    for (const uint64_t bits : {0x3f800000U, 0U, 0x80000000U, 0x7fc00000U, 0x7f800000U, 1U}) {
      Array r(fp32), c(fp32), narrow(bf16);
      for (int64_t i = 0; i < n; ++i) {
        r.push(bits);
        c.push(i == n / 2 ? bits ^ 0x80000000U : bits);
        narrow.push(bits >> 16);
      }
      check_totals(r, r, emulated_totals(pair_of(r, r), 1, 0));
      check_totals(r, c, emulated_totals(pair_of(r, c), 1, 0));
      check_totals(narrow, r, emulated_totals(pair_of(narrow, r), 1, 0));
    }
  }
}

TEST_CASE("cuda: the same digits whatever the grid and who is first") {
  const Array r = some_numbers(300 * cuda::tile_of(1) - 77, stored_types()[1], 7, true),
              c = near_copy(r, stored_types()[1], 8);
  const cuda::Pair pair = pair_of(r, c);
  const cuda::PairTotals one = emulated_totals(pair, 1, 0);
  for (const int64_t blocks : {2, 3, 7, 299, 1000})
    for (const uint64_t seed : {1, 2}) CHECK(same_totals(one, emulated_totals(pair, blocks, seed)));
  cuda::PairTotals other = one;  // would another order be noticed?
  other.sum_dd = std::nextafter(other.sum_dd, 0);
  CHECK_FALSE(same_totals(one, other));
}

TEST_CASE("cuda: ranks by histograms are those of the sorted differences") {
  uint64_t seed = 100;
  for (const Stored& type : stored_types())
    for (const bool hostile : {false, true}) {
      CAPTURE(type.name);
      CAPTURE(hostile);
      const Array r = some_numbers(5000, type, ++seed, hostile), c = near_copy(r, type, ++seed);
      const std::vector<double> sorted = plain_statistics(r, c).distances, found = distances_of(pair_of(r, c));
      const auto finite = static_cast<int64_t>(sorted.size());
      REQUIRE(found.size() == sorted.size());
      for (const int64_t few : {0, 1, 100, 10000}) {
        cuda::RankSearch search = emulated_search(found, cuda::Interval(), {}, few);
        for (const int64_t rank : {int64_t{0}, finite / 3, finite * 95 / 100, finite * 95 / 100 + 1, finite - 1})
          CHECK(search.at(rank) == sorted[static_cast<size_t>(rank)]);
      }
    }
}

TEST_CASE("cuda: intervals have no more bins than a histogram, all of their numbers, and no others") {
  for (const uint64_t patterns : {uint64_t{1}, uint64_t{cuda::kBins}, uint64_t{cuda::kBins} + 1, uint64_t{1} << 40}) {
    const cuda::Interval interval = cuda::interval_from(17, patterns);
    CHECK(interval.bins <= cuda::kBins);
    CHECK((interval.bins << interval.shift) >= patterns);
    CHECK(cuda::bin_of(cuda::double_of(17), interval) == 0);
    CHECK(cuda::bin_of(cuda::double_of(16), interval) == -1);
  }
  CHECK(cuda::bin_of(std::numeric_limits<double>::max(), cuda::Interval()) > 0);
  CHECK(cuda::bin_of(std::numeric_limits<double>::infinity(), cuda::Interval()) == -1);
  CHECK(cuda::bin_of(std::numeric_limits<double>::quiet_NaN(), cuda::Interval()) == -1);
}

TEST_CASE("cuda: a tie is counted beside the differences that were kept") {
  std::vector<double> kept;
  for (int i = 0; i < 1000; ++i) kept.push_back(1 + i * 1e-3);
  for (const double value : {1., 1.5, 1.5005, 1.9995, 3.}) {
    std::vector<double> all = kept;
    all.insert(all.end(), 700, value);
    std::sort(all.begin(), all.end());
    for (const int64_t few : {0, 3, 600, 5000}) {
      cuda::RankSearch search = emulated_search(kept, cuda::Interval(), {value, 700}, few);
      int64_t wrong = 0;
      for (size_t rank = 0; rank < all.size(); ++rank) wrong += search.at(static_cast<int64_t>(rank)) != all[rank];
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("cuda: a sample takes one place from each stretch, scattered") {
  for (const int64_t n : {cuda::kSample + 1, 3 * cuda::kSample - 1, 1000 * cuda::kSample + 17, int64_t{1} << 40}) {
    std::vector<int64_t> remainders(16);
    int64_t last = -1, wrong = 0;
    for (int64_t k = 0; k < cuda::kSample; ++k) {
      const int64_t at = cuda::sampled_place(k, n);
      wrong += at <= last || at >= n;
      last = at;
      ++remainders[static_cast<size_t>(at % 16)];
    }
    CHECK(wrong == 0);
    for (const int64_t of_16 : remainders) CHECK(of_16 > cuda::kSample / 20);  // whatever period the data have
  }
}

// Two standard deviations of a sample's rank lie inside a band's margin of five; 100 samples here.
TEST_CASE("cuda: the bands of a sample hold the percentiles, counted and kept in the pass") {
  uint64_t seed = 300;
  for (size_t e = 0; e < stored_types().size(); ++e) {
    const Stored& type = stored_types()[e];
    CAPTURE(type.name);
    const Array r = some_numbers(9 * cuda::tile_of(1) + 99, type, ++seed, false), c = near_copy(r, type, ++seed);
    const cuda::Pair pair = pair_of(r, c);
    const std::vector<double> sorted = plain_statistics(r, c).distances;
    const auto finite = static_cast<int64_t>(sorted.size());
    std::mt19937_64 random(seed);
    std::vector<uint32_t> sample;
    for (int i = 0; i < 5000; ++i) sample.push_back(cuda::sample_key(sorted[random() % sorted.size()]));
    std::sort(sample.begin(), sample.end());
    const std::vector<double> quantiles{.95, .99};
    cuda::Bands bands;
    for (size_t b = 0; b < 2; ++b) bands.band[b] = cuda::band_around(sample.data(), 5000, quantiles[b]);
    KeepInLists keep;
    const cuda::PairTotals totals = emulated_totals(pair, 2, 1, bands, keep);
    CHECK(same_totals(totals, emulated_totals(pair, 1, 0)));
    for (size_t b = 0; b < 2; ++b) {
      const cuda::Band& band = bands.band[b];
      const auto kept = static_cast<int64_t>(keep.lists[b].size());
      const int64_t rank = static_cast<int64_t>(quantiles[b] * static_cast<double>(finite - 1)),
                    place = rank - totals.below[b];
      REQUIRE(place >= 0);
      REQUIRE(place < kept + totals.tied[b]);
      CHECK(kept < finite / 10);
      cuda::RankSearch search = emulated_search(keep.lists[b], cuda::interval_of(band), {band.tie, totals.tied[b]}, 10);
      CHECK(search.at(place) == sorted[static_cast<size_t>(rank)]);
    }
  }
}

TEST_CASE("cuda: bands of small, empty and constant samples") {
  const std::vector<uint32_t> one{cuda::key_of(2.)}, same(1000, cuda::key_of(.25));
  CHECK(cuda::sample_key(std::numeric_limits<double>::quiet_NaN()) >
        cuda::sample_key(std::numeric_limits<double>::max()));
  CHECK(cuda::sample_key(std::numeric_limits<double>::infinity()) >
        cuda::sample_key(std::numeric_limits<double>::max()));
  CHECK(cuda::band_around(one.data(), 0, .95).low == uint32_t{1} << 31);
  const cuda::Band all = cuda::band_around(one.data(), 1, .95);
  CHECK(all.low == 0);
  CHECK(cuda::key_of(std::numeric_limits<double>::max()) <= all.low + all.width);
  const cuda::Band narrow = cuda::band_around(same.data(), 1000, .5);
  CHECK(narrow.tie == .25);
  CHECK(narrow.width == 0);
  CHECK(narrow.low == cuda::key_of(.25));
}
