// What names leave over, paired by content; layouts of what has one name and another shape.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "measure/local.hpp"
#include "pair/by_content.hpp"
#include "pair/in_step.hpp"
#include "pair/layout_advice.hpp"
#include "pair/limits.hpp"
#include "pair/links.hpp"
#include "pair/model_result.hpp"
#include "pair/moved.hpp"
#include "pair/order.hpp"
#include "pair/plain_layouts.hpp"
#include "pair/port_pairing.hpp"
#include "pair/prints.hpp"
#include "pair/usual_layouts.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

constexpr double kSidesLookedAt = 2;

bool is_op(const NamedTensor& tensor) { return is_op_path(tensor.path); }

bool content_differs(const NamedTensor& a, const NamedTensor& b) {
  if (a.shape != b.shape || a.print.readings.empty() || b.print.readings.empty()) return true;
  return content_distance(a.print.readings[0], b.print.readings[0]) > kPairLimits.program.crossed;
}

// Equal names that lie crosswise in time and hold other numbers are other tensors: diffusers' Wan calls norm2 what the
// original calls norm3. Names alone that cross, or numbers alone that differ (a fault), stay paired.
void drop_crossed_names(PortPairing& pairing, const Prints& here, const Prints& there) {
  std::vector<size_t> last(pairing.pairs.size());  // largest candidate index so far
  size_t largest = 0;
  for (size_t i = 0; i < pairing.pairs.size(); ++i) last[i] = largest = std::max(largest, pairing.pairs[i].candidate);
  size_t least = SIZE_MAX;
  std::set<size_t> crossed;  // boundaries
  for (size_t i = pairing.pairs.size(); i-- > 0;) {
    const PortPair& pair = pairing.pairs[i];
    const bool crosses = (i > 0 && last[i - 1] > pair.candidate) || least < pair.candidate;
    least = std::min(least, pair.candidate);
    const NamedTensor *mine = here.find(pair.boundary), *other = there.find(pair.candidate);
    if (crosses && pair.evidence == "path" && mine && other && content_differs(*mine, *other))
      crossed.insert(pair.boundary);
  }
  pairing.drop_if([&](const PortPair& pair) { return crossed.contains(pair.boundary); });
}

// A port that has a path fewer times than the reference may have any of its calls: an exported graph does not tell the
// calls of a shared layer apart, and names the last. The first one that agrees, where the call of this number does not.
void choose_calls(PortPairing& pairing, const Program& reference, const std::vector<CandidateTensor>& candidate,
                  const Prints& here, const Prints& there) {
  std::map<std::string, int> calls;
  for (const CandidateTensor& tensor : candidate) ++calls[tensor.path];
  for (PortPair& pair : pairing.pairs) {
    const Boundary& named = reference.boundaries[pair.boundary];
    const NamedTensor *mine = here.find(pair.boundary), *other = there.find(pair.candidate);
    if (pair.evidence != "path" || !mine || !other || !content_differs(*mine, *other)) continue;
    if (!reference.index.contains({named.path, calls[candidate[pair.candidate].path]})) continue;
    for (int call = 0;; ++call) {
      const auto found = reference.index.find({named.path, call});
      if (found == reference.index.end()) break;
      const NamedTensor* another = here.find(found->second);
      if (pairing.marked[found->second] || !another || content_differs(*another, *other)) continue;
      pairing.marked[pair.boundary] = false;
      pairing.marked[found->second] = true;
      pairing.notes.push_back(
          fmt::format("of {}, which the reference calls more often, the candidate's call {} is "
                      "paired by content with the reference's call {}",
                      named.path, named.call, call));
      pair = {found->second, pair.candidate, {}, 1, "path, its call by content"};
      break;
    }
  }
  std::sort(pairing.pairs.begin(), pairing.pairs.end(),
            [](const PortPair& a, const PortPair& b) { return a.boundary < b.boundary; });
}

