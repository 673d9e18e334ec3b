#include "calls/ragged_lengths.hpp"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "calls/input_masks.hpp"
#include "calls/limits.hpp"
#include "calls/ragged_steps.hpp"
#include "calls/votes.hpp"

namespace parity {
namespace {

// (tokens with padding, without) of a call; nullopt: nothing is padded, or not all alike.
std::optional<std::pair<int64_t, int64_t>> lengths_of(const WithoutBatch& shapes) {
  std::optional<std::pair<int64_t, int64_t>> found;
  for (size_t axis = 0; axis < shapes.whole.size(); ++axis) {
    const std::pair lengths{shapes.whole[axis], shapes.part[axis]};
    if (lengths.first == lengths.second) continue;
    if (lengths.second > lengths.first || (found && *found != lengths)) return std::nullopt;
    found = lengths;
  }
  return found;
}

// Does the padding lie behind (0), in front (1)?
using Agreement = std::array<bool, 2>;

class Finder {
 public:
  Finder(const RecordedSide& reference, const RecordedSide& port, const std::vector<CandidateTensor>& tensors,
         const std::vector<CallShapes>& paths, bool of_port, bool by_step)
      : reference_(reference), port_(port), tensors_(tensors) {
    found_.of_port = of_port, found_.by_step = by_step;
    for (const CallShapes& path : paths)
      if (path.own)
        own_.push_back(&path);
      else if (!path.of_range)
        named_.emplace(path.name, &path);
  }

  std::optional<RaggedBatch> find() {
    if (named_.empty()) return lengths_of_own_names() && are_placed() ? std::optional(found_) : std::nullopt;
    found_.tokens.resize(samples());
    if (found_.size() < 2) return std::nullopt;
    const std::map<SequenceLengths, int> votes = lengths_of_names();
    for (const auto& [lengths, count] : votes) {
      std::tie(found_.padded, found_.tokens) = std::tie(lengths.padded, lengths.tokens);
      found_.also.clear();
      if (are_placed() && explained_with_others(votes)) return found_;
    }
    return std::nullopt;
  }

 private:
  // Which sample each call is, and where its padding lies: as the first values say.
  bool are_placed() {
    found_.samples.resize(found_.tokens.size()), found_.in_front.resize(found_.tokens.size());
    // Of a name there is one tensor: before an embedding may lie tables of zeros that are filled sample by sample.
    const double most = named_.empty() ? kCallLimits.padded : kCallLimits.paths;
    double boundaries = 0;
    for (const Boundary& b : reference_.program->boundaries) {
      if (b.call != 0 || !b.comparable || b.value.key.empty() || !at::isFloatingType(b.value.dtype)) continue;
      double looked_at = 0;
      for (const CallShapes* path : of_boundary(b)) {
        if (!fits(b.path, *path, found_) || looked_at == kCallLimits.padded) continue;
        if (places_by_value(b.path, *path)) return true;
        ++looked_at;
      }
      boundaries += looked_at > 0;
      if (boundaries == most) break;
    }
    return false;
  }

  // And how many paths have them.
  std::map<SequenceLengths, int> lengths_of_names() const {
    std::map<SequenceLengths, int> votes;
    for (const auto& [name, path] : named_)
      if (const auto lengths = lengths_of_calls(*path)) ++votes[*lengths];
    return votes;
  }

  // Adds the lengths of other sequences that values bear out. Have most paths one of these?
  bool explained_with_others(const std::map<SequenceLengths, int>& votes) {
    int all = 0, explained = 0;
    for (const auto& [lengths, count] : votes) {
      const bool is_primary = lengths == SequenceLengths{found_.padded, found_.tokens};
      all += count;
      if (!is_primary && !are_borne_out(lengths)) continue;
      explained += count;
      if (!is_primary) found_.also.push_back(lengths);
    }
    return 2 * explained > all;
  }

