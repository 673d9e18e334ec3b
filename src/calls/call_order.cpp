#include "calls/call_order.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "calls/call_shapes.hpp"
#include "calls/limits.hpp"
#include "calls/permutation.hpp"

namespace parity {
namespace {

class CallOrder {
 public:
  CallOrder(const Program& reference, const Dump& dump, const std::vector<CandidateTensor>& tensors, const NameMap* map)
      : reference_(reference), dump_(dump), tensors_(tensors), paths_(call_shapes(reference, tensors, map)) {}

  // By the reference's call within each group of so many the port's; empty: they are in order, or nothing tells.
  Permutation find() const {
    if (passes_ < 2) return {};
    std::map<std::string, const CallShapes*> named;
    for (const CallShapes& path : paths_)
      if (!path.own && path.port.times % passes_ == 0 && path.reference == path.port) named.emplace(path.name, &path);
    size_t looked_at = 0;
    for (const Boundary& b : reference_.boundaries) {
      const auto path = b.call == 0 ? named.find(b.path) : named.end();
      if (path == named.end() || !may_tell(b) || ++looked_at > kCallLimits.paths) continue;
      for (const size_t group : {passes_, size_t{2}}) {
        if (group > kCallLimits.any_order || passes_ % group != 0) continue;
        const auto order = order_of(*path->second, group);
        if (order) return std::ranges::is_sorted(*order) ? Permutation() : *order;
      }
    }
    return {};
  }

  // The number that each of a path's calls gets.
  std::map<std::string, size_t> calls_a_pass() const {
    std::map<std::string, size_t> found;
    for (const CallShapes& path : paths_)
      if (path.port.times % passes_ == 0)
        for (const auto& [call, c] : path.tensors) found.emplace(tensors_[c].path, path.port.times / passes_);
    return found;
  }

 private:
  static bool may_tell(const Boundary& b) {
    return b.comparable && !b.value.key.empty() && at::isFloatingType(b.value.dtype) &&
           b.value.elements() <= kCallLimits.telling;
  }

  std::optional<Permutation> order_of(const CallShapes& path, size_t group) const {
    const size_t modules = path.port.times / passes_;
    std::vector<at::Tensor> mine, theirs;
    for (size_t i = 0; i < group; ++i) {
      const auto at = reference_.find(path.name, static_cast<int>(i * modules));
      const auto tensor = path.tensors.find(i * modules);
      if (!at || tensor == path.tensors.end() || reference_.boundaries[*at].value.key.empty()) return std::nullopt;
      mine.push_back(stored_value(dump_, reference_.boundaries[*at].value).to(at::kDouble));
      theirs.push_back(tensors_[tensor->second].load().to(at::kDouble));
      if (mine.back().sizes() != theirs.back().sizes() || mine.back().sizes() != mine.front().sizes())
        return std::nullopt;
    }
    return permutation_by_content(mine, theirs);
  }

  const Program& reference_;
  const Dump& dump_;
  const std::vector<CandidateTensor>& tensors_;
  const std::vector<CallShapes> paths_;
  const size_t passes_ = usual_passes(paths_);
};

}  // namespace

void order_calls(const Program& reference, const Dump& dump, std::vector<CandidateTensor>& tensors, const NameMap* map,
                 std::vector<std::string>& notes) {
  const CallOrder calls(reference, dump, tensors, map);
  const Permutation order = calls.find();
  if (order.empty()) return;
  Permutation place(order.size());  // by the port's call: the reference's
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  const auto modules = calls.calls_a_pass();
  for (CandidateTensor& tensor : tensors) {
    const auto of_path = modules.find(tensor.path);
    if (of_path == modules.end()) continue;
    const size_t pass = static_cast<size_t>(tensor.call) / of_path->second, group = pass / order.size();
    const size_t moved = group * order.size() + place[pass % order.size()];
    tensor.call = static_cast<int>(moved * of_path->second + static_cast<size_t>(tensor.call) % of_path->second);
  }
  notes.push_back(fmt::format(
      "the port makes its calls in another order than the reference, {} of {}: they are compared by content",
      fmt::join(order, ", "), order.size()));
}

}  // namespace parity
