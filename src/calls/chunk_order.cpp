#include "calls/chunk_order.hpp"

#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "calls/division_axes.hpp"
#include "calls/limits.hpp"
#include "calls/permutation.hpp"
#include "pair/limits.hpp"

namespace parity {
namespace {

bool are_equal(const Extents& extents) {
  return std::ranges::adjacent_find(extents, std::not_equal_to{}) == extents.end();
}

class Contents {
 public:
  Contents(const Division& division, const Program& reference, const Dump& dump,
           const std::vector<CandidateTensor>& tensors)
      : division_(division), reference_(reference), dump_(dump), tensors_(tensors) {}

  std::optional<Permutation> order() const {
    for (const Chunks* chunks : telling())
      for (const auto& values : chunks->pass == 0 ? values_of(*chunks) : std::vector<Values>())
        if (const auto order = order_of(*chunks, values)) return order;
    return std::nullopt;
  }

  // Mean relative distance of each slice from the chunk next to it, of the smallest values: of names that both sides
  // have, or, where there are none, of the value of this shape that each of the port's own is nearest to.
  double distance() const {
    for (const bool own : {false, true}) {
      double sum = 0;
      int slices = 0;
      for (const Chunks* chunks : telling()) {
        const auto values = chunks->own == own ? values_of(*chunks) : std::vector<Values>();
        if (values.empty()) continue;
        double nearest = std::numeric_limits<double>::infinity();
        for (size_t i = 0; i < values.size() && static_cast<double>(i) < kCallLimits.paths; ++i)
          nearest = std::min(nearest, distance_from(*chunks, values[i]));
        sum += nearest, ++slices;
        if (slices >= kPairLimits.content.enough_values) break;
      }
      if (slices > 0) return sum / slices;
    }
    return 0;
  }

  // Are the chunks bit by bit one another, and the whole no sum of them? What is not recorded is not known to be.
  bool are_one(const Chunks& chunks) const {
    const Values values = recorded(chunks);
    if (values.empty()) return false;
    const auto [parts, whole] = both_sides(chunks, values);
    const auto& first = parts.front();
    if (!std::ranges::all_of(parts, [&](const at::Tensor& part) { return at::equal(part, first); })) return false;
    return !(norm(whole - first * static_cast<double>(parts.size())) <
             kPairLimits.evidence.far_better * norm(whole - first));
  }

  // Is the port's last chunk the whole: the logits of the last token, which the reference has alone, too?
  bool is_last(const Chunks& chunks) const {
    const Values values = division_.of_port ? recorded(chunks) : Values();
    if (values.empty()) return false;
    const auto [parts, whole] = both_sides(chunks, values);
    return norm(parts.back() - whole) < kPairLimits.content.same * norm(whole);
  }

 private:
  using Values = std::vector<const Boundary*>;  // the reference's, for each of `Chunks::calls`

  double distance_from(const Chunks& chunks, const Values& values) const {
    double sum = 0;
    const auto [parts, whole] = both_sides(chunks, values);
    for (size_t i = 0; i < parts.size(); ++i) {
      const at::Tensor slice = chunk_of(whole, chunks, i);
      double nearest = std::numeric_limits<double>::infinity();
      for (const at::Tensor& part : parts)
        if (part.sizes() == slice.sizes()) nearest = std::min(nearest, norm(part - slice));
      sum += nearest / std::max(norm(slice), std::numeric_limits<double>::min());
    }
    return sum / static_cast<double>(parts.size());
  }

  // Empty: some are not.
  Values recorded(const Chunks& chunks) const {
    Values values;
    for (const int call : chunks.calls)
      if (const auto at = reference_.find(chunks.path, call); at && !reference_.boundaries[*at].value.key.empty())
        values.push_back(&reference_.boundaries[*at]);
    return values.size() == chunks.calls.size() ? values : Values();
  }

  static double norm(const at::Tensor& x) { return at::linalg_vector_norm(x).item<double>(); }

  // The smallest values first.
  std::vector<const Chunks*> telling() const {
    std::vector<const Chunks*> found;
    for (const Chunks& chunks : division_.chunks)
      if (chunks.rows == 1 && !chunks.extents.empty() && are_equal(chunks.extents) &&
          at::isFloatingType(tensors_[chunks.tensors.front()].dtype))
        found.push_back(&chunks);
    const auto size = [&](const Chunks* c) { return c10::multiply_integers(tensors_[c->tensors.front()].shape); };
    std::stable_sort(found.begin(), found.end(), [&](const Chunks* a, const Chunks* b) { return size(a) < size(b); });
    return found;
  }

