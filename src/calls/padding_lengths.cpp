#include "calls/padding_lengths.hpp"

#include <ATen/ops/broadcast_tensors.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "calls/limits.hpp"
#include "calls/votes.hpp"
#include "measure/measure.hpp"
#include "pair/limits.hpp"

namespace parity {
namespace {

struct ShapePair {
  Shape reference, port;
  std::string path{};
};

// What each side pads, and to what: possible lengths, without the side on which the padding lies.
std::set<Padding> lengths_between(int64_t reference, int64_t port) {
  Padding padding;
  padding.of_port = port > reference;
  padding.padded = std::max(reference, port), padding.tokens = std::min(reference, port);
  return padding.tokens > 1 && padding.padded > padding.tokens ? std::set{padding} : std::set<Padding>();
}

class PaddingFinder {
 public:
  PaddingFinder(const RecordedSide& reference, const RecordedSide& port, const std::vector<CandidateTensor>& tensors,
                const std::vector<CallShapes>& paths, const std::set<std::string>& of_selections)
      : reference_(*reference.program),
        dump_(*reference.dump),
        port_(port),
        tensors_(tensors),
        of_selections_(of_selections),
        named_(named_tensors(paths)) {
    for (const CallShapes& path : paths)
      for (const auto& [call, shape] : path.port.shapes)
        if (path.own)
          own_.push_back(path.tensors.at(call));
        else if (const auto other = path.reference.shapes.find(call); other != path.reference.shapes.end())
          shapes_.push_back({other->second, shape, path.name});
  }

  std::optional<Padding> find() const {
    if (shapes_.empty()) return of_own_names();
    std::vector<ShapePair> different;
    std::ranges::copy_if(shapes_, std::back_inserter(different),
                         [](const ShapePair& s) { return s.reference != s.port; });
    if (different.empty()) return std::nullopt;
    std::erase_if(different, [&](const ShapePair& s) { return of_selections_.contains(s.path); });
    const auto padding = explaining_most(possible(different), different.size(), [&](const Padding& p) {
      return std::ranges::count_if(different, [&](const ShapePair& s) { return !tokens(s, p).empty(); });
    });
    return padding ? by_first_values(*padding) : std::nullopt;
  }

 private:
  static std::vector<AxisPart> tokens(const ShapePair& shapes, const Padding& padding) {
    return padding.of_port ? tokens_of(shapes.port, shapes.reference, padding)
                           : tokens_of(shapes.reference, shapes.port, padding);
  }

  // The first axis may be the batch's and the last is the features', but where all values have two, tokens and
  // features.
  static std::set<Padding> possible(const std::vector<ShapePair>& different) {
    std::set<Padding> found;
    const bool rows = std::ranges::all_of(
        different, [](const ShapePair& s) { return std::max(s.reference.size(), s.port.size()) <= 2; });
    for (const auto& [mine, theirs, path] : different) {
      const size_t axes = std::min(mine.size(), theirs.size());
      for (size_t back = 2; back <= axes; ++back)  // from the last on: one side may lack the outermost
        if (rows || back < std::max(mine.size(), theirs.size()))
          found.merge(lengths_between(mine[mine.size() - back], theirs[theirs.size() - back]));
    }
    return found;
  }

  // What explains most of so many; none: less than half. Of two that explain as much the fewer tokens: the others are
  // those of a batch.
  template <typename Explains>
  static std::optional<Padding> explaining_most(const std::set<Padding>& possible, size_t all, Explains&& explains) {
    std::optional<Padding> best;
    int64_t most = static_cast<int64_t>(all) / 2;
    for (const Padding& padding : possible)
      if (const int64_t count = explains(padding); count > most) best = padding, most = count;
    return best;
  }

  // By the shapes that are none of the other side's with the padding, and are without.
  std::optional<Padding> of_own_names() const {
    std::set<Shape> mine, theirs;
    for (const Boundary& b : reference_.boundaries)
      if (b.comparable) mine.insert(b.value.shape);
    for (const size_t c : own_) theirs.insert(tensors_[c].shape);
    std::set<Padding> lengths;
    for (const int64_t reference : extents_of(mine))
      for (const int64_t port : extents_of(theirs)) lengths.merge(lengths_between(reference, port));
    const KnownShapes known(reference_);
    const auto strange = std::ranges::count_if(theirs, [&](const Shape& s) { return !known.has_extents(s); });
    if (strange == 0) return std::nullopt;
    KnownShapes of_port;
    for (const Shape& shape : theirs) of_port.add(shape);
    const auto padding = explaining_most(lengths, static_cast<size_t>(strange), [&](const Padding& p) {
      return std::ranges::count_if(p.of_port ? theirs : mine, [&](const Shape& s) {
        const KnownShapes& other = p.of_port ? known : of_port;
        return !other.has_extents(s) && other.has_extents(cut(s, tokens_of(s, p)));
      });
    });
    return padding ? by_first_values(*padding) : std::nullopt;
  }

  static std::set<int64_t> extents_of(const std::set<Shape>& shapes) {
    std::set<int64_t> extents;
    for (const Shape& shape : shapes) extents.insert(shape.begin(), shape.end());
    return extents;
  }