Prints those(const Prints& all, const std::function<bool(size_t position)>& wanted) {
  Prints some;
  for (size_t i = 0; i < all.index.size(); ++i)
    if (wanted(i)) {
      some.index.push_back(all.index[i]);
      some.tensors.push_back(all.tensors[i]);
    }
  return some;
}

// A port that cannot write bf16 writes its numbers as fp32.
bool of_width(at::ScalarType dtype, const CandidateTensor& tensor) {
  return tensor.dtype == dtype || effective_dtype(tensor.load(), dtype) == dtype;
}

PairingOrder order_of(const PortPairing& pairing, const Program& reference) {
  std::vector<std::pair<size_t, size_t>> known;
  for (const PortPair& pair : pairing.pairs)
    if (pair.confidence >= kPairLimits.program.sure) known.emplace_back(pair.boundary, pair.candidate);
  return {reference, known};
}

// Pairs what is left, among the reference's boundaries that `eligible` names.
void pair_by_content(PortPairing& pairing, std::vector<std::string>& fused, const Program& reference, const Prints& all,
                     const std::vector<CandidateTensor>& candidate, const Prints& there,
                     const std::function<bool(const NamedTensor&)>& eligible) {
  const Prints here = those(all, [&](size_t i) { return eligible(all.tensors[i]) || pairing.marked[all.index[i]]; });
  std::vector<std::pair<size_t, size_t>> anchors;
  for (const PortPair& pair : pairing.pairs) {
    if (here.find(pair.boundary) && there.find(pair.candidate))
      anchors.emplace_back(here.position_of(pair.boundary), there.position_of(pair.candidate));
  }
  const PairingOrder order = order_of(pairing, reference);
  const auto possible = [&](const Link& link) {
    const size_t b = here.index[link.reference], c = there.index[link.candidate];
    const bool again = link.distance < kPairLimits.program.recorded_again;
    return !order.known_by_another_name(b) && (order.possible(b, c) || (again && order.possible_again(b, c)));
  };
  const AutoPairing found = pair_automatically(here.tensors, there.tensors, anchors, possible);
  fused = found.notes;
  const auto equals_an_op = [&](const AutoPair& pair, size_t c) {
    return held_elsewhere(all, there.tensors[pair.candidate], [&](size_t b) {
      return !pairing.marked[b] && is_op_path(reference.boundaries[b].path) && order.possible(b, c);
    });
  };
  for (const AutoPair& pair : found.pairs) {
    const size_t b = here.index[pair.reference], c = there.index[pair.candidate];
    const NamedTensor& mine = here.tensors[pair.reference];
    if (pairing.marked[b]) continue;
    // An op's result in another width is not a counterpart: the port's rounded copy has none here.
    if (is_op(mine) && !of_width(mine.dtype, candidate[c])) continue;
    // What is like a module's value and equals an op's is the op's: k after its rotation, beside what k_proj returns.
    if (!is_op(mine) && pair.distance > kPairLimits.content.same && equals_an_op(pair, c)) continue;
    pairing.add({b, c, pair.layout, pair.confidence, pair.evidence, pair.distance});
  }
}

// Takes back pairs by content whose tensor was there before what it is computed from: memory of an earlier run.
void drop_impossible(PortPairing& pairing, const Program& reference) {
  std::vector<std::pair<size_t, size_t>> known;
  for (const PortPair& pair : pairing.pairs) known.emplace_back(pair.boundary, pair.candidate);
  const auto early = before_their_causes(reference, known);
  pairing.drop_if([&](const PortPair& pair) {
    return pair.evidence.starts_with("content") && std::ranges::find(early, pair.boundary) != early.end();
  });
}

bool shapes_differ(const PortPair& pair, const Program& reference, const std::vector<CandidateTensor>& candidate) {
  return pair.layout.as_it_is() && reference.boundaries[pair.boundary].value.shape != candidate[pair.candidate].shape;
}