  // Its own, or those of any name that have its shape.
  std::vector<Values> values_of(const Chunks& chunks) const {
    std::vector<Values> found;
    const auto look_at = [&](const std::string& path) {
      Values values;
      for (size_t i = 0; i < chunks.calls.size(); ++i) {
        const auto at = reference_.find(path, chunks.calls[i]);
        if (!at || !is_stored(reference_.boundaries[*at].value, chunks, i)) return;
        values.push_back(&reference_.boundaries[*at]);
      }
      found.push_back(std::move(values));
    };
    if (!chunks.own)
      look_at(chunks.path);
    else
      for (const Boundary& b : reference_.boundaries)
        if (b.call == chunks.calls.front()) look_at(b.path);
    return found;
  }

  bool is_stored(const Value& value, const Chunks& chunks, size_t i) const {
    Shape shape = tensors_[chunks.tensors.front()].shape;
    shape[static_cast<size_t>(chunks.axis)] = division_.of_port ? sum_of(chunks.extents) : chunks.extents[i];
    return !value.key.empty() && value.shape == shape;
  }

  // The chunks and the whole.
  std::pair<std::vector<at::Tensor>, at::Tensor> both_sides(const Chunks& chunks, const Values& values) const {
    std::vector<at::Tensor> of_port, of_reference;
    for (const size_t c : chunks.tensors) of_port.push_back(tensors_[c].load().to(at::kDouble));
    for (const Boundary* b : values) of_reference.push_back(stored_value(dump_, b->value).to(at::kDouble));
    if (division_.of_port) return {of_port, of_reference.front()};
    return {of_reference, of_port.front()};
  }

  // Which chunk each slice of the whole is.
  std::optional<Permutation> order_of(const Chunks& chunks, const Values& values) const {
    const auto [parts, whole] = both_sides(chunks, values);
    std::vector<at::Tensor> slices;
    for (size_t i = 0; i < parts.size(); ++i) slices.push_back(chunk_of(whole, chunks, i));
    return permutation_by_content(slices, parts);
  }

  const Division& division_;
  const Program& reference_;
  const Dump& dump_;
  const std::vector<CandidateTensor>& tensors_;
};

template <typename T>
void put_in(const Permutation& order, std::vector<T>& chunks) {
  std::vector<T> ordered;
  for (const size_t i : order) ordered.push_back(chunks[i]);
  chunks = std::move(ordered);
}

}  // namespace

at::Tensor chunk_of(const at::Tensor& whole, const Chunks& chunks, size_t i) {
  const int64_t begin = sum_of({chunks.extents.begin(), chunks.extents.begin() + static_cast<long>(i)});
  return whole.unflatten(chunks.axis, {chunks.rows, -1})
      .narrow(chunks.axis + 1, begin / chunks.rows, chunks.extents[i] / chunks.rows)
      .flatten(chunks.axis, chunks.axis + 1);
}

Division fitting(std::vector<Division> divisions, const Program& reference, const Dump& dump,
                 const std::vector<CandidateTensor>& tensors) {
  const auto contents = [&](const Division& division) { return Contents(division, reference, dump, tensors); };
  Division best = std::move(divisions.front());
  for (size_t i = 1; i < divisions.size(); ++i)
    if (contents(divisions[i]).distance() < contents(best).distance()) best = std::move(divisions[i]);
  std::erase_if(best.chunks, [&](Chunks& chunks) {
    const bool whole = chunks.tensors.size() == 1 && chunks.calls.size() == 1;
    if (!chunks.extents.empty() || whole || contents(best).are_one(chunks)) return false;
    const bool last = contents(best).is_last(chunks);
    best.left_out.insert(best.left_out.end(), chunks.tensors.begin(), chunks.tensors.end() - last);
    if (last) chunks.tensors = {chunks.tensors.back()};
    return !last;
  });
  return best;
}

void order_chunks(Division& division, const Program& reference, const Dump& dump,
                  const std::vector<CandidateTensor>& tensors, std::vector<std::string>& notes) {
  if (division.calls.anew || !division.outermost || !are_equal(division.extents)) return;
  const auto order = Contents(division, reference, dump, tensors).order();
  if (!order || std::is_sorted(order->begin(), order->end())) return;
  for (Chunks& chunks : division.chunks)
    if (division.of_port && chunks.tensors.size() == order->size())
      put_in(*order, chunks.tensors);
    else if (!division.of_port && chunks.calls.size() == order->size())
      put_in(*order, chunks.calls);
  notes.push_back(fmt::format("the {}'s calls have the samples in another order: {}",
                              division.of_port ? "port" : "reference", fmt::join(*order, ", ")));
}

}  // namespace parity
