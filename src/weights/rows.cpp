#include "weights/rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "measure/constants_apart.hpp"

namespace parity {
namespace {

// Of one row's sums under rounding to bf16 (roundoff 2^-9, uniform: 0.58 of it on the average), in standard deviations.
constexpr double kRowRoundoff = 0x1p-9 * 0.58, kDeviations = 5, kRowSummation = 1e-5;

constexpr int64_t kElementsOfFactor = 8;  // that one is fitted to, at least
constexpr int64_t kPrints = 8;            // random projections of a row
constexpr double kWindow =
    0x1p-6;  // of a row's norm: a projection moves by 0.58 roundoffs of it, one in 1e6 by five times that

at::Tensor random_signs(int64_t width) {
  at::Tensor signs = at::empty({width, kPrints}, at::kFloat);
  float* x = signs.mutable_data_ptr<float>();
  uint64_t state = 0x9e3779b97f4a7c15;
  for (int64_t i = 0; i < signs.numel(); ++i) {  // xorshift64 (Marsaglia 2003)
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    x[i] = (state >> 32) & 1 ? 1.f : -1.f;
  }
  return signs;
}

at::Tensor as_rows(const at::Tensor& tensor, int64_t axis) {
  const at::Tensor real = tensor.is_complex() ? at::view_as_real(tensor) : tensor;
  if (axis < 0) return real.reshape({1, -1}).to(at::kFloat);
  return real.movedim(axis, 0).reshape({tensor.size(axis), -1}).to(at::kFloat);
}

std::vector<float> numbers(const at::Tensor& t) {
  const at::Tensor x = t.to(at::kFloat).contiguous();
  return {x.const_data_ptr<float>(), x.const_data_ptr<float>() + x.numel()};
}

// For each row of `mine` the nearest of `theirs` that no other took, by random projections; -1: none within what
// rounding explains. Equal rows stay in place.
std::vector<int64_t> nearest_rows(const at::Tensor& mine, const at::Tensor& theirs) {
  const at::Tensor signs = random_signs(mine.size(1));  // (width, kPrints)
  const std::vector<float> a = numbers(mine.matmul(signs)), b = numbers(theirs.matmul(signs));
  const std::vector<float> norms = numbers(mine.norm(2, 1));
  std::vector<int64_t> order(theirs.size(0)), nearest(mine.size(0), -1);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return b[i * kPrints] < b[j * kPrints]; });
  std::vector<bool> taken(order.size(), false);
  for (int64_t i = 0; i < mine.size(0); ++i) {
    const float* print = &a[i * kPrints];
    const float window = static_cast<float>(kWindow) * norms[i] + 1e-30f;
    float least = window;
    auto at = std::lower_bound(order.begin(), order.end(), print[0] - window,
                               [&](int64_t j, float value) { return b[j * kPrints] < value; });
    for (; at != order.end() && b[*at * kPrints] <= print[0] + window; ++at) {
      if (taken[*at]) continue;
      float distance = 0;
      for (int64_t k = 0; k < kPrints; ++k) distance = std::max(distance, std::abs(print[k] - b[*at * kPrints + k]));
      if (distance < least || (distance == least && *at == i)) least = distance, nearest[i] = *at;
    }
    if (nearest[i] >= 0) taken[nearest[i]] = true;
  }
  return nearest;
}

// The largest run length that the permutation keeps together, dividing its size.
size_t block_length(const std::vector<int64_t>& permutation) {
  const size_t n = permutation.size();
  for (size_t length = n / 2; length > 1; --length) {
    if (n % length != 0) continue;
    bool whole = true;
    for (size_t i = 0; i < n && whole; ++i)
      whole = i % length == 0 ? permutation[i] % static_cast<int64_t>(length) == 0
                              : permutation[i] == permutation[i - 1] + 1;
    if (whole) return length;
  }
  return 1;
}

// Rows (g, 2, n) read as (g, n, 2) or the other way round: RoPE's two pairings.
bool interleaved(const std::vector<int64_t>& p, size_t& group) {
  for (group = 4; group <= p.size(); ++group) {
    if (p.size() % group != 0 || group % 2 != 0) continue;
    bool halves = true, pairs = true;
    const auto half = static_cast<int64_t>(group / 2);
    for (size_t i = 0; i < p.size() && (halves || pairs); ++i) {
      const auto base = static_cast<int64_t>(i / group * group), k = static_cast<int64_t>(i % group);
      halves = halves && p[i] == base + k % 2 * half + k / 2;
      pairs = pairs && p[i] == base + k % half * 2 + k / half;
    }
    if (halves || pairs) return true;
  }
  return false;
}

}  // namespace

