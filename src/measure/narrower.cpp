// Values that are all a narrower format's: they were rounded to it, whatever container they lie in.
#include "core/precision.hpp"
#include "measure/local.hpp"

namespace parity {
namespace {

constexpr int64_t kLookedAt = 1 << 16;  // elements among which witnesses are counted
constexpr int64_t kFirst = 256;         // nearly every tensor is told by these

// A step is two unit roundoffs of a number's binade at least, so a quarter of one is an eighth of a step.
at::Tensor between_numbers(const at::Tensor& values, at::ScalarType dtype) {
  const at::Tensor distance = (values.to(dtype).to(values.scalar_type()) - values).abs();
  return distance.gt(values.abs() * (unit_roundoff(dtype) / 4)).logical_and(at::isfinite(distance));
}

}  // namespace

bool all_held_by(const at::Tensor& values, at::ScalarType dtype) {
  const at::Tensor flat = values.reshape(-1);
  const auto holds = [&](const at::Tensor& t) {
    const at::Tensor finite = finite_or_zero(t);
    return at::equal(finite.to(dtype).to(t.scalar_type()), finite);
  };
  return holds(flat.slice(0, 0, kFirst)) && holds(flat);
}

std::optional<Narrower> held_by_half(const at::Tensor& recorded, const at::Tensor& candidate) {
  if (recorded.scalar_type() != at::kFloat || candidate.scalar_type() != at::kFloat) return std::nullopt;
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    if (!all_held_by(candidate, dtype)) continue;
    const int64_t stride = std::max<int64_t>(1, recorded.numel() / kLookedAt);
    const auto some = [&](const at::Tensor& t) { return t.reshape(-1).slice(0, 0, t.numel(), stride); };
    const at::Tensor there = finite_or_zero(some(candidate)).masked_select(between_numbers(some(recorded), dtype));
    return Narrower{dtype, static_cast<double>(std::get<0>(at::_unique(there.abs())).numel())};
  }
  return std::nullopt;
}

}  // namespace parity