bool is_last_row(const Layout& layout, const NamedTensor& mine, const CandidateTensor& candidate) {
  const Fitted row = layout.fit_reference(candidate.load());
  const NamedTensor theirs{candidate.path, candidate.call, candidate.dtype, mine.shape, fingerprint_of(row.tensor)};
  const auto link = compare_content(mine, theirs);
  return link && link->distance < kPairLimits.content.same && link->weight >= kPairLimits.content.layout_worth;
}

// A module's result of the last token alone: its ops' have no such axis where batch and tokens are one.
void leave_out_ops_of_last_rows(PortPairing& pairing, const Program& reference,
                                const std::vector<CandidateTensor>& candidate) {
  std::set<std::pair<std::string, int>> modules;
  for (const PortPair& pair : pairing.pairs)
    if (pair.layout.slice)
      modules.emplace(reference.boundaries[pair.boundary].path, reference.boundaries[pair.boundary].call);
  std::erase_if(pairing.pairs, [&](const PortPair& pair) {
    const Boundary& b = reference.boundaries[pair.boundary];
    if (!is_op_path(b.path) || !modules.contains({module_of(b.path), b.call}) ||
        !shapes_differ(pair, reference, candidate))
      return false;
    pairing.marked[pair.boundary] = false;
    return true;
  });
}

using Orders = std::map<Axes, std::set<std::vector<int64_t>>>;

void read_as(PortPairing& pairing, PortPair& pair, const Layout& layout, const std::string& why,
             const Program& reference, const std::vector<CandidateTensor>& candidate) {
  const std::string &mine = reference.boundaries[pair.boundary].path, &other = candidate[pair.candidate].path;
  pair.layout = layout;
  pairing.notes.push_back(
      fmt::format("the candidate has {}, and is read as the map rule `{} = {} {}` would ({})",
                  layout.slice ? "more tokens of " + (mine.empty() ? "the result" : mine)
                               : fmt::format("the axes of {} {}", mine,
                                             layout.permutation.empty() ? "divided otherwise" : "in another order"),
                  mine, other, layout.text(), why));
}

// As all others with as many axes are read, by content, or all that have a name in common by their shapes.
void read_as_others(PortPairing& pairing, Orders orders, const Program& reference,
                    const std::vector<CandidateTensor>& candidate) {
  const auto by_shapes = orders_by_shapes(pairing, reference, candidate);
  for (const auto& [axes, order] : by_shapes)
    if (!orders.contains({axes, axes})) orders[{axes, axes}] = {order};
  for (PortPair& pair : pairing.pairs) {
    if (!shapes_differ(pair, reference, candidate)) continue;
    const auto &shape = candidate[pair.candidate].shape, &mine = reference.boundaries[pair.boundary].value.shape;
    const Axes axes{shape.size(), mine.size()};
    const auto known = orders.find(axes);
    if (known == orders.end() || known->second.size() != 1) continue;
    const bool by_shape = axes.first == axes.second && by_shapes.contains(axes.first);
    if (const auto layout = layout_like(*known->second.begin(), mine, shape))
      read_as(pairing, pair, *layout,
              by_shape ? "as all of as many axes have it; its content differs" : "as others; its content does not tell",
              reference, candidate);
  }
}

// The same name, the axes in another order: by content, and, where that is wrong, as all others of the candidate's. Or
// more tokens than the reference, which has the last one's alone.
void find_layouts(PortPairing& pairing, const Program& reference, const std::vector<CandidateTensor>& candidate,
                  const Prints& here, const Prints& there) {
  Orders orders;
  for (PortPair& pair : pairing.pairs) {
    const NamedTensor *mine = here.find(pair.boundary), *other = there.find(pair.candidate);
    if (!shapes_differ(pair, reference, candidate) || !mine) continue;
    double distance = 1;
    if (const auto layout = other ? layout_by_content(*mine, *other, &distance) : std::nullopt) {
      if (!layout->permutation.empty()) orders[{other->shape.size(), mine->shape.size()}].insert(layout->permutation);
      read_as(pairing, pair, *layout, fmt::format("content {:.4f}", 1 - distance * distance), reference, candidate);
    } else if (const auto row = last_row(mine->shape, candidate[pair.candidate].shape);
               row && is_last_row(*row, *mine, candidate[pair.candidate])) {
      read_as(pairing, pair, *row, "the last one's content agrees", reference, candidate);
    }
  }
  leave_out_ops_of_last_rows(pairing, reference, candidate);
  read_as_others(pairing, std::move(orders), reference, candidate);
}

