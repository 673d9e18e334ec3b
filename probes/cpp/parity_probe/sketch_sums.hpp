// The sums of a sketch over a part of a tensor: its buckets, with a sign each, and exact statistics.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "block_sums.hpp"
#include "elements.hpp"
#include "sketch_places.hpp"
#include "words.hpp"

namespace parity::probe {

struct SketchSums {
  static constexpr std::size_t kMost = 4096, kBlock = 4096;  // buckets; numbers looked at at once: 16 KiB as float32
  std::int64_t count = 0, nan = 0, infinite = 0, zero = 0;
  double sum = 0, squares = 0, minimum = std::numeric_limits<double>::infinity(), maximum = -minimum;
  std::uint64_t specials = 0, words = 0;             // words: see words_of, of blocks of kBlock numbers, if asked for
  bool single = false, half = false, brain = false;  // does every number fit float32, float16, bfloat16?

  explicit SketchSums(Dtype dtype, bool with_words = false) : with_words_(with_words) {
    half = brain = dtype.kind == Kind::real && dtype.size >= 4, single = half && dtype.size == 8;
  }

  /// Memory for the buckets, before `add`; cleared by it.
  void reserve() { signed_.reset(new double[2 * kMost]); }
  void clear() { std::fill_n(signed_.get(), 2 * kMost, 0.0); }

  /// `n` numbers (a complex element is two, `dtype` that of one of them) that lie together in the whole tensor, from
  /// place `first` on.
  void add(const char* at, Dtype dtype, std::uint64_t first, std::size_t n, Places& places) {
    while (n > 0) {
      const std::size_t some = std::min({n, kBlock, Places::kBlock - static_cast<std::size_t>(first % Places::kBlock)});
      if (with_words_) words += words_of(at, some * dtype.size, first);
      if (are_singles(dtype))
        add_singles(at, dtype, first, some, places);
      else
        add_others(at, dtype, first, some);
      at += some * dtype.size, first += some, n -= some;
    }
  }

  void join(const SketchSums& other) {
    count += other.count, nan += other.nan, infinite += other.infinite, zero += other.zero;
    sum += other.sum, squares += other.squares, specials += other.specials, words += other.words;
    minimum = std::min(minimum, other.minimum), maximum = std::max(maximum, other.maximum);
    single = single && other.single, half = half && other.half, brain = brain && other.brain;
  }

  /// Adds what has gathered to buckets, a power of two of them: number b of many is number b mod their number of few.
  void add_to(std::vector<double>& buckets) const {
    for (std::size_t b = 0; b < kMost; ++b) buckets[b & (buckets.size() - 1)] += signed_[b] - signed_[kMost + b];
  }

 private:
  void add_singles(const char* at, Dtype dtype, std::uint64_t first, std::size_t n, Places& places) {
    float room[kBlock];
    std::uint16_t hashed[kBlock];
    const char* x = singles(at, dtype, n, room);
    const BlockSums found = block_sums(x, n);
    if (!std::isfinite(found.magnitudes)) return add_others(at, dtype, first, n);
    count += static_cast<std::int64_t>(n), zero += found.zero, sum += found.sum, squares += found.squares;
    minimum = std::min<double>(minimum, found.minimum), maximum = std::max<double>(maximum, found.maximum);
    scatter(x, places.of(first, n, hashed), n);
    for (std::size_t i = 0; i < n && (half || brain); ++i) narrow(single_at(x + i * sizeof(float)));
  }

  // One place after another, but read by four: a number goes to the bucket of its hash in the half of its sign.
  void scatter(const char* x, const std::uint16_t* places, std::size_t n) {
    double* const sums = signed_.get();
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4, x += 4 * sizeof(float)) {
      std::uint16_t four[4];
      std::memcpy(four, places + i, sizeof four);
      sums[four[0]] += single_at(x), sums[four[1]] += single_at(x + 4);
      sums[four[2]] += single_at(x + 8), sums[four[3]] += single_at(x + 12);
    }
    for (; i < n; ++i, x += sizeof(float)) sums[places[i]] += single_at(x);
  }

  void add_others(const char* at, Dtype dtype, std::uint64_t first, std::size_t n) {
    double wide[256];
    for (std::size_t i = 0; i < n; i += std::size(wide)) {
      const std::size_t some = std::min(std::size(wide), n - i);
      doubles(at + i * dtype.size, dtype, some, wide);
      for (std::size_t k = 0; k < some; ++k) add_one(wide[k], hash_of(first + i + k));
    }
  }

  void add_one(double x, std::uint64_t hash) {
    ++count;
    if (!std::isfinite(x)) {
      ++(std::isnan(x) ? nan : infinite);
      specials += hash * (std::isnan(x) ? 1 : x > 0 ? 3 : 5);
      return;
    }
    zero += x == 0, sum += x, squares += x * x, minimum = std::min(minimum, x), maximum = std::max(maximum, x);
    signed_[high_bits(hash)] += x;
    if (single || half || brain) narrow(x);
  }

  // Can narrower floats hold it?
  void narrow(double x) {
    const auto as_single = static_cast<float>(x);
    std::uint32_t bits;
    std::memcpy(&bits, &as_single, sizeof bits);
    const bool exact = static_cast<double>(as_single) == x;
    single = single && exact;
    brain = brain && exact && (bits & 0xFFFF) == 0;
    const double size = std::abs(x);
    half = half && exact && size <= 65504 &&
           (size >= 0x1p-14 ? (bits & 0x1FFF) == 0 : std::nearbyint(size * 0x1p24) == size * 0x1p24);
  }

  bool with_words_;
  std::unique_ptr<double[]> signed_;  // the buckets of numbers that are added, then of those that are subtracted
};

}  // namespace parity::probe
