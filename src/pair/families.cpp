#include "pair/families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/numbers_in_text.hpp"
#include "pair/layout_advice.hpp"
#include "pair/limits.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

constexpr size_t kMostDigits = 9;       // longer numbers are hashes
constexpr size_t kLongestExchange = 4;  // tensors exchanged in a ring: q, k, v and one more

// Stands for every text with so many numbers; no path holds it.
std::string any_text(size_t numbers) { return std::string(numbers, '\0'); }

}  // namespace

Families::Families(const Program& reference, const std::vector<CandidateTensor>& candidate)
    : reference_(reference), candidate_(candidate) {
  for (size_t c = 0; c < candidate.size(); ++c) {
    Label label;
    const std::string& path = candidate[c].path;
    size_t text_from = 0;
    for (const auto& [begin, length] : numbers_in(path, kMostDigits)) {
      label.text += path.substr(text_from, begin - text_from) + '#';
      label.numbers.push_back(std::stoll(path.substr(begin, length)));
      text_from = begin + length;
    }
    label.text += path.substr(text_from);
    label.numbers.push_back(candidate[c].call);
    by_label_.emplace(std::pair(label.text, label.numbers), c);
    labels_[0].push_back(std::move(label));
    labels_[1].push_back({"", {static_cast<int64_t>(c)}});
    by_label_.emplace(std::pair(std::string(), labels_[1].back().numbers), c);
  }
}

// One for each number that stands between dots, and one for the call.
std::vector<Families::Place> Families::places_of(const Boundary& boundary) {
  const std::string &path = boundary.path, call = fmt::format("@{}", boundary.call);
  std::vector<Place> places;
  const size_t modules = is_op_path(path) ? module_of(path).size() : path.size();
  for (size_t begin = 0; begin < modules;) {
    const size_t end = std::min(path.find('.', begin), modules);
    const std::string part = path.substr(begin, end - begin);
    if (!part.empty() && part.size() <= kMostDigits && std::all_of(part.begin(), part.end(), is_digit))
      places.push_back(
          {path.substr(0, begin) + "#" + path.substr(end) + call, path.substr(0, begin), std::stoll(part)});
    begin = end + 1;
  }
  places.push_back({path + "@#", "@", boundary.call});
  return places;
}

void Families::learn(const PortPair& pair) {
  lines_[0].clear(), lines_[1].clear();
  for (const int system : {0, 1})
    for (const Place& place : places_of(reference_.boundaries[pair.boundary])) {
      const Label& label = labels_[system][pair.candidate];
      std::vector<Known>& family = known_[system][place.family];
      if (!family.empty() && family.back().label.text == label.text && family.back().index != place.index) {
        const Known& last = family.back();
        Numbers slope;
        for (size_t i = 0; i < label.numbers.size(); ++i) {
          const int64_t rise = label.numbers[i] - last.label.numbers[i];
          if (rise % (place.index - last.index) == 0) slope.push_back(rise / (place.index - last.index));
        }
        if (slope.size() == label.numbers.size()) {
          ++slopes_[{place.group, label.text}][slope];
          ++slopes_[{place.group, any_text(slope.size())}][slope];
        }
      }
      family.push_back({place.index, label, pair});
      families_[label.text].insert(place.family);
    }
}

// An engine calls each family of a block otherwise (ffn_inp-0, l_out-0) and counts them alike.
std::optional<Families::Numbers> Families::slope_of(const Group& group, size_t numbers) const {
  const auto own = voted_slope(group);
  return own ? own : voted_slope({group.first, any_text(numbers)});
}

std::optional<Families::Numbers> Families::voted_slope(const Group& group) const {
  const auto votes = slopes_.find(group);
  if (votes == slopes_.end()) return std::nullopt;
  int all = 0;
  const std::pair<const Numbers, int>* best = nullptr;
  for (const auto& vote : votes->second) {
    all += vote.second;
    if (best == nullptr || vote.second > best->second) best = &vote;
  }
  const FamilyLimits& limits = kPairLimits.family;
  if (best->second < limits.least_votes || best->second < limits.majority * all) return std::nullopt;
  return best->first;
}

