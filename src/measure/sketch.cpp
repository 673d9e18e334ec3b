#include "measure/sketch.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace parity {
namespace {

constexpr int64_t kSketchChunk =
    1 << 20;  // numbers one thread takes; fixed, so that sums do not depend on the thread count
constexpr int64_t kSketchBlock = 1 << 14;  // numbers widened at once
constexpr uint64_t kSign = uint64_t{1} << 63;

// One row of real numbers, in row-major order of the elements.
at::Tensor row_of(const at::Tensor& tensor) {
  at::Tensor t = tensor.detach().resolve_conj().resolve_neg();
  if (t.is_complex()) t = at::view_as_real(t);
  return t.contiguous().reshape({-1});
}

// A copy of the caller's own: `add_block` writes to it.
at::Tensor widened(const at::Tensor& row, int64_t first, int64_t count) {
  const at::Tensor block = row.narrow(0, first, count);
  return (at::isFloat8Type(block.scalar_type()) ? block.to(at::kFloat) : block)
      .to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
}

std::vector<at::ScalarType> narrower(at::ScalarType dtype) {
  if (dtype == at::kDouble) return {at::kFloat, at::kHalf, at::kBFloat16};
  if (dtype == at::kFloat) return {at::kHalf, at::kBFloat16};
  return {};
}

// Adds one number that is not finite: where it stands, and which it is.
void add_special(Sketch& sketch, double x, uint64_t hash) {
  ++(std::isnan(x) ? sketch.nan : sketch.inf);
  sketch.specials += hash * (std::isnan(x) ? 1 : x > 0 ? 3 : 5);
}

// `all`: 4096 buckets.
void add_block(Sketch& sketch, double* all, const at::Tensor& block, int64_t first) {
  double* x = block.mutable_data_ptr<double>();
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < block.numel(); ++i) {
    const uint64_t hash = sketch_hash(static_cast<uint64_t>(first + i));
    if (!std::isfinite(x[i])) {
      add_special(sketch, x[i], hash);
      x[i] = 0;  // for `fits`
      continue;
    }
    sum += x[i];
    squares += x[i] * x[i];
    sketch.zero += x[i] == 0;
    sketch.min = std::min(sketch.min, x[i]);
    sketch.max = std::max(sketch.max, x[i]);
    all[sketch_bucket(hash)] += std::bit_cast<double>(std::bit_cast<uint64_t>(x[i]) ^ (hash & kSign));
  }
  sketch.count += block.numel();
  sketch.sum += sum;
  sketch.sum_squares += squares;
  std::erase_if(sketch.fits, [&](at::ScalarType dtype) { return !at::equal(block.to(dtype).to(at::kDouble), block); });
}

Sketch chunk_of(const at::Tensor& row, int64_t begin, int64_t end, at::ScalarType dtype, size_t buckets) {
  Sketch sketch;
  sketch.fits = narrower(dtype);
  std::vector<double> all(Sketch::kMostBuckets);
  for (int64_t first = begin; first < end; first += kSketchBlock)
    add_block(sketch, all.data(), widened(row, first, std::min(kSketchBlock, end - first)), first);
  sketch.buckets = folded(all, buckets);
  return sketch;
}

void add(Sketch& total, const Sketch& part) {
  for (size_t b = 0; b < total.buckets.size(); ++b) total.buckets[b] += part.buckets[b];
  total.count += part.count;
  total.nan += part.nan;
  total.inf += part.inf;
  total.zero += part.zero;
  total.sum += part.sum;
  total.sum_squares += part.sum_squares;
  total.min = std::min(total.min, part.min);
  total.max = std::max(total.max, part.max);
  total.specials += part.specials;
  std::erase_if(total.fits,
                [&](at::ScalarType d) { return std::find(part.fits.begin(), part.fits.end(), d) == part.fits.end(); });
}

double norm_of(const std::vector<double>& buckets) {
  double squares = 0;
  for (const double b : buckets) squares += b * b;
  return std::sqrt(squares);
}

}  // namespace

int64_t sketch_buckets(int64_t count) {
  const auto per_bucket = static_cast<uint64_t>(std::max<int64_t>(count, 0) / 512);
  return std::clamp<int64_t>(static_cast<int64_t>(std::bit_floor(per_bucket)), 512, Sketch::kMostBuckets);
}

Sketch sketch_of(const at::Tensor& tensor, int64_t buckets) {
  const at::Tensor row = row_of(tensor);
  const int64_t chunks = (row.numel() + kSketchChunk - 1) / kSketchChunk;
  std::vector<Sketch> parts(static_cast<size_t>(chunks));
  at::parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c)
      parts[static_cast<size_t>(c)] = chunk_of(row, c * kSketchChunk, std::min(row.numel(), (c + 1) * kSketchChunk),
                                               tensor.scalar_type(), static_cast<size_t>(buckets));
  });
  Sketch total;
  total.buckets.resize(static_cast<size_t>(buckets));
  total.fits = narrower(tensor.scalar_type());
  for (const Sketch& part : parts) add(total, part);
  return total;
}

std::vector<double> folded(const std::vector<double>& buckets, size_t size) {
  if (buckets.size() <= size) return buckets;
  std::vector<double> out(size);
  for (size_t b = 0; b < buckets.size(); ++b) out[b % size] += buckets[b];
  return out;
}

SketchDifference difference(const Sketch& reference, const Sketch& candidate) {
  const size_t size = std::min(reference.buckets.size(), candidate.buckets.size());
  const std::vector<double> r = folded(reference.buckets, size);
  SketchDifference d;
  d.buckets = folded(candidate.buckets, size);
  for (size_t b = 0; b < size; ++b) d.buckets[b] -= r[b];
  d.norm = norm_of(d.buckets);
  const double norm = reference.norm(), larger = std::max(norm, candidate.norm());
  d.rel_l2 = d.norm == 0 ? 0 : norm > 0 ? d.norm / norm : INFINITY;
  d.standard_error = 1 / std::sqrt(2 * static_cast<double>(size));
  // A bucket is a random walk of count / size steps: each partial sum is rounded once, on either side.
  const double steps = static_cast<double>(reference.count) / static_cast<double>(size);
  d.floor = norm > 0 ? 4 * 0x1p-53 * std::sqrt(1 + steps) * larger / norm : 0;
  return d;
}

}  // namespace parity
