#include "pair/ragged_batch.hpp"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "measure/measure.hpp"
#include "pair/limits.hpp"

namespace parity {
namespace {

// One call's shape without the batch, and the batch's; empty: the first axis is no batch's.
struct WithoutBatch {
  Shape whole, part;
};

WithoutBatch without_batch(const Shape& whole, const Shape& part, int64_t samples) {
  if (whole.empty() || whole[0] % samples != 0) return {};
  Shape rest = whole;
  if (part.size() + 1 == whole.size() && whole[0] == samples)
    rest.erase(rest.begin());
  else if (part.size() == whole.size())
    rest[0] /= samples;
  else
    return {};
  return {rest, part};
}

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

using Lengths = std::pair<int64_t, std::vector<int64_t>>;  // tokens with padding; without it, by call

// Does the padding lie behind (0), in front (1)?
using Agreement = std::array<bool, 2>;

class Finder {
 public:
  Finder(const RecordedSide& reference, const RecordedSide& port, const std::vector<CandidateTensor>& tensors,
         const std::vector<CallShapes>& paths, bool of_port)
      : reference_(reference), port_(port), tensors_(tensors) {
    found_.of_port = of_port;
    for (const CallShapes& path : paths)
      if (!path.own && !path.of_range) named_.emplace(path.name, &path);
  }

  std::optional<RaggedBatch> find() {
    found_.tokens.resize(samples());
    if (found_.size() < 2) return std::nullopt;
    std::map<Lengths, int> votes;
    int all = 0;
    for (const auto& [name, path] : named_)
      if (const auto lengths = lengths_of_calls(*path)) ++votes[*lengths], ++all;
    const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
    if (most == votes.end() || 2 * most->second <= all) return std::nullopt;
    std::tie(found_.padded, found_.tokens) = most->first;
    size_t looked_at = 0;
    for (const Boundary& b : reference_.program->boundaries)
      if (const auto path = named_.find(b.path); path != named_.end() && b.call == 0 && may_tell(b)) {
        if (places_by_value(*path->second)) return found_;
        if (++looked_at == kPairLimits.calls.padded) break;
      }
    return std::nullopt;
  }

 private:
  // As often as most modules of the side without padding are called for each call of the other.
  size_t samples() const {
    std::map<size_t, int> votes;
    for (const auto& [name, path] : named_)
      if (const size_t times = found_.batch(*path).times; found_.single(*path).times % times == 0)
        ++votes[found_.single(*path).times / times];
    const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
    return most == votes.end() ? 0 : most->first;
  }

  std::optional<Lengths> lengths_of_calls(const CallShapes& path) const {
    const auto shapes = found_.single(path).of(found_.calls_of(path, 0));
    if (shapes.empty() || !found_.batch(path).shapes.contains(0)) return std::nullopt;
    Lengths lengths{0, {}};
    for (const Shape& shape : shapes) {
      const WithoutBatch shapes_of_call = without_batch(found_.batch(path).shapes.at(0), shape, found_.size());
      const auto length = lengths_of(shapes_of_call);
      if (!length && shapes_of_call.whole != shapes_of_call.part) return std::nullopt;
      if (length && lengths.first != 0 && lengths.first != length->first) return std::nullopt;
      if (length) lengths.first = length->first;
      lengths.second.push_back(length ? length->second : 0);
    }
    for (int64_t& tokens : lengths.second)
      if (tokens == 0) tokens = lengths.first;  // the longest: nothing of it is padding
    return lengths.first > 0 ? std::optional(lengths) : std::nullopt;
  }

  static bool may_tell(const Boundary& b) {
    return b.comparable && !b.value.key.empty() && at::isFloatingType(b.value.dtype);
  }

  at::Tensor value(const CallShapes& path, size_t call, bool of_port) const {
    if (of_port) return tensors_[path.tensors.at(call)].load();
    const auto b = reference_.program->find(path.name, static_cast<int>(call));
    const bool stored = b && !reference_.program->boundaries[*b].value.key.empty();
    return stored ? stored_value(*reference_.dump, reference_.program->boundaries[*b].value) : at::Tensor();
  }