// The known pair's, where both shapes are as there; in another call of the same module also the same order of axes.
std::optional<Layout> Families::layout_as(const Known& like, size_t boundary, size_t candidate) const {
  const Boundary &wanted = reference_.boundaries[boundary], &known = reference_.boundaries[like.pair.boundary];
  const CandidateTensor &tensor = candidate_[candidate], &there = candidate_[like.pair.candidate];
  const Layout& layout = like.pair.layout;
  if (tensor.dtype != there.dtype) return std::nullopt;
  if (wanted.value.shape == known.value.shape && tensor.shape == there.shape) return layout;
  if (wanted.path != known.path || layout.split || layout.slice || !layout.view.empty()) return std::nullopt;
  return layout_like(layout.permutation, wanted.value.shape, tensor.shape);
}

// What most of a family's pairs lie on, of equals what the earliest do.
Families::Line Families::line_of(const std::string& group, const std::vector<Known>& known) const {
  std::map<std::pair<std::string, Numbers>, std::pair<int, const Known*>> offsets;  // votes, the earliest
  std::map<std::string, std::optional<Numbers>> slopes;
  for (const Known& k : known) {
    const auto slope =
        slopes.try_emplace(k.label.text, slope_of({group, k.label.text}, k.label.numbers.size())).first->second;
    if (!slope) continue;
    Numbers offset = k.label.numbers;
    for (size_t i = 0; i < offset.size(); ++i) offset[i] -= (*slope)[i] * k.index;
    auto& [votes, first] = offsets[{k.label.text, offset}];
    ++votes;
    if (first == nullptr || k.index < first->index) first = &k;
  }
  Line best;
  int most = 0;
  for (const auto& [offset, vote] : offsets)
    if (vote.first > most || (vote.first == most && vote.second->index < best.like->index)) {
      most = vote.first;
      best = {vote.second, offset.second, *slopes.at(offset.first)};
    }
  return best;
}

// `blk.#.attn_q` is one module's, `t#` is anything's.
bool Families::counts_tensors(const std::string& text) const {
  const auto found = families_.find(text);
  return text.empty() || (found != families_.end() && found->second.size() > kPairLimits.family.of_one_name);
}

std::optional<Families::Counterpart> Families::counterpart(size_t boundary) const {
  for (const int system : {0, 1})
    for (const Place& place : places_of(reference_.boundaries[boundary])) {
      const auto known = known_[system].find(place.family);
      if (known == known_[system].end()) continue;
      auto line = lines_[system].find(place.family);
      if (line == lines_[system].end())
        line = lines_[system].emplace(place.family, line_of(place.group, known->second)).first;
      const Known* like = line->second.like;
      if (like == nullptr) continue;
      Numbers wanted = line->second.offset;
      for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += line->second.slope[i] * place.index;
      const auto found = by_label_.find({like->label.text, wanted});
      if (found == by_label_.end()) continue;
      const auto layout = layout_as(*like, boundary, found->second);
      if (!layout) continue;
      return Counterpart{found->second, *layout,
                         fmt::format("as {} is {}", candidate_[like->pair.candidate].path,
                                     reference_.boundaries[like->pair.boundary].path),
                         counts_tensors(like->label.text)};
    }
  return std::nullopt;
}

std::vector<size_t> Families::exchanged(const std::vector<PortPair>& pairs, const std::vector<bool>& marked) const {
  std::map<size_t, size_t> owner, wanted, free;  // candidate -> pair; pair -> candidate; candidate -> free boundary
  for (size_t i = 0; i < pairs.size(); ++i) {
    owner[pairs[i].candidate] = i;
    if (const auto line = counterpart(pairs[i].boundary); line && line->candidate != pairs[i].candidate)
      wanted[i] = line->candidate;
  }
  if (wanted.empty()) return {};
  for (size_t b = 0; b < marked.size(); ++b)
    if (!marked[b] && reference_.boundaries[b].comparable)
      if (const auto line = counterpart(b)) free.emplace(line->candidate, b);
  std::vector<size_t> exchanged;
  for (const auto& [start, first] : wanted) {
    size_t at = first;  // candidate
    for (size_t steps = 0; steps < kLongestExchange; ++steps) {
      const auto holder = owner.find(at);
      const bool end = holder == owner.end();
      if (end ? free.contains(pairs[start].candidate) : at == pairs[start].candidate) {
        exchanged.push_back(start);
        break;
      }
      if (end || !wanted.contains(holder->second)) break;
      at = wanted.at(holder->second);
    }
  }
  return exchanged;
}

}  // namespace parity