  // By the first values of sequences of these lengths.
  bool are_borne_out(const SequenceLengths& lengths) const {
    RaggedBatch tried = found_;
    tried.also = {lengths};
    double looked_at = 0;
    for (const Boundary& b : reference_.program->boundaries) {
      const auto path = b.call == 0 && at::isFloatingType(b.value.dtype) ? named_.find(b.path) : named_.end();
      if (path == named_.end() || lengths_of_calls(*path->second) != lengths) continue;
      if (!fits(b.path, *path->second, tried)) continue;
      const at::Tensor whole = value(b.path, *path->second, 0, found_.of_port);
      const std::vector<size_t> calls = calls_of(*path->second);
      bool agree = true;
      for (size_t i = 0; i < calls.size() && agree; ++i)
        agree = agrees(tried, i, whole, value(b.path, *path->second, calls[i], !found_.of_port));
      if (agree) return true;
      if (++looked_at == kCallLimits.padded) break;
    }
    return false;
  }

  // Most of what one side has in several calls has other lengths in each, and most of what the other side has of as
  // many samples one length beside them.
  bool lengths_of_own_names() {
    std::vector<Calls> of_port;
    for (const CallShapes* path : own_) of_port.push_back(path->port);
    const std::vector<Calls> of_reference = reference_calls(*reference_.program);
    std::map<std::vector<int64_t>, int> votes;
    for (const Calls& calls : found_.of_port ? of_reference : of_port) {
      if (calls.times < 2 || calls.shapes.size() != calls.times) continue;
      std::vector<Shape> shapes;
      for (const auto& [call, shape] : calls.shapes) shapes.push_back(shape);
      if (const auto ragged = ragged_axis(shapes); ragged && !ragged->extents.empty()) ++votes[ragged->extents];
    }
    const auto tokens = most_of(votes);
    if (!tokens) return false;
    found_.tokens = *tokens;
    std::map<int64_t, int> lengths;
    for (const Calls& calls : found_.of_port ? of_port : of_reference)
      for (const auto& [call, shape] : calls.shapes)
        if (shape.size() > 2 && shape[0] == found_.size() && shape[1] >= std::ranges::max(found_.tokens))
          ++lengths[shape[1]];
    found_.padded = most_of(lengths).value_or(0);
    return found_.padded > 0;
  }

  // As often as most modules of the side without padding are called for each call of the other, of those that are
  // called more often: an encoder may run prompt by prompt before a decoder with a batch.
  size_t samples() const {
    std::map<size_t, int> votes;
    for (const auto& [name, path] : named_)
      if (const size_t times = found_.batch(*path).times;
          found_.single(*path).times > times && found_.single(*path).times % times == 0)
        ++votes[found_.single(*path).times / times];
    return most_of(votes).value_or(0);
  }

  std::optional<SequenceLengths> lengths_of_calls(const CallShapes& path) const {
    const auto shapes = found_.single(path).of(found_.calls_of(path, 0));
    if (shapes.empty() || !found_.batch(path).shapes.contains(0)) return std::nullopt;
    SequenceLengths lengths;
    for (const Shape& shape : shapes) {
      const WithoutBatch shapes_of_call = without_batch(found_.batch(path).shapes.at(0), shape, found_.size());
      const auto length = lengths_of(shapes_of_call);
      if (!length && shapes_of_call.whole != shapes_of_call.part) return std::nullopt;
      if (length && lengths.padded != 0 && lengths.padded != length->first) return std::nullopt;
      if (length) lengths.padded = length->first;
      lengths.tokens.push_back(length ? length->second : 0);
    }
    for (int64_t& tokens : lengths.tokens)
      if (tokens == 0) tokens = lengths.padded;  // the longest: nothing of it is padding
    return lengths.padded > 0 ? std::optional(lengths) : std::nullopt;
  }

  // Paths of the port that may be this boundary's.
  std::vector<const CallShapes*> of_boundary(const Boundary& b) const {
    if (named_.empty()) return own_;
    const auto path = named_.find(b.path);
    return path == named_.end() ? std::vector<const CallShapes*>() : std::vector{path->second};
  }

  std::vector<size_t> calls_of(const CallShapes& path) const {
    return path.own ? found_.calls_of(1, found_.tokens.size(), 0) : found_.calls_of(path, 0);
  }

  std::optional<size_t> boundary(const std::string& name, size_t call) const {
    const auto b = reference_.program->find(name, static_cast<int>(call));
    return b && !reference_.program->boundaries[*b].value.key.empty() ? b : std::nullopt;
  }