  // Which sample each call is; and is the rest of them padding?
  bool places_by_value(const CallShapes& path) {
    const std::vector<size_t> calls = found_.calls_of(path, 0);
    if (found_.single(path).of(calls).empty() || !found_.batch(path).shapes.contains(0)) return false;
    const at::Tensor whole = value(path, 0, found_.of_port);
    std::vector<at::Tensor> parts;
    for (const size_t call : calls) parts.push_back(value(path, call, !found_.of_port));
    const auto missing = [](const at::Tensor& t) { return !t.defined(); };
    if (!whole.defined() || std::ranges::any_of(parts, missing)) return false;
    found_.samples.assign(parts.size(), 0), found_.in_front.assign(parts.size(), false);
    std::vector<bool> taken(parts.size());
    for (size_t call = 0; call < parts.size(); ++call) {
      const auto sample = sample_of(call, whole, parts[call], taken);
      if (!sample) return false;
      found_.samples[call] = *sample, taken[*sample] = true;
    }
    return is_masked() || is_constant(path, whole);
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
      Agreement agrees{};
      for (const bool in_front : {false, true}) {
        found_.in_front[call] = in_front;
        const auto place = place_in_batch(found_, call, whole.sizes().vec(), part.sizes().vec());
        agrees[in_front] =
            place && measure_sums(axis_parts(whole, *place).reshape(part.sizes()), part).rel_l2.value_or(1) <
                         kPairLimits.content.same;
      }
      found_.in_front[call] = !agrees[0];
      if (agrees[0] != agrees[1] || (agrees[0] && found_.tokens[call] == found_.padded)) return sample;
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

  // An input that is zero along the padding, and nowhere else.
  bool is_masked() const {
    const RecordedSide& side = found_.of_port ? port_ : reference_;
    if (side.program == nullptr || side.dump == nullptr) return false;
    const at::Tensor tokens = padding().logical_not();
    return std::ranges::any_of(side.program->leaves, [&](const Leaf& leaf) {
      const auto is_input = [](const std::string& name) { return name.starts_with("inputs/"); };
      return std::ranges::any_of(leaf.names, is_input) && !leaf.value.key.empty() &&
             leaf.value.shape == tokens.sizes().vec() && at::equal(stored_value(*side.dump, leaf.value).ne(0), tokens);
    });
  }

  // The same in every row of the padding, of which there are several.
  bool is_constant(const CallShapes& path, const at::Tensor& whole) const {
    const at::Tensor padding = this->padding();
    if (whole.dim() < 3 || whole.sizes().slice(0, 2) != padding.sizes() || path.of_range) return false;
    const at::Tensor rows = whole.flatten(0, 1).index_select(0, padding.flatten().nonzero().squeeze(1));
    return rows.size(0) > 1 && at::equal(rows, rows.narrow(0, 0, 1).expand(rows.sizes()));
  }

  const RecordedSide reference_, port_;
  const std::vector<CandidateTensor>& tensors_;
  std::map<std::string, const CallShapes*> named_;
  RaggedBatch found_;
};

}  // namespace

std::vector<size_t> RaggedBatch::calls_of(const CallShapes& path, size_t c) const {
  const size_t times = batch(path).times;
  if (times * tokens.size() != single(path).times) return {};
  std::vector<size_t> calls;
  for (size_t i = 0; i < tokens.size(); ++i) calls.push_back(i * times + c);
  return calls;
}

std::optional<std::vector<AxisPart>> place_in_batch(const RaggedBatch& batch, size_t call, const Shape& whole,
                                                    const Shape& part) {
  const auto shapes = without_batch(whole, part, batch.size());
  if (shapes.whole.empty()) return std::nullopt;
  const int64_t tokens = batch.tokens[call], sample = static_cast<int64_t>(batch.samples[call]);
  const int64_t before = batch.in_front[call] ? batch.padded - tokens : 0;
  const int64_t rows = whole[0] / batch.size();  // of a sample
  AxisPart outer{0, whole[0], sample * rows, rows};
  std::vector<AxisPart> place;
  const size_t dropped = whole.size() - part.size();
  for (size_t axis = 0; axis < shapes.whole.size(); ++axis) {
    const int64_t extent = shapes.whole[axis], length = shapes.part[axis];
    if (extent == length) continue;
    const int64_t each = extent / batch.padded;
    const bool last = length == each;  // the logits of the last token alone
    if (extent % batch.padded != 0 || (!last && length != each * tokens)) return std::nullopt;
    const int64_t begin = (last ? before + tokens - 1 : before) * each;
    if (axis == 0 && dropped == 0)  // batch and tokens are one axis
      outer.begin += begin, outer.length = length;
    else
      place.push_back({static_cast<int64_t>(axis + dropped), extent, begin, length});
  }
  place.push_back(outer);
  return place;
}

std::optional<RaggedBatch> find_ragged_batch(const RecordedSide& reference, const RecordedSide& port,
                                             const std::vector<CandidateTensor>& tensors,
                                             const std::vector<CallShapes>& paths) {
  for (const bool of_port : {false, true})
    if (auto found = Finder(reference, port, tensors, paths, of_port).find()) return found;
  return std::nullopt;
}

}  // namespace parity
