#include "pair/layout_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "pair/links.hpp"

namespace parity {
namespace {

constexpr double kAgrees = .05;
constexpr size_t kTasteFrom = 4;  // axes

bool permuted(at::IntArrayRef a, at::IntArrayRef b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

std::vector<int64_t> shape_after(at::IntArrayRef shape, const std::vector<int64_t>& order) {
  std::vector<int64_t> result;
  for (const int64_t axis : order) result.push_back(shape[axis]);
  return result;
}

// Channels last read as channels first, the other way, tokens and heads exchanged, then any order.
std::vector<int64_t> usual_order(at::IntArrayRef from, at::IntArrayRef to) {
  std::vector<int64_t> order(from.size());
  std::iota(order.begin(), order.end(), 0);
  const std::vector<int64_t> as_is = order;
  std::vector<std::vector<int64_t>> usual(4, as_is);
  if (from.size() > 2) {
    std::rotate(usual[0].begin() + 1, usual[0].end() - 1, usual[0].end());
    std::rotate(usual[1].begin() + 1, usual[1].begin() + 2, usual[1].end());
    std::swap(usual[2][1], usual[2][2]);
  }
  std::swap(usual[3][from.size() - 1], usual[3][from.size() - 2]);
  for (const auto& candidate : usual)
    if (shape_after(from, candidate) == to) return candidate;
  while (std::next_permutation(order.begin(), order.end()))
    if (shape_after(from, order) == to) return order;
  return {};
}

}  // namespace

std::optional<Layout> layout_by_content(const NamedTensor& reference, const NamedTensor& candidate, double* distance) {
  if (reference.path.empty() || reference.shape.size() < kTasteFrom || !permuted(reference.shape, candidate.shape))
    return std::nullopt;
  const auto link = compare_content({reference}, {candidate}, 0, 0);
  if (!link || !(link->distance < kAgrees) || link->layout.permutation.empty() || link->weight < .5)
    return std::nullopt;
  *distance = link->distance;
  Layout only;
  only.permutation = link->layout.permutation;
  return shape_after(candidate.shape, only.permutation) == reference.shape ? std::optional(only) : std::nullopt;
}

std::string layout_advice(const std::string& reference_path, at::IntArrayRef reference,
                          const std::string& candidate_path, at::IntArrayRef candidate) {
  if (reference.size() < 2 || reference.size() > 8 || reference == candidate || !permuted(reference, candidate))
    return "";
  const auto name = [](const std::string& path) { return path.empty() ? std::string("\"\"") : path; };
  return fmt::format("; if only the order of axes differs, a map rule says so (--map): {} = {} perm({})",
                     name(reference_path), name(candidate_path), fmt::join(usual_order(candidate, reference), ","));
}

}  // namespace parity
