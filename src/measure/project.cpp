// A difference projected on a direction, and where it leans: sums over rows, block by block.
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "measure/blocks.hpp"
#include "measure/local.hpp"

namespace parity {

double Projection::fisher() const {
  return std::atanh(std::clamp(correlation, -.999999, .999999)) * std::sqrt(elements);
}

double Projection::sigma() const { return std::abs(z_rows) < std::abs(z) ? z_rows : z; }

namespace {

// Student's t of n - 1 degrees of freedom as a standard normal number (Wallace 1959, Ann. Math. Stat. 30:1121).
double normal_of_t(double t, double freedom) {
  const double size = std::sqrt(freedom * std::log1p(t * t / freedom)) * (8 * freedom + 1) / (8 * freedom + 3);
  return t < 0 ? -size : size;
}

constexpr int64_t kFewRows = 3;  // fewer say nothing of how they scatter

// The mean of the rows' sums over its standard error.
double z_of_rows(const std::vector<double>& rows) {
  double n = 0, sum = 0, squares = 0;
  for (const double row : rows) {
    n += row != 0;
    sum += row;
    squares += row * row;
  }
  if (n < kFewRows) return INFINITY;  // too few to say: the elements decide
  const double spread = squares - sum * sum / n;
  if (!(spread > 0)) return INFINITY;
  return normal_of_t(sum / std::sqrt(n) / std::sqrt(spread / (n - 1)), n - 1);
}

// d g, g^2, d^2, d^4, (d g)^2, summed.
using ProjectionSums = std::array<double, 5>;

// The same where all elements of a part may be off by one number, and g is larger in some parts than in others: d's
// share along g in each part, over g's length there, fitted by one amplitude. Student's t of what that leaves.
double z_of_parts(const std::vector<ProjectionSums>& parts) {
  double n = 0, products = 0, squares = 0, left = 0;
  for (const auto& [dg, gg, dd, fourth, dg_squared] : parts)
    if (gg > 0) n += 1, products += dg, squares += gg;
  if (n < 2) return 0;  // one number fits any other
  const double amplitude = products / squares;
  for (const auto& [dg, gg, dd, fourth, dg_squared] : parts)
    if (gg > 0) left += (dg - amplitude * gg) * (dg - amplitude * gg) / gg;
  if (!(left > 0)) return INFINITY;
  return normal_of_t(amplitude * std::sqrt(squares * (n - 1) / left), n - 1);
}

// How many of them carry the difference.
double parts_with_it(const std::vector<ProjectionSums>& parts) {
  double squares = 0, fourth = 0;
  for (const ProjectionSums& part : parts) squares += part[2], fourth += part[2] * part[2];
  return fourth > 0 ? squares * squares / fourth : 0;
}

int64_t row_width(const at::Tensor& tensor) {
  const int64_t last = tensor.dim() > 1 ? tensor.size(-1) : 1;
  return tensor.is_complex() && tensor.dim() > 1 ? 2 * last : last;
}

constexpr int64_t kProjected = 1 << 16;  // elements summed in one go: the order does not depend on the threads

ProjectionSums sums_of(const double* d, const double* g, int64_t n) {
  constexpr int64_t kSums = 8;  // independent ones, for vector units
  std::array<std::array<double, kSums>, 5> sums{};
  const auto add = [&](int64_t i, int64_t lane) {
    const auto finite = [](double x) { return std::abs(x) <= std::numeric_limits<double>::max() ? x : 0.; };
    const double x = finite(d[i]), y = finite(g[i]), xy = x * y, xx = x * x;
    sums[0][lane] += xy;
    sums[1][lane] += y * y;
    sums[2][lane] += xx;
    sums[3][lane] += xx * xx;
    sums[4][lane] += xy * xy;
  };
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int64_t lane = 0; lane < kSums; ++lane) add(i + lane, lane);
  for (; i < n; ++i) add(i, 0);
  ProjectionSums all{};
  for (size_t k = 0; k < all.size(); ++k)
    for (const double part : sums[k]) all[k] += part;
  return all;
}

// As `Difference`, of tensors from dense_reals.
struct Dense {
  at::Tensor value, base;

  void load(int64_t begin, int64_t n, double* out, double* scratch) const {
    parity::load(value, begin, n, out);
    if (!base.defined()) return;
    parity::load(base, begin, n, scratch);
    for (int64_t i = 0; i < n; ++i) out[i] -= scratch[i];
  }
};

struct Projected {
  Dense difference, direction;
  at::Tensor weight;
};

// Elements [begin, begin + n), block by block.
ProjectionSums sums_of(const Projected& p, int64_t begin, int64_t n) {
  std::array<double, kBlock> d, g, scratch;
  ProjectionSums all{};
  for (const int64_t end = begin + n; begin < end; begin += kBlock) {
    const int64_t count = std::min(kBlock, end - begin);
    p.difference.load(begin, count, d.data(), scratch.data());
    p.direction.load(begin, count, g.data(), scratch.data());
    if (p.weight.defined()) {
      load(p.weight, begin, count, scratch.data());
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) d[i] *= scratch[i], g[i] *= scratch[i];
    }
    const ProjectionSums sums = sums_of(d.data(), g.data(), count);
    for (size_t k = 0; k < sums.size(); ++k) all[k] += sums[k];
  }
  return all;
}