RowSums row_sums(const at::Tensor& tensor, int64_t axis) {
  const at::Tensor rows = as_rows(tensor, axis);
  RowSums sums;
  sums.width = rows.size(1);
  sums.sum = numbers(rows.sum(1));
  sums.square = numbers(rows.square().sum(1));
  return sums;
}

bool rows_alike(const RowSums& a, size_t i, const RowSums& b, size_t j) {
  const double square = std::max(a.square[i], b.square[j]), width = static_cast<double>(a.width);
  // sum x^4 is not kept: at most sum x^2 squared (one large element), three times its mean for a normal distribution
  const double spread = 2 * kRowRoundoff * square * std::sqrt(std::min(1.0, 12 / width));
  if (!(std::abs(a.square[i] - b.square[j]) <= kDeviations * spread + kRowSummation * square)) return false;
  return std::abs(a.sum[i] - b.sum[j]) <=
         (kDeviations * kRowRoundoff + kRowSummation * std::sqrt(width)) * std::sqrt(square);
}

std::optional<int64_t> find_rows(const RowSums& whole, const RowSums& part) {
  const size_t n = part.count();
  if (n == 0 || n > whole.count() || whole.width != part.width) return std::nullopt;
  const size_t allowed = n / 10;
  for (size_t begin = 0; begin + n <= whole.count(); ++begin) {
    size_t unlike = 0;  // first, middle and last row: two of them settle most places
    for (const size_t i : {size_t{0}, n / 2, n - 1}) unlike += !rows_alike(part, i, whole, begin + i);
    if (unlike > (n < 10 ? 0 : 1)) continue;
    unlike = 0;
    for (size_t i = 0; i < n && unlike <= allowed; ++i) unlike += !rows_alike(part, i, whole, begin + i);
    if (unlike <= allowed) return static_cast<int64_t>(begin);
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> row_permutation(const at::Tensor& reference, const at::Tensor& candidate,
                                                    int64_t axis) {
  const at::Tensor mine = as_rows(reference, axis), theirs = as_rows(candidate, axis);
  if (mine.size(0) < 2 || mine.sizes() != theirs.sizes()) return std::nullopt;
  std::vector<int64_t> permutation = nearest_rows(mine, theirs);
  if (std::count(permutation.begin(), permutation.end(), -1) > 0) return std::nullopt;
  return std::is_sorted(permutation.begin(), permutation.end()) ? std::nullopt : std::optional(std::move(permutation));
}

double rows_found(const at::Tensor& part, const at::Tensor& whole) {
  const at::Tensor mine = as_rows(part, 0), theirs = as_rows(whole, 0);
  if (mine.size(0) == 0 || mine.size(1) != theirs.size(1)) return 0;
  const std::vector<int64_t> nearest = nearest_rows(mine, theirs);
  const auto lost = std::count(nearest.begin(), nearest.end(), -1);
  return 1 - static_cast<double>(lost) / static_cast<double>(nearest.size());
}

std::string permutation_text(const std::vector<int64_t>& permutation, const std::string& rows) {
  const size_t n = permutation.size();
  if (std::is_sorted(permutation.rbegin(), permutation.rend())) return fmt::format("{} in reverse", rows);
  if (size_t group = 0; interleaved(permutation, group))
    return fmt::format("{} interleaved within groups of {} (the other pairing of RoPE)", rows, group);
  const size_t length = block_length(permutation);
  std::vector<int64_t> moved;
  for (size_t i = 0; i < n; i += length)
    if (permutation[i] != static_cast<int64_t>(i)) moved.push_back(static_cast<int64_t>(i / length));
  std::vector<int64_t> places;
  for (const int64_t block : moved) places.push_back(permutation[block * length] / static_cast<int64_t>(length));
  const size_t shown = std::min<size_t>(moved.size(), 8);
  return fmt::format("{} stand in another order: {} {}{} come from {}{}",
                     length > 1 ? fmt::format("{} blocks of {} {} (heads)", n / length, length, rows)
                                : fmt::format("{} of {} {}", moved.size(), n, rows),
                     length > 1 ? "blocks" : rows, fmt::join(moved.begin(), moved.begin() + shown, " "),
                     moved.size() > shown ? " …" : "", fmt::join(places.begin(), places.begin() + shown, " "),
                     moved.size() > shown ? " …" : "");
}

std::vector<double> slice_factors(const at::Tensor& reference, const at::Tensor& candidate, int64_t axis, double rest) {
  std::vector<double> factors;
  if (reference.size(axis) < 2 || reference.numel() / reference.size(axis) < kElementsOfFactor) return factors;
  for (int64_t i = 0; i < reference.size(axis); ++i) {
    const FactorFit fit = fit_factor(candidate.select(axis, i), reference.select(axis, i));
    if (!(fit.left <= rest)) return {};
    factors.push_back(fit.factor);
  }
  return factors;
}

}  // namespace parity
