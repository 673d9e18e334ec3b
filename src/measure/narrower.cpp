// Values in fp32 that are all a half-width format's: they were rounded to it, whatever container they lie in.
#include "core/precision.hpp"
#include "measure/local.hpp"

namespace parity {
namespace {

constexpr int64_t kLookedAt = 1 << 16;  // elements among which witnesses are counted
constexpr int64_t kFirst = 256;         // nearly every tensor is told by these

bool fits(const at::Tensor& values, at::ScalarType dtype) {
  const auto holds = [&](const at::Tensor& t) { return at::equal(t.to(dtype).to(t.scalar_type()), t); };
  return holds(values.slice(0, 0, kFirst)) && holds(values);
}

// A step is two unit roundoffs of a number's binade at least, so a quarter of one is an eighth of a step.
at::Tensor between_numbers(const at::Tensor& values, at::ScalarType dtype) {
  const at::Tensor distance = (values.to(dtype).to(values.scalar_type()) - values).abs();
  return distance.gt(values.abs() * (unit_roundoff(dtype) / 4)).logical_and(at::isfinite(distance));
}

}  // namespace

std::optional<Narrower> held_by_half(const at::Tensor& recorded, const at::Tensor& candidate) {
  if (recorded.scalar_type() != at::kFloat || candidate.scalar_type() != at::kFloat) return std::nullopt;
  const at::Tensor all = at::nan_to_num(candidate.reshape(-1), 0, 0, 0);
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    if (!fits(all, dtype)) continue;
    const int64_t stride = std::max<int64_t>(1, all.numel() / kLookedAt);
    const auto some = [&](const at::Tensor& t) { return t.reshape(-1).slice(0, 0, t.numel(), stride); };
    const at::Tensor there = some(all).masked_select(between_numbers(some(recorded), dtype));
    return Narrower{dtype, static_cast<double>(std::get<0>(at::_unique(there.abs())).numel())};
  }
  return std::nullopt;
}

}  // namespace parity
