#include "weights/signature.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace parity {
namespace {

constexpr int64_t kChunk = 1 << 16;   // elements a thread takes at once
constexpr int64_t kRun = 1 << 10;     // elements summed in fp32 before they go to fp64
constexpr double kRoundoff = 0x1p-9;  // bf16, of the largest legitimate rounding
constexpr double kSummation = 2e-6;   // fp32 sums of a run

using Lanes = float __attribute__((vector_size(16)));
using Bits = uint32_t __attribute__((vector_size(16)));
using Halves = uint16_t __attribute__((vector_size(8)));

struct Part {
  int64_t nonfinite = 0;
  double power[4] = {0, 0, 0, 0};
  double least = std::numeric_limits<double>::infinity(), greatest = -std::numeric_limits<double>::infinity();
};

Lanes four(const float* x) {
  Lanes lanes;
  std::memcpy(&lanes, x, sizeof lanes);
  return lanes;
}

Lanes four(const c10::BFloat16* x) {
  Halves halves;
  std::memcpy(&halves, x, sizeof halves);
  const Bits bits = __builtin_convertvector(halves, Bits) << 16;
  Lanes lanes;
  std::memcpy(&lanes, &bits, sizeof lanes);
  return lanes;
}

// Element by element in fp64: ends of chunks, and runs with NaN, Inf or numbers whose powers leave fp32.
template <class T>
void add_slowly(const T* x, int64_t n, Part& part) {
  for (int64_t i = 0; i < n; ++i) {
    const double v = static_cast<float>(x[i]);
    if (!std::isfinite(v)) {
      ++part.nonfinite;
      continue;
    }
    part.power[0] += v, part.power[1] += v * v, part.power[2] += v * v * v, part.power[3] += v * v * v * v;
    part.least = std::min(part.least, v), part.greatest = std::max(part.greatest, v);
  }
}

template <class T>
void add_run(const T* x, int64_t n, Part& part) {  // n: a multiple of 4
  Lanes s1{}, s2{}, s3{}, s4{}, least = four(x), greatest = least;
  for (int64_t i = 0; i < n; i += 4) {
    const Lanes v = four(x + i), square = v * v;
    s1 += v, s2 += square, s3 += square * v, s4 += square * square;
    least = v < least ? v : least;
    greatest = v > greatest ? v : greatest;
  }
  double sum[4] = {0, 0, 0, 0}, low = least[0], high = greatest[0];
  for (int lane = 0; lane < 4; ++lane) {
    sum[0] += s1[lane], sum[1] += s2[lane], sum[2] += s3[lane], sum[3] += s4[lane];
    low = std::min<double>(low, least[lane]), high = std::max<double>(high, greatest[lane]);
  }
  if (!std::isfinite(sum[3])) return add_slowly(x, n, part);
  for (int k = 0; k < 4; ++k) part.power[k] += sum[k];
  part.least = std::min(part.least, low), part.greatest = std::max(part.greatest, high);
}

template <class T>
Part sum_chunk(const T* x, int64_t n) {
  Part part;
  const int64_t even = n / 4 * 4;
  for (int64_t i = 0; i < even; i += kRun) add_run(x + i, std::min(kRun, even - i), part);
  add_slowly(x + even, n - even, part);
  return part;
}

Part sum_chunk(const at::Tensor& flat, int64_t begin, int64_t n) {
  if (flat.scalar_type() == at::kFloat) return sum_chunk(flat.const_data_ptr<float>() + begin, n);
  if (flat.scalar_type() == at::kBFloat16) return sum_chunk(flat.const_data_ptr<c10::BFloat16>() + begin, n);
  const at::Tensor wide = flat.narrow(0, begin, n).to(at::kFloat);
  return sum_chunk(wide.const_data_ptr<float>(), n);
}

double change(const Signature& s, int k) {  // of sum x^k under one rounding, relative to nothing
  const double most = std::max(std::abs(s.least), std::abs(s.greatest));
  const double squares = k == 1   ? s.power[1]
                         : k == 2 ? s.power[3]
                         : k == 3 ? s.power[3] * most * most
                                  : s.power[3] * std::pow(most, 4);  // bounds sum x^2k
  const double norm =
      k % 2 == 0 ? s.power[k - 1] : std::sqrt(s.power[k == 1 ? 1 : 3] * (k == 1 ? double(s.count) : s.power[1]));
  return 8 * k * kRoundoff * 0.58 * std::sqrt(squares) + kSummation * norm;
}

}  // namespace

Signature signature_of(const at::Tensor& tensor) {
  at::Tensor t = tensor.is_complex() ? at::view_as_real(tensor) : tensor;
  if (!t.is_non_overlapping_and_dense()) t = t.contiguous();
  const at::Tensor flat = t.as_strided({t.numel()}, {1});
  const int64_t chunks = (flat.numel() + kChunk - 1) / kChunk;
  std::vector<Part> parts(chunks);
  at::parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
    const c10::InferenceMode no_autograd;
    for (int64_t c = begin; c < end; ++c)
      parts[c] = sum_chunk(flat, c * kChunk, std::min(kChunk, flat.numel() - c * kChunk));
  });
  Signature all{flat.numel(), 0, {}, 0, 0};
  Part total;
  for (const Part& part : parts) {
    total.nonfinite += part.nonfinite;
    for (int k = 0; k < 4; ++k) all.power[k] += part.power[k];
    total.least = std::min(total.least, part.least), total.greatest = std::max(total.greatest, part.greatest);
  }
  all.nonfinite = total.nonfinite;
  if (total.nonfinite < all.count) all.least = total.least, all.greatest = total.greatest;
  return all;
}

double most_square_change(const Signature& a) { return change(a, 2); }

bool may_hold_the_same(const Signature& a, const Signature& b) {
  if (a.count != b.count || a.nonfinite != b.nonfinite) return false;
  for (int k = 1; k <= 4; ++k)
    if (!(std::abs(a.power[k - 1] - b.power[k - 1]) <= std::max(change(a, k), change(b, k)))) return false;
  return true;
}

}  // namespace parity