// In one pass, so that nothing of the tensors' size is made; `keep`: is given each row's, where rows are wider than
// one.
ProjectionSums sums_over_rows(const Projected& p, int64_t width,
                              const std::function<void(int64_t row, const ProjectionSums& sums)>& keep) {
  const int64_t n = p.difference.value.numel(), step = width > 1 ? width : kProjected, count = (n + step - 1) / step;
  const int64_t together = std::max<int64_t>(1, kProjected / step), blocks = (count + together - 1) / together;
  std::vector<ProjectionSums> parts(static_cast<size_t>(blocks), ProjectionSums{});
  at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b)
      for (int64_t row = b * together; row < std::min(count, (b + 1) * together); ++row) {
        const ProjectionSums sums = sums_of(p, row * step, std::min(step, n - row * step));
        for (size_t k = 0; k < sums.size(); ++k) parts[static_cast<size_t>(b)][k] += sums[k];
        if (width > 1) keep(row, sums);
      }
  });
  ProjectionSums all{};
  for (const ProjectionSums& part : parts)
    for (size_t k = 0; k < all.size(); ++k) all[k] += part[k];
  return all;
}

Dense dense(const Difference& d) {
  return {dense_reals(d.value, "value"), d.base.defined() ? dense_reals(d.base, "base") : at::Tensor()};
}

void require_one_shape(const Projected& p) {
  for (const at::Tensor& t : {p.difference.base, p.direction.value, p.direction.base, p.weight})
    if (t.defined() && t.sizes() != p.difference.value.sizes())
      throw Error("cannot project tensors of different shapes");
}

}  // namespace

Projection project(const Difference& difference, const Difference& direction, double reference_norm,
                   const at::Tensor& weight, int64_t parts) {
  const Projected of{dense(difference), dense(direction),
                     weight.defined() ? dense_reals(weight, "weight") : at::Tensor()};
  require_one_shape(of);
  const int64_t n = of.difference.value.numel(), row = row_width(difference.value),
                part = parts > 0 && n % parts == 0 ? n / parts : 0;
  const bool in_parts = part > row || (part == row && parts < kFewRows);
  const int64_t width = in_parts ? part : row;
  std::vector<double> rows(!in_parts && width > 1 ? static_cast<size_t>(n / width) : 0), both(rows.size());
  std::vector<ProjectionSums> of_parts(in_parts ? static_cast<size_t>(parts) : 0);
  const auto keep = [&](int64_t i, const ProjectionSums& sums) {
    const auto at = static_cast<size_t>(i);
    if (in_parts)
      of_parts[at] = sums;
    else
      rows[at] = sums[0], both[at] = std::sqrt(sums[1] * sums[2]);
  };
  const auto [dg, gg, dd, fourth, products] = sums_over_rows(of, width, keep);
  Projection p;
  if (!(gg > 0)) return p;
  p.amplitude = dg / gg;
  p.elements = in_parts ? parts_with_it(of_parts) : fourth > 0 ? dd * dd / fourth : 0;
  p.z = products > 0 ? dg / std::sqrt(products) : 0;
  p.z_rows = in_parts ? z_of_parts(of_parts) : rows.empty() ? INFINITY : z_of_rows(rows);
  p.explained = dd > 0 ? (2 * dg - gg) / dd : 0;
  p.correlation = dd > 0 ? dg / std::sqrt(dd * gg) : 0;
  if (!both.empty() && dd > 0) p.rows_alike = std::accumulate(both.begin(), both.end(), 0.) / std::sqrt(gg * dd);
  p.size = reference_norm > 0 ? std::sqrt(gg) / reference_norm : 0;
  p.plain = {dd, dg, gg};
  return p;
}

double share_towards_zero(const at::Tensor& reference, const at::Tensor& candidate) {
  const at::Tensor r = dense_reals(reference, "reference"), c = dense_reals(candidate, "candidate");
  if (r.sizes() != c.sizes()) throw Error("cannot compare magnitudes of tensors of different shapes");
  const int64_t blocks = (r.numel() + kBlock - 1) / kBlock;
  std::vector<std::array<int64_t, 2>> parts(static_cast<size_t>(blocks));  // that differ, and are smaller
  at::parallel_for(0, blocks, kProjected / kBlock, [&](int64_t first, int64_t last) {
    std::array<double, kBlock> x, y;
    for (int64_t b = first; b < last; ++b) {
      const int64_t n = std::min(kBlock, r.numel() - b * kBlock);
      load(r, b * kBlock, n, x.data());
      load(c, b * kBlock, n, y.data());
      auto& [differ, smaller] = parts[static_cast<size_t>(b)];
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        differ += y[i] - x[i] != 0;
        smaller += y[i] - x[i] != 0 && std::abs(y[i]) < std::abs(x[i]);
      }
    }
  });
  std::array<int64_t, 2> all{};
  for (const auto& part : parts)
    for (size_t k = 0; k < 2; ++k) all[k] += part[k];
  return all[0] > 0 ? static_cast<double>(all[1]) / static_cast<double>(all[0]) : 0;
}

}  // namespace parity