  // Of what the port or the reference has in a call; empty: nothing is stored there.
  Shape shape(const std::string& name, const CallShapes& path, size_t call, bool of_port) const {
    if (of_port) return path.tensors.contains(call) ? path.port.shapes.at(call) : Shape();
    const auto b = boundary(name, call);
    return b ? reference_.program->boundaries[*b].value.shape : Shape();
  }

  at::Tensor value(const std::string& name, const CallShapes& path, size_t call, bool of_port) const {
    if (of_port) return tensors_[path.tensors.at(call)].load();
    return stored_value(*reference_.dump, reference_.program->boundaries[*boundary(name, call)].value);
  }

  bool fits(const std::string& name, const CallShapes& path, const RaggedBatch& batch) const {
    const Shape whole = shape(name, path, 0, found_.of_port);
    std::vector<Shape> parts;
    for (const size_t call : calls_of(path)) parts.push_back(shape(name, path, call, !found_.of_port));
    return !whole.empty() && !parts.empty() && !places_in_batch(batch, whole, parts).parts.empty();
  }

  // Which sample each call is; and is the rest of them padding?
  bool places_by_value(const std::string& name, const CallShapes& path) {
    const at::Tensor whole = value(name, path, 0, found_.of_port);
    std::vector<at::Tensor> parts;
    for (const size_t call : calls_of(path)) parts.push_back(value(name, path, call, !found_.of_port));
    found_.samples.assign(parts.size(), 0), found_.in_front.assign(parts.size(), false);
    std::vector<bool> taken(parts.size());
    for (size_t call = 0; call < parts.size(); ++call) {
      const auto sample = sample_of(call, whole, parts[call], taken);
      if (!sample) return false;
      found_.samples[call] = *sample, taken[*sample] = true;
    }
    return has_mask_of(found_.of_port ? port_ : reference_, padding().logical_not()) || is_constant(whole);
  }

  // The first that is free and agrees, its own before others: prompts may be equal.
  std::optional<size_t> sample_of(size_t call, const at::Tensor& whole, const at::Tensor& part,
                                  const std::vector<bool>& taken) {
    std::vector<size_t> order(taken.size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[0], order[call]);
    for (const size_t sample : order) {
      if (taken[sample]) continue;
      found_.samples[call] = sample;
      Agreement agreement{};
      for (const bool in_front : {false, true}) {
        found_.in_front[call] = in_front;
        agreement[in_front] = agrees(found_, call, whole, part);
      }
      found_.in_front[call] = !agreement[0];
      if (agreement[0] != agreement[1] || (agreement[0] && found_.tokens[call] == found_.padded)) return sample;
    }
    return std::nullopt;
  }

  // (samples, tokens): what is padding.
  at::Tensor padding() const {
    at::Tensor padding = at::ones({found_.size(), found_.padded}, at::kBool);
    for (size_t call = 0; call < found_.tokens.size(); ++call)
      axis_parts(padding, *place_in_batch(found_, call, {found_.size(), found_.padded}, {1, found_.tokens[call]}))
          .fill_(false);
    return padding;
  }

  // The same in every row of the padding, of which there are several.
  bool is_constant(const at::Tensor& whole) const {
    const at::Tensor padding = this->padding();
    if (whole.dim() < 3 || whole.sizes().slice(0, 2) != padding.sizes()) return false;
    const at::Tensor rows = whole.flatten(0, 1).index_select(0, padding.flatten().nonzero().squeeze(1));
    return rows.size(0) > 1 && at::equal(rows, rows.narrow(0, 0, 1).expand(rows.sizes()));
  }

  const RecordedSide reference_, port_;
  const std::vector<CandidateTensor>& tensors_;
  std::map<std::string, const CallShapes*> named_;
  std::vector<const CallShapes*> own_;  // names of the port's own
  RaggedBatch found_;
};

}  // namespace

std::optional<RaggedBatch> find_ragged_batch(const RecordedSide& reference, const RecordedSide& port,
                                             const std::vector<CandidateTensor>& tensors,
                                             const std::vector<CallShapes>& paths) {
  for (const bool of_port : {false, true}) {
    std::vector<RaggedBatch> orders;
    for (const bool by_step : {false, true})
      if (auto found = Finder(reference, port, tensors, paths, of_port, by_step).find())
        orders.push_back(std::move(*found));
    if (!orders.empty()) return in_likelier_order(orders, reference, tensors, paths);
  }
  return std::nullopt;
}

}  // namespace parity
