#include "diagnose/stale.hpp"

#include <fmt/format.h>

#include <functional>
#include <string_view>

namespace parity {
namespace {

constexpr int64_t kBegin = 16, kHead = 1024;  // elements

std::string_view bytes(const at::Tensor& contiguous) {
  return {static_cast<const char*>(contiguous.const_data_ptr()), contiguous.nbytes()};
}

}  // namespace

std::string StaleRegistry::seen_before(const std::string& path, int call, const at::Tensor& candidate,
                                       const at::Tensor& reference, const std::set<std::string>& inputs) {
  if (candidate.numel() < kBegin) return "";
  const at::Tensor own = candidate.contiguous(), right = reference.to(candidate.scalar_type()).contiguous();
  const auto element = static_cast<int64_t>(own.element_size());
  const std::string_view all = bytes(own), right_all = bytes(right);
  const std::string begin(all.substr(0, kBegin * element));
  if (begin.find_first_not_of(begin.substr(0, element)) == std::string::npos) return "";  // constant, zeros
  Seen now{path,
           call,
           own.numel(),
           std::string(all.substr(0, kHead * element)),
           std::hash<std::string_view>()(all),
           std::string(right_all.substr(0, kHead * element)),
           std::hash<std::string_view>()(right_all)};
  std::string found;
  std::vector<Seen>& alike = by_begin_[begin];
  for (const Seen& old : alike) {
    const size_t shared = std::min(old.head.size(), now.head.size());
    const bool same_size = old.elements == now.elements;
    if (same_size ? old.whole != now.whole : old.path != path || old.head.compare(0, shared, now.head, 0, shared) != 0)
      continue;
    const bool reference_too = same_size ? old.reference_whole == now.reference_whole
                                         : old.reference.compare(0, shared, now.reference, 0, shared) == 0;
    if (reference_too || inputs.contains(old.path)) continue;
    found = old.path == path ? fmt::format("call {} of {}", old.call, path) : old.path;
    break;
  }
  alike.push_back(std::move(now));
  return found;
}

void StaleRegistry::remember(const std::string& path, int call, const at::Tensor& reference) {
  if (reference.numel() < kBegin || !at::isFloatingType(reference.scalar_type())) return;
  const at::Tensor head = reference.reshape(-1).slice(0, 0, kHead).to(at::kFloat).clone();
  own_[reference.sizes().vec()].push_back({path, call, head});
}

std::string StaleRegistry::like_reference(const std::string& path, int call, const at::Tensor& candidate,
                                          const at::Tensor& right) const {
  const auto alike = own_.find(candidate.sizes().vec());
  if (alike == own_.end() || !at::isFloatingType(candidate.scalar_type())) return "";
  const auto head = [](const at::Tensor& t) { return t.reshape(-1).slice(0, 0, kHead).to(at::kFloat); };
  const at::Tensor given = head(candidate), expected = head(right);
  const double away = (given - expected).norm().item<double>(), size = expected.norm().item<double>();
  if (!(away > .3 * size)) return "";  // a smaller error is a mistake in the computing
  for (const Own& old : alike->second)
    if ((old.path != path || old.call != call) && (given - old.head).norm().item<double>() < .03 * away &&
        (expected - old.head).norm().item<double>() > .5 * away)
      return old.path == path ? fmt::format("call {} of {}", old.call, path) : old.path;
  return "";
}

}  // namespace parity
