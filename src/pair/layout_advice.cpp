#include "pair/layout_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "measure/measure.hpp"
#include "pair/limits.hpp"
#include "pair/links.hpp"
#include "pair/readings.hpp"

namespace parity {
namespace {

bool permuted(at::IntArrayRef a, at::IntArrayRef b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

std::vector<int64_t> as_it_is(size_t axes) {
  std::vector<int64_t> order(axes);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// The first usual order that does it, then any.
std::vector<int64_t> likely_order(at::IntArrayRef from, at::IntArrayRef to) {
  for (const auto& candidate : usual_orders(from.size()))
    if (shape_after(from, candidate) == to) return candidate;
  std::vector<int64_t> order = as_it_is(from.size());
  while (std::next_permutation(order.begin(), order.end()))
    if (shape_after(from, order) == to) return order;
  return {};
}

// The one axis along which two shapes differ.
std::optional<int64_t> other_axis(at::IntArrayRef a, at::IntArrayRef b) {
  if (a.size() != b.size()) return std::nullopt;
  std::optional<int64_t> found;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (found) return std::nullopt;
    found = static_cast<int64_t>(i);
  }
  return found;
}

}  // namespace

std::vector<int64_t> shape_after(at::IntArrayRef shape, const std::vector<int64_t>& order) {
  std::vector<int64_t> result;
  for (const int64_t axis : order) result.push_back(shape[axis]);
  return result;
}

std::vector<std::vector<int64_t>> usual_orders(size_t axes) {
  std::vector<std::vector<int64_t>> usual(axes > 2 ? 4 : 1, as_it_is(axes));
  if (axes > 2) {
    std::rotate(usual[0].begin() + 1, usual[0].end() - 1, usual[0].end());
    std::rotate(usual[1].begin() + 1, usual[1].begin() + 2, usual[1].end());
    std::swap(usual[2][1], usual[2][2]);
  }
  std::swap(usual.back()[axes - 1], usual.back()[axes - 2]);
  return usual;
}

bool differ_by_merged_axes(at::IntArrayRef of_a, at::IntArrayRef of_b) {
  const std::vector<int64_t> a = longer_axes(of_a), b = longer_axes(of_b);
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    int64_t x = a[i++], y = b[j++];
    const bool a_is_whole = x >= y;
    while (x != y) {
      if (x < y ? a_is_whole || i == a.size() : !a_is_whole || j == b.size()) return false;
      x < y ? x *= a[i++] : y *= b[j++];
    }
  }
  return i == a.size() && j == b.size();
}

std::optional<Layout> layout_by_content(const NamedTensor& reference, const NamedTensor& candidate, double* distance) {
  const ContentLimits& limits = kPairLimits.content;
  if (reference.path.empty() ||
      static_cast<double>(std::max(reference.shape.size(), candidate.shape.size())) < limits.axes_of_taste)
    return std::nullopt;
  const auto link = compare_content(reference, candidate);
  if (!link || !(link->distance < limits.same) || link->layout.split || link->layout.slice ||
      link->weight < limits.layout_worth)
    return std::nullopt;
  *distance = link->distance;
  return layout_like(link->layout.permutation, reference.shape, candidate.shape);
}

std::optional<Layout> layout_like(const std::vector<int64_t>& permutation, at::IntArrayRef reference,
                                  at::IntArrayRef candidate) {
  if (!permutation.empty() && permutation.size() != candidate.size()) return std::nullopt;
  Layout layout;
  if (!std::is_sorted(permutation.begin(), permutation.end())) layout.permutation = permutation;
  const std::vector<int64_t> ordered = permutation.empty() ? candidate.vec() : shape_after(candidate, permutation);
  if (ordered == reference) return layout;
  if (!differ_by_merged_axes(ordered, reference)) return std::nullopt;
  layout.reshape = reference.vec();
  return layout;
}

std::optional<Layout> last_row(at::IntArrayRef reference, at::IntArrayRef candidate) {
  const auto axis = other_axis(reference, candidate);
  if (!axis || reference[*axis] != 1 || *axis + 1 == static_cast<int64_t>(reference.size())) return std::nullopt;
  Layout layout;
  layout.slice = {*axis, candidate[*axis] - 1, 1};
  return layout;
}

namespace {

// "; …, use a map rule (--map): conv = conv perm(0,4,1,2,3)"
struct Rule {
  const std::string &reference, &candidate;
  ShapeAdvice operator()(std::string_view when, const std::string& steps) const {
    const auto name = [](const std::string& path) { return path.empty() ? std::string("\"\"") : path; };
    return {fmt::format("; {}, use a map rule (--map): {} = {} {}", when, name(reference), name(candidate), steps),
            steps};
  }
};

ShapeAdvice axes_advice(at::IntArrayRef reference, at::IntArrayRef candidate, const Rule& rule) {
  if (reference != candidate && differ_by_merged_axes(reference, candidate))
    return rule("if the same elements lie in the same order", fmt::format("reshape({})", fmt::join(reference, ",")));
  if (reference.size() < 2 || reference.size() > 8 || reference == candidate || !permuted(reference, candidate))
    return {};
  return rule("if only the order of axes differs",
              fmt::format("perm({})", fmt::join(likely_order(candidate, reference), ",")));
}

ShapeAdvice padding_advice(const at::Tensor& reference, const at::Tensor& candidate, const Rule& rule) {
  const auto axis = other_axis(reference.sizes(), candidate.sizes());
  if (!axis || !at::isFloatingType(reference.scalar_type()) || !at::isFloatingType(candidate.scalar_type())) return {};
  const int64_t ours = reference.size(*axis), theirs = candidate.size(*axis), common = std::min(ours, theirs);
  for (const bool first : {true, false}) {
    const auto part = [&](const at::Tensor& whole) {
      return whole.narrow(*axis, first ? 0 : whole.size(*axis) - common, common);
    };
    if (part(reference).numel() == 0) return {};
    const auto off = measure_sums(part(reference), part(candidate)).rel_l2;
    if (!off || !(*off < kPairLimits.content.same)) continue;
    const char* which = first ? "first" : "last";
    if (ours > theirs)
      return {fmt::format("; it has the reference's {} {} along axis {} alone", which, common, *axis), ""};
    return rule(
        fmt::format("its {} {} along axis {} are the reference's: if the others are padding", which, common, *axis),
        fmt::format("slice({},{},{})", *axis, first ? 0 : theirs - common, common));
  }
  return {};
}

}  // namespace

ShapeAdvice shape_advice(const std::string& reference_path, const at::Tensor& reference,
                         const std::string& candidate_path, const at::Tensor& candidate) {
  if (!reference.defined() || !candidate.defined()) return {};
  const Rule rule{reference_path, candidate_path};
  const ShapeAdvice axes = axes_advice(reference.sizes(), candidate.sizes(), rule);
  return axes.text.empty() ? padding_advice(reference, candidate, rule) : axes;
}

}  // namespace parity
