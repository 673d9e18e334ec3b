#include "pair/other_shape.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "pair/limits.hpp"
#include "trace/flow.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

using Sizes = std::vector<int64_t>;

Sizes sorted(Sizes sizes) {
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

// At least half of the axes are the same, in whatever order, and no other is a part of its counterpart.
bool alike(const Sizes& reference, const Sizes& candidate) {
  if (reference.size() != candidate.size()) return false;
  const Sizes here = sorted(reference), there = sorted(candidate);
  Sizes only_here, only_there;
  std::set_difference(here.begin(), here.end(), there.begin(), there.end(), std::back_inserter(only_here));
  std::set_difference(there.begin(), there.end(), here.begin(), here.end(), std::back_inserter(only_there));
  if (only_here.empty() || 2 * only_here.size() > here.size()) return false;
  for (size_t i = 0; i < only_here.size(); ++i) {
    const auto [least, most] = std::minmax(only_here[i], only_there[i]);
    if (least == 0 || most % least == 0) return false;
  }
  return true;
}

class OtherShape {
 public:
  OtherShape(const TrialScene& scene, const TrialPlaces& places) : scene_(scene), places_(places) {
    for (const Boundary& b : scene.reference.boundaries) known_.insert(sorted(b.value.shape));
    for (const Op& op : scene.reference.ops)
      for (const auto& output : op.outputs)
        if (output) counts_.insert(output->elements());
    find_fused();
  }

  std::optional<PortPair> run() const {
    if (std::ranges::any_of(scene_.pairing.pairs, &PortPair::misfit)) return std::nullopt;
    for (const Trouble& trouble : places_.troubled())
      if (const auto c = first_before(trouble.end))
        if (const auto b = place_of(*c, trouble)) return pair_of(*b, *c);
    return std::nullopt;
  }

 private:
  const Boundary& boundary(size_t b) const { return scene_.reference.boundaries[b]; }

  std::optional<size_t> first_before(size_t end) const {
    for (const size_t c : scene_.pairing.unmatched)
      if (!known_.contains(sorted(scene_.candidate[c].shape)) && !may_be_laid_out(c))
        return places_.paired(end) && c > places_.paired(end)->candidate ? std::nullopt : std::optional(c);
    return std::nullopt;
  }

  // Heads taken apart, text and image in the other order: some op's value has as many elements. Or products of one
  // value are one product (query, key and value).
  bool may_be_laid_out(size_t c) const {
    const Sizes& shape = scene_.candidate[c].shape;
    return counts_.contains(c10::multiply_integers(shape)) || (!shape.empty() && fused_.contains(shape.back()));
  }

  // Widths of products of one value, side by side.
  void find_fused() {
    const Flow flow = analyse_flow(scene_.reference);
    std::map<int64_t, Sizes> products;  // by what they read
    for (size_t i = 0; i < scene_.reference.ops.size(); ++i) {
      const Op& op = scene_.reference.ops[i];
      const auto& reads = flow.ops[i].reads;
      const size_t operand = op.kind == "addmm" ? 1 : 0;
      const bool product = op.kind == "addmm" || op.kind == "mm" || op.kind == "linear";
      if (!product || reads.size() <= operand || !op.outputs[0] || op.outputs[0]->shape.empty()) continue;
      const auto root = flow.root.find(reads[operand]);
      products[root == flow.root.end() ? reads[operand] : root->second].push_back(op.outputs[0]->shape.back());
    }
    for (const auto& [value, widths] : products)
      for (size_t first = 0; first < widths.size(); ++first)
        for (size_t last = first + 1; last < widths.size(); ++last)
          fused_.insert(std::accumulate(widths.begin() + first, widths.begin() + last + 1, int64_t{0}));
  }

  static PortPair pair_of(size_t b, size_t c) {
    PortPair pair{b,
                  c,
                  {},
                  kPairLimits.trial.by_size,
                  "order and rank: the first tensor of a shape that the reference has nowhere"};
    pair.misfit = true;
    return pair;
  }

  std::optional<size_t> place_of(size_t c, const Trouble& trouble) const {
    std::vector<size_t> fitting = trouble.before;
    if (!places_.paired(trouble.end)) fitting.push_back(trouble.end);
    std::erase_if(fitting, [&](size_t b) {
      return is_op_path(boundary(b).path) || !places_.order().possible(b, c) ||
             !alike(boundary(b).value.shape, scene_.candidate[c].shape) || !right_before(b, c) || follows(b, c) ||
             keeps_shapes(b);
    });
    if (fitting.empty()) return std::nullopt;
    std::set<std::string> before;  // a port that recorded blocks alone
    for (const PortPair& pair : scene_.pairing.pairs)
      if (pair.candidate < c && comes_out(scene_.off, pair.boundary))
        before.insert(without_numbers(boundary(pair.boundary).path));
    const auto recorded =
        std::ranges::find_if(fitting, [&](size_t b) { return before.contains(without_numbers(boundary(b).path)); });
    return recorded == fitting.end() ? fitting.front() : *recorded;
  }

  // A norm or an activation has the shape that it is given.
  bool keeps_shapes(size_t b) const {
    static constexpr std::array<std::string_view, 7> kKinds{"mul",  "relu",    "gelu",    "silu",
                                                            "tanh", "sigmoid", "_softmax"};
    for (const Op& op : scene_.reference.ops)
      for (const auto& output : op.outputs)
        if (output && output->id == boundary(b).value.id)
          return op.kind.find("norm") != std::string::npos || std::ranges::find(kKinds, op.kind) != kKinds.end();
    return false;
  }

  bool right_before(size_t b, size_t c) const {
    return std::ranges::any_of(scene_.pairing.pairs, [&](const PortPair& pair) {
      return pair.boundary < b && pair.candidate < c && comes_out(scene_.off, pair.boundary) &&
             boundary(pair.boundary).value.shape.size() == boundary(b).value.shape.size();
    });
  }

  // What a port computes on its own way (the columns of a convolution) has values of the reference's shape behind it.
  bool follows(size_t b, size_t c) const {
    return std::ranges::any_of(scene_.pairing.unmatched, [&](size_t later) {
      return later > c && sorted(scene_.candidate[later].shape) == sorted(boundary(b).value.shape);
    });
  }

  const TrialScene& scene_;
  const TrialPlaces& places_;
  std::set<Sizes> known_;     // of all values of the reference, sorted
  std::set<int64_t> counts_;  // elements of all that its ops make
  std::set<int64_t> fused_;   // widths of its products of one value, together
};

}  // namespace

std::optional<PortPair> first_of_other_shape(const TrialScene& scene, const TrialPlaces& places) {
  return OtherShape(scene, places).run();
}

}  // namespace parity