// Identity modules (dropout at inference) give their input another name: bitwise the same as a paired tensor recorded
// beside them, they are accounted for.
void name_repeats(PortPairing& pairing, const std::vector<CandidateTensor>& candidate) {
  std::erase_if(pairing.unmatched, [&](size_t c) {
    for (const PortPair& pair : pairing.pairs) {
      const size_t p = pair.candidate, apart = p > c ? p - c : c - p;
      if (static_cast<double>(apart) > kPairLimits.program.beside || candidate[p].shape != candidate[c].shape ||
          candidate[p].dtype != candidate[c].dtype || !at::equal(candidate[p].load(), candidate[c].load()))
        continue;
      pairing.notes.push_back(fmt::format("{} repeats {} bit by bit", candidate[c].path,
                                          candidate[p].path.empty() ? "the model's result" : candidate[p].path));
      return true;
    }
    return false;
  });
}

// What names leave over, and layouts.
void pair_the_rest(PortPairing& pairing, const Dump& dump, const Program& reference,
                   const std::vector<CandidateTensor>& candidate, const ShareDone& progress) {
  const bool left_over =
      std::any_of(pairing.unmatched.begin(), pairing.unmatched.end(), [&](size_t c) { return !candidate[c].of_op; });
  const bool other_shapes = std::any_of(pairing.pairs.begin(), pairing.pairs.end(), [&](const PortPair& pair) {
    return shapes_differ(pair, reference, candidate);
  });
  if (!left_over && !other_shapes) return;
  const Prints here = reference_prints(dump, reference, part_of(progress, 0, 1 / kSidesLookedAt)),
               there = candidate_prints(candidate, part_of(progress, 1 / kSidesLookedAt, 1));
  find_layouts(pairing, reference, candidate, here, there);
  if (!left_over) return;
  choose_calls(pairing, reference, candidate, here, there);
  drop_crossed_names(pairing, here, there);
  std::vector<std::string> fused;  // notes of the last pass
  // Modules first: a value that a module returns and an op passes on is the module's.
  const PairMore more = [&](PortPairing& known, const Prints& values) {
    pair_by_content(known, fused, reference, values, candidate, there, [](const NamedTensor& t) { return !is_op(t); });
    if (!known.unmatched.empty())
      pair_by_content(known, fused, reference, values, candidate, there, [](const NamedTensor&) { return true; });
  };
  more(pairing, here);
  drop_impossible(pairing, reference);
  pair_in_step(pairing, dump, reference, candidate, here, there, more);
  take_for_result(pairing, reference, here);
  const auto said = std::min(fused.size(), static_cast<size_t>(kPairLimits.moved.shown.value));
  pairing.notes.insert(pairing.notes.end(), fused.begin(), fused.begin() + static_cast<ptrdiff_t>(said));
  if (said < fused.size())
    pairing.notes.push_back(
        fmt::format("{} more of the candidate's tensors are parts of the reference's: unpaired", fused.size() - said));
  name_repeats(pairing, candidate);
}

}  // namespace

PortPairing pair_recordings(const Dump& dump, const Program& reference, const std::vector<CandidateTensor>& candidate,
                            const Program* candidate_program, const NameMap* map, const ShareDone& progress) {
  PortPairing pairing = pair_by_name(reference, candidate, candidate_program, map);
  pair_the_rest(pairing, dump, reference, candidate, progress);
  prefer_plain_layouts(pairing, dump, reference, candidate);
  prefer_usual_layouts(pairing, dump, reference, candidate);
  move_boundaries(pairing, dump, reference, candidate);
  return pairing;
}

}  // namespace parity