  // Where the first values that agree have the padding, if it is one: what is masked, or the same in every row.
  std::optional<Padding> by_first_values(Padding padding) const {
    const std::vector<Shape> shapes = shapes_of_port();
    const int64_t tokens = padding.of_port ? padding.padded : padding.tokens;
    padding.outermost = tokens_come_first(shapes, tokens);
    padding.batch = batch_of(shapes, tokens);
    std::optional<Padding> found;
    size_t boundaries = 0;
    for (size_t b = 0; b < reference_.boundaries.size() && boundaries < kCallLimits.padded; ++b) {
      size_t looked_at = 0;
      for (const size_t c : fitting(reference_.boundaries[b], padding)) {
        const at::Tensor mine = stored_value(dump_, reference_.boundaries[b].value), theirs = tensors_[c].load();
        const auto agreeing = where_they_agree(padding, mine, theirs);
        if (agreeing && !found && is_masked(*agreeing)) return agreeing;
        if (agreeing && is_constant(*agreeing, mine, theirs)) return agreeing;
        if (agreeing) found = agreeing;
        if (agreeing || ++looked_at == kCallLimits.padded) break;
      }
      boundaries += looked_at > 0 || found;
    }
    return std::nullopt;
  }

  // Tensors that may be this boundary's.
  std::vector<size_t> fitting(const Boundary& boundary, const Padding& padding) const {
    const auto may_be = [&](size_t c) {
      return !tokens({boundary.value.shape, tensors_[c].shape}, padding).empty() && boundary.comparable &&
             !boundary.value.key.empty() && at::isFloatingType(boundary.value.dtype) &&
             at::isFloatingType(tensors_[c].dtype);
    };
    std::vector<size_t> found = own_;
    if (const auto named = named_.find({boundary.path, boundary.call}); named != named_.end()) found = {named->second};
    std::erase_if(found, [&](size_t c) { return !may_be(c); });
    return found;
  }

  // Before or behind, if the two agree one way alone.
  static std::optional<Padding> where_they_agree(Padding padding, const at::Tensor& mine, const at::Tensor& theirs) {
    const ShapePair shapes{mine.sizes().vec(), theirs.sizes().vec()};
    std::array<bool, 2> agrees{};
    for (const bool in_front : {false, true}) {
      padding.in_front = in_front;
      const auto parts = tokens(shapes, padding);
      const auto pair = at::broadcast_tensors(
          {padding.of_port ? mine : axis_parts(mine, parts), padding.of_port ? axis_parts(theirs, parts) : theirs});
      agrees[in_front] = measure_sums(pair[0], pair[1]).rel_l2.value_or(1) < kPairLimits.content.same;
    }
    if (agrees[0] == agrees[1]) return std::nullopt;
    padding.in_front = agrees[1];
    return padding;
  }

  // The same in every row of the padding, of which there are several.
  static bool is_constant(const Padding& padding, const at::Tensor& mine, const at::Tensor& theirs) {
    const auto parts = tokens({mine.sizes().vec(), theirs.sizes().vec()}, padding);
    if (parts.size() != 1 || padding.padded < padding.tokens + 2) return false;
    const at::Tensor& whole = padding.of_port ? theirs : mine;
    const AxisPart rest = rest_of(parts[0]);
    const int64_t rows = parts[0].of / padding.padded;  // of a batch, for each token
    const at::Tensor padded = axis_part(whole, rest).unflatten(rest.axis, {-1, rest.length / rows, rows});
    return at::equal(padded.narrow(rest.axis + 1, 0, 1).expand(padded.sizes()), padded);
  }

  // An input that is zero along the padding, and nowhere else.
  bool is_masked(const Padding& padding) const {
    const RecordedSide side = padding.of_port ? port_ : RecordedSide{&reference_, &dump_};
    if (side.dump == nullptr) return false;
    return std::ranges::any_of(side.program->leaves, [&](const Leaf& leaf) {
      const auto& shape = leaf.value.shape;
      const auto axis = std::ranges::find(shape, padding.padded);
      if (!leaf.is_recorded_input() || axis == shape.end()) return false;
      const at::Tensor mask = stored_value(*side.dump, leaf.value);
      const AxisPart part = part_along(static_cast<size_t>(axis - shape.begin()), padding.padded, padding);
      return axis_part(mask, part).ne(0).all().item<bool>() && axis_part(mask, rest_of(part)).eq(0).all().item<bool>();
    });
  }

  std::vector<Shape> shapes_of_port() const {
    std::vector<Shape> shapes;
    for (const ShapePair& pair : shapes_) shapes.push_back(pair.port);
    for (const size_t c : own_) shapes.push_back(tensors_[c].shape);
    std::erase_if(shapes, [](const Shape& shape) { return shape.size() < 3; });
    return shapes;
  }

  // The outermost axis of most values whose next one is that of the tokens.
  static int64_t batch_of(const std::vector<Shape>& shapes, int64_t tokens) {
    std::map<int64_t, int> votes;
    for (const Shape& shape : shapes)
      if (shape[1] == tokens) ++votes[shape[0]];
    return most_of(votes).value_or(1);
  }

  static bool tokens_come_first(const std::vector<Shape>& shapes, int64_t tokens) {
    int first = 0;
    for (const Shape& shape : shapes)
      for (size_t axis = 0; axis + 1 < shape.size(); ++axis)
        if (shape[axis] == tokens) first += axis == 0 ? 1 : -1;
    return first > 0;
  }

  const Program& reference_;
  const Dump& dump_;
  const RecordedSide port_;
  const std::vector<CandidateTensor>& tensors_;
  const std::set<std::string>& of_selections_;
  const NamedTensors named_;
  std::vector<ShapePair> shapes_;  // of names that both sides have
  std::vector<size_t> own_;        // tensors of names of the port's own
};

}  // namespace

std::optional<Padding> find_padding(const RecordedSide& reference, const RecordedSide& port,
                                    const std::vector<CandidateTensor>& tensors, const std::vector<CallShapes>& paths,
                                    const std::set<std::string>& of_selections) {
  return PaddingFinder(reference, port, tensors, paths, of_selections).find();
}

}  // namespace parity
