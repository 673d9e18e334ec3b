#include "ops/op.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "core/error.hpp"
#include "core/precision.hpp"

namespace parity {
namespace {

// Floats as integers in their own order, so that neighbours differ by one and -0 equals +0.
int64_t ordered(int64_t bits, int64_t sign) { return bits & sign ? -(bits & ~sign) : bits; }

int64_t ordinal(double value, at::ScalarType dtype) {
  if (dtype == at::kDouble) return ordered(std::bit_cast<int64_t>(value), INT64_MIN);
  if (dtype == at::kFloat) return ordered(std::bit_cast<uint32_t>(static_cast<float>(value)), 0x80000000);
  if (dtype == at::kBFloat16) return ordered(c10::BFloat16(static_cast<float>(value)).x, 0x8000);
  if (dtype == at::kHalf) return ordered(c10::Half(static_cast<float>(value)).x, 0x8000);
  throw Error(fmt::format("[ops] no ULP in {}", dtype_name(dtype)));
}

at::Tensor as_doubles(const at::Tensor& x) {
  return (x.is_complex() ? at::view_as_real(x.resolve_conj()) : x).to(at::kDouble).contiguous();
}

}  // namespace

OpError measure_op(const at::Tensor& expected, const at::Tensor& actual) {
  if (expected.sizes() != actual.sizes())
    throw Error(fmt::format("[ops] expected shape [{}], got [{}]", fmt::join(expected.sizes(), ","),
                            fmt::join(actual.sizes(), ",")));
  const auto dtype = c10::toRealValueType(actual.scalar_type());
  const auto wide = as_doubles(expected), rounded = wide.to(dtype).to(at::kDouble), got = as_doubles(actual);
  const double *e = wide.const_data_ptr<double>(), *r = rounded.const_data_ptr<double>(),
               *a = got.const_data_ptr<double>();
  OpError found;
  double error = 0, size = 0;
  for (found.count = 0; found.count < got.numel(); ++found.count) {
    const int64_t i = found.count;
    found.zeros += e[i] == 0;
    if (!std::isfinite(a[i]) || !std::isfinite(r[i])) {
      found.special_mismatch += !(a[i] == r[i] || (std::isnan(a[i]) && std::isnan(r[i])));
      continue;
    }
    error += (a[i] - e[i]) * (a[i] - e[i]);
    size += e[i] * e[i];
    const auto ulp = std::abs(static_cast<double>(ordinal(a[i], dtype)) - static_cast<double>(ordinal(r[i], dtype)));
    if (ulp > found.max_ulp || found.worst < 0) {
      found.max_ulp = ulp;
      found.worst = i, found.worst_expected = e[i], found.worst_actual = a[i];
    }
  }
  found.rel_l2 = size > 0 ? std::sqrt(error / size) / unit_roundoff(dtype) : (error > 0 ? INFINITY : 0);
  return found;
}

at::Tensor spread(at::IntArrayRef shape, uint64_t seed, double scale, double shift) {
  auto generator = at::detail::createCPUGenerator(seed);
  return at::randn(shape, generator, at::dtype(at::kDouble)).mul_(scale).add_(shift);
}

}  // namespace parity
