#include "pair/usual_layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "measure/measure.hpp"
#include "pair/layout_advice.hpp"
#include "pair/limits.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

std::vector<int64_t> order_of(const Layout& layout, size_t axes) {
  if (!layout.permutation.empty()) return layout.permutation;
  std::vector<int64_t> order(axes);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool whole(const Layout& layout) { return !layout.split && !layout.slice; }

double distance(const at::Tensor& mine, const at::Tensor& theirs, const Layout& layout) {
  const auto read = layout.as_shape(theirs, mine.sizes());
  return read ? measure_sums(mine, *read).rel_l2.value_or(1) : INFINITY;
}

}  // namespace

UsualOrders::UsualOrders(const PortPairing& pairing, const Program& reference,
                         const std::vector<CandidateTensor>& candidate) {
  const auto axes_of = [&](const PortPair& pair) {
    return Axes{candidate[pair.candidate].shape.size(), reference.boundaries[pair.boundary].value.shape.size()};
  };
  std::map<Axes, std::map<std::vector<int64_t>, size_t>> counts;  // by axes and order, of what is not read as it is
  for (const PortPair& pair : pairing.pairs)
    if (whole(pair.layout) && !pair.layout.permutation.empty()) ++counts[axes_of(pair)][pair.layout.permutation];
  for (const auto& [axes, orders] : counts) {
    const auto& [order, count] = *std::ranges::max_element(orders, {}, [](const auto& of) { return of.second; });
    const auto tells = [&, &order = order, &axes = axes](const PortPair& pair) {
      const auto& shape = candidate[pair.candidate].shape;
      return axes_of(pair) == axes && whole(pair.layout) &&
             (!pair.layout.permutation.empty() || shape_after(shape, order) != shape);
    };
    const auto all = std::ranges::count_if(pairing.pairs, tells);
    if (static_cast<double>(count) > kPairLimits.family.majority * static_cast<double>(all)) orders_[axes] = order;
  }
}

std::optional<Layout> UsualOrders::layout(at::IntArrayRef reference, at::IntArrayRef candidate) const {
  const auto usual = orders_.find({candidate.size(), reference.size()});
  return usual == orders_.end() ? std::nullopt : layout_like(usual->second, reference, candidate);
}

std::map<size_t, std::vector<int64_t>> orders_by_shapes(const PortPairing& pairing, const Program& reference,
                                                        const std::vector<CandidateTensor>& candidate) {
  using Shapes = std::pair<std::vector<int64_t>, std::vector<int64_t>>;  // the candidate's, the reference's
  std::map<size_t, std::vector<Shapes>> shapes;
  for (const PortPair& pair : pairing.pairs) {
    const Boundary& boundary = reference.boundaries[pair.boundary];
    const auto &theirs = candidate[pair.candidate].shape, &mine = boundary.value.shape;
    const bool by_name = pair.evidence == "path" || (pair.evidence.starts_with("map") && !pair.laid_out);
    if (by_name && !is_model_result(boundary.path) && theirs.size() == mine.size() &&
        static_cast<double>(theirs.size()) >= kPairLimits.content.axes_of_taste)
      shapes[theirs.size()].emplace_back(theirs, mine);
  }
  std::map<size_t, std::vector<int64_t>> found;
  for (const auto& [axes, of] : shapes) {
    const auto others = std::ranges::count_if(of, [](const Shapes& s) { return s.first != s.second; });
    if (static_cast<double>(others) < kPairLimits.content.shapes_tell) continue;
    for (const auto& order : usual_orders(axes)) {
      const auto fits = [&](const Shapes& s) { return shape_after(s.first, order) == s.second; };
      if (!found.contains(axes) && std::ranges::all_of(of, fits)) found[axes] = order;
    }
  }
  return found;
}

void prefer_usual_layouts(PortPairing& pairing, const Dump& dump, const Program& reference,
                          const std::vector<CandidateTensor>& candidate) {
  const UsualOrders usual(pairing, reference, candidate);
  size_t changed = 0;
  const PortPair* first = nullptr;
  for (PortPair& pair : pairing.pairs) {
    const CandidateTensor& tensor = candidate[pair.candidate];
    const Value& value = reference.boundaries[pair.boundary].value;
    const size_t axes = tensor.shape.size();
    if (pair.laid_out || !whole(pair.layout) || value.key.empty()) continue;
    const auto layout = usual.layout(value.shape, tensor.shape);
    if (!layout || order_of(*layout, axes) == order_of(pair.layout, axes)) continue;
    const at::Tensor mine = stored_value(dump, value), theirs = tensor.load();
    if (distance(mine, theirs, pair.layout) <= kPairLimits.content.same) continue;
    pair.layout = *layout;
    if (changed++ == 0) first = &pair;
  }
  if (first != nullptr)
    pairing.notes.push_back(fmt::format(
        "{} of the candidate's tensors whose shapes do not tell are read with their axes in its usual order ({} as {})",
        changed, candidate[first->candidate].path, first->layout.text()));
}

}  // namespace parity
