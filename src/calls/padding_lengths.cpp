#include "calls/padding_lengths.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "calls/votes.hpp"

namespace parity {
namespace {

struct ShapePair {
  Shape reference, port;
  std::string path{};
};

// How many shapes lengths explain; and as those of tokens alone, not of joint sequences.
struct Explained {
  int64_t shapes = 0, of_tokens = 0;

  void add(bool tokens, bool joint) { shapes += tokens || joint, of_tokens += tokens; }
  auto operator<=>(const Explained&) const = default;
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
    std::ranges::copy_if(shapes_, std::back_inserter(different),  // more than in the order of their axes
                         [](const ShapePair& s) { return !have_extents_alike(s.reference, s.port); });
    if (different.empty()) return std::nullopt;
    std::erase_if(different, [&](const ShapePair& s) { return of_selections_.contains(s.path); });
    const auto padding = explaining_most(possible(different), different.size(), [&](const Padding& p) {
      Explained explained;
      const auto is_so = [](const ShapePair& s, const Padding& lengths) {
        return !tokens_between(s.reference, s.port, lengths).parts.empty();
      };
      for (const ShapePair& s : different) explained.add(is_so(s, p), is_so(s, with_joint(s.reference, s.port, p)));
      return explained;
    });
    return padding ? by_values(*padding) : std::nullopt;
  }

 private:
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

  // What explains most of so many; none: less than half. Of two that explain as much the one that needs fewer joint
  // sequences, then the fewer tokens: the others are those of a batch.
  template <typename Explains>
  static std::optional<Padding> explaining_most(const std::set<Padding>& possible, size_t all, Explains&& explains) {
    std::optional<Padding> best;
    Explained most;
    for (const Padding& padding : possible)
      if (const Explained explained = explains(padding); explained > most) best = padding, most = explained;
    return most.shapes > static_cast<int64_t>(all) / 2 ? best : std::nullopt;
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
      Explained explained;
      const KnownShapes& other = p.of_port ? known : of_port;
      for (const Shape& s : p.of_port ? theirs : mine)
        if (!other.has_extents(s)) explained.add(other.has_extents(without_padding(s, p)), is_joint(s, p, other));
      return explained;
    });
    return padding ? by_values(*padding) : std::nullopt;
  }

  // The extents of joint sequences are longer by as much as those of the tokens alone.
  static bool is_joint(const Shape& padded, const Padding& padding, const KnownShapes& other) {
    for (size_t axis = 0; axis + 1 < padded.size(); ++axis) {
      Shape shape = padded;
      shape[axis] -= padding.padded - padding.tokens;
      if (padded[axis] > padding.padded && other.has_extents(shape)) return true;
    }
    return false;
  }

  std::optional<Padding> by_values(Padding padding) const {
    const std::vector<Shape> shapes = shapes_of_port();
    const int64_t tokens = padding.of_port ? padding.padded : padding.tokens;
    padding.outermost = tokens_come_first(shapes, tokens);
    padding.batch = batch_of(shapes, tokens);
    return padding_by_values(padding, {{&reference_, &dump_}, port_, tensors_, named_, own_});
  }

  static std::set<int64_t> extents_of(const std::set<Shape>& shapes) {
    std::set<int64_t> extents;
    for (const Shape& shape : shapes) extents.insert(shape.begin(), shape.end());
    return extents;
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
