#include "diagnose/stale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "diagnose/limits.hpp"

namespace parity {
namespace {

constexpr int64_t kBegin = 16, kHead = 1024;  // elements

std::string_view bytes(const at::Tensor& contiguous) {
  return {static_cast<const char*>(contiguous.const_data_ptr()), contiguous.nbytes()};
}

at::Tensor head_of(const at::Tensor& t) {
  const at::Tensor numbers = t.is_complex() ? at::view_as_real(t.resolve_conj()) : t;
  return numbers.reshape(-1).slice(0, 0, kHead).to(at::kFloat).clone();
}

// As many of all over it.
at::Tensor spread_of(const at::Tensor& t) {
  const int64_t step = std::max<int64_t>(1, (t.numel() + kHead - 1) / kHead);
  return head_of(t.reshape(-1).slice(0, 0, t.numel(), step));
}

}  // namespace

bool same_but_for_rounding(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) {
  const int64_t shared = std::min(a.numel(), b.numel());
  const at::Tensor one = a.narrow(0, 0, shared).nan_to_num(0, 0, 0), other = b.narrow(0, 0, shared).nan_to_num(0, 0, 0);
  const double away = (one - other).norm().item<double>();
  const double rounding = std::max(kStale.rounding * unit_roundoff(at::kFloat), unit_roundoff(dtype));
  return away <= (is_float(dtype) ? rounding : 0) * other.norm().item<double>();
}

std::string StaleRegistry::seen_before(const std::string& path, int call, const at::Tensor& candidate,
                                       const at::Tensor& reference, const std::set<std::string>& inputs) {
  const at::Tensor reference_head = remember(path, call, reference);
  if (candidate.numel() < kBegin) return "";
  const at::Tensor own = candidate.contiguous();
  const auto element = static_cast<int64_t>(own.element_size());
  const std::string_view all = bytes(own);
  const std::string begin(all.substr(0, kBegin * element));
  if (begin.find_first_not_of(begin.substr(0, element)) == std::string::npos) return "";  // constant, zeros
  Seen now{path,
           call,
           own.numel(),
           std::string(all.substr(0, kHead * element)),
           std::hash<std::string_view>()(all),
           reference_head,
           reference.numel() > kHead ? spread_of(reference) : reference_head};
  std::string found;
  std::vector<Seen>& alike = by_begin_[begin];
  for (const Seen& old : alike) {
    const size_t shared = std::min(old.head.size(), now.head.size());
    const bool same_size = old.elements == now.elements;
    if (same_size ? old.whole != now.whole : old.path != path || old.head.compare(0, shared, now.head, 0, shared) != 0)
      continue;
    const at::ScalarType dtype = reference.scalar_type();
    const bool reference_too = same_but_for_rounding(old.reference, now.reference, dtype) &&
                               (!same_size || same_but_for_rounding(old.spread, now.spread, dtype));
    if (reference_too || inputs.contains(old.path)) continue;
    found = old.path == path ? fmt::format("call {} of {}", old.call, path) : old.path;
    break;
  }
  alike.push_back(std::move(now));
  return found;
}

at::Tensor StaleRegistry::remember(const std::string& path, int call, const at::Tensor& reference) {
  const at::Tensor head = head_of(reference);
  if (reference.numel() >= kBegin && at::isFloatingType(reference.scalar_type()))
    own_[reference.sizes().vec()].push_back({path, call, head});
  return head;
}

std::string StaleRegistry::like_reference(const std::string& path, int call, const at::Tensor& candidate,
                                          const at::Tensor& right) const {
  const auto alike = own_.find(candidate.sizes().vec());
  if (alike == own_.end() || !at::isFloatingType(candidate.scalar_type())) return "";
  const at::Tensor given = head_of(candidate), expected = head_of(right);
  const double away = (given - expected).norm().item<double>(), size = expected.norm().item<double>();
  if (!(away > kStale.another * size)) return "";  // a smaller error is a mistake in the computing
  for (const Own& old : alike->second)
    if ((old.path != path || old.call != call) && (given - old.head).norm().item<double>() < kStale.same * away &&
        (expected - old.head).norm().item<double>() > kStale.apart * away)
      return old.path == path ? fmt::format("call {} of {}", old.call, path) : old.path;
  return "";
}

}  // namespace parity
