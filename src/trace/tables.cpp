#include "trace/tables.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"

namespace parity {
namespace {

// Sizes of what moves, in roundings of fp32. Six formulae for 1 / theta^(2i/d) (pow, exp, exp2, in fp32 and fp64,
// widths 16 to 128) lie up to 8 roundings from the exact value, pow in fp32 up to 1.2; sines of 64 to 8192 places made
// with them .03 to .09 of the number of places, in relative L2 (tests/trace_tables_test.cpp). A number evenly spread
// below one is .58 on average.
constexpr double kOfFrequencies = 2, kOfSines = .25;

at::Tensor exact_everywhere(const at::Tensor& mantissa, bool half) {
  const at::Tensor scaled = mantissa * (half ? 16 : 256);
  return scaled.eq(scaled.round());
}

}  // namespace

at::Tensor computed_anew(const at::Tensor& table, uint64_t draw) {
  if (table.is_complex()) {
    const at::Tensor parts = at::view_as_real(table.resolve_conj());
    return at::empty_like(table).copy_(at::view_as_complex(computed_anew(parts, draw)));
  }
  const at::ScalarType dtype = table.scalar_type();
  if (!(is_half(dtype) || dtype == at::kFloat || is_double(dtype)) || table.numel() == 0) return table;
  const at::Tensor before = table.to(at::kCPU, at::kDouble), size = before.abs();
  const auto [mantissa, exponent] = at::frexp(before);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(draw);
  const auto random = [&] { return at::rand(before.sizes(), generator, before.options()) * 2 - 1; };
  const double rounding = unit_roundoff(dtype);
  const double unit = std::min(rounding, unit_roundoff(at::kFloat));
  const bool sines = table.dim() > 1 && size.max().item<double>() <= 1;
  const auto longest = static_cast<double>(*std::max_element(table.sizes().begin(), table.sizes().end()));
  const at::Tensor moved =
      random() * (sines ? at::full_like(size, kOfSines * longest * unit) : size * (kOfFrequencies * unit));
  // What the table was before it was rounded lies anywhere within half a place of its last bit.
  const at::Tensor unrounded = random() * at::ldexp(at::full_like(size, rounding / 2), exponent);
  const at::Tensor anew = (before + moved + unrounded).to(dtype);
  const at::Tensor stays = exact_everywhere(mantissa, is_half(dtype)).logical_or(anew.isfinite().logical_not());
  return at::empty_like(table).copy_(at::where(stays, before.to(dtype), anew));
}

}  // namespace parity
