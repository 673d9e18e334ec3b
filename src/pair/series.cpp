#include "pair/series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/numbers_in_text.hpp"
#include "pair/layout_advice.hpp"
#include "pair/limits.hpp"
#include "pair/order.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

constexpr size_t kLongestNumber = 4;  // digits; longer ones are hashes

struct NumberedPath {
  std::string text;  // with # for the number
  int64_t number = 0;
};

// One for each number in the path.
std::vector<NumberedPath> numbered(const std::string& path) {
  std::vector<NumberedPath> found;
  for (const auto& [begin, length] : numbers_in(path, kLongestNumber))
    found.push_back(
        {path.substr(0, begin) + '#' + path.substr(begin + length), std::stoll(path.substr(begin, length))});
  return found;
}

using Members = std::map<int64_t, size_t>;  // by number: boundary, or candidate tensor
using SeriesByText = std::map<std::string, Members>;

// Lists without gaps, in order of execution.
SeriesByText lists_of(SeriesByText series) {
  std::erase_if(series, [](const auto& entry) {
    const Members& members = entry.second;
    if (members.size() < 2 || members.rbegin()->first - members.begin()->first + 1 != std::ssize(members)) return true;
    return !std::is_sorted(members.begin(), members.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
  });
  return series;
}

class SeriesPairer {
 public:
  SeriesPairer(PortPairing& pairing, const Program& reference, const std::vector<CandidateTensor>& candidate)
      : pairing_(pairing), reference_(reference), candidate_(candidate) {
    SeriesByText modules, tensors;
    for (size_t b = 0; b < reference.boundaries.size(); ++b) {
      const Boundary& boundary = reference.boundaries[b];
      if (!boundary.comparable || boundary.call != 0 || module_of(boundary.path) != boundary.path) continue;
      for (const NumberedPath& n : numbered(boundary.path)) modules[n.text].emplace(n.number, b);
    }
    for (size_t c = 0; c < candidate.size(); ++c)
      if (!candidate[c].of_op && candidate[c].call == 0)
        for (const NumberedPath& n : numbered(candidate[c].path)) tensors[n.text].emplace(n.number, c);
    modules_ = lists_of(std::move(modules));
    tensors_ = lists_of(std::move(tensors));
    for (const PortPair& pair : pairing.pairs) pairs_.emplace(pair.candidate, pair);
  }

  bool run() {
    const size_t before = pairing_.pairs.size();
    for (const auto& [text, tensors] : tensors_) {
      if (std::all_of(tensors.begin(), tensors.end(), [&](const auto& t) { return pairs_.contains(t.second); }))
        continue;
      const auto list = list_of(tensors);
      if (!list) continue;
      for (const auto& [number, c] : tensors)
        if (const auto b = modules_.at(list->text).find(number + list->number);
            b != modules_.at(list->text).end() && !pairs_.contains(c))
          add(b->second, c, text);
    }
    return pairing_.pairs.size() > before;
  }

 private:
  // The reference's list, and what its numbers are ahead by.
  std::optional<NumberedPath> list_of(const Members& tensors) const {
    std::optional<std::set<std::pair<std::string, int64_t>>> possible;
    for (const auto& [number, c] : tensors) {
      const auto pair = pairs_.find(c);
      if (pair == pairs_.end()) continue;
      std::set<std::pair<std::string, int64_t>> here;
      for (const NumberedPath& n : numbered(reference_.boundaries[pair->second.boundary].path))
        if (modules_.contains(n.text) && (!possible || possible->contains({n.text, n.number - number})))
          here.emplace(n.text, n.number - number);
      possible = std::move(here);
    }
    if (!possible) return unpaired_list(tensors);
    if (possible->size() != 1) return std::nullopt;
    return NumberedPath{possible->begin()->first, possible->begin()->second};
  }

  std::optional<NumberedPath> unpaired_list(const Members& tensors) const {
    std::vector<NumberedPath> outermost;
    const auto depth = [](const std::string& text) { return std::count(text.begin(), text.end(), '.'); };
    for (const auto& [text, modules] : modules_) {
      if (modules.size() != tensors.size() || !fits_as_a_whole(modules, tensors)) continue;
      const int64_t ahead = modules.begin()->first - tensors.begin()->first;
      if (!outermost.empty() && depth(text) < depth(outermost[0].text)) outermost.clear();
      if (outermost.empty() || depth(text) == depth(outermost[0].text)) outermost.push_back({text, ahead});
    }
    return outermost.size() == 1 ? std::optional(outermost[0]) : std::nullopt;
  }

  bool fits_as_a_whole(const Members& modules, const Members& tensors) const {
    return std::equal(modules.begin(), modules.end(), tensors.begin(), [&](const auto& module, const auto& tensor) {
      const auto& shape = reference_.boundaries[module.second].value.shape;
      return !pairing_.marked[module.second] && differ_by_merged_axes(shape, candidate_[tensor.second].shape);
    });
  }

  void add(size_t b, size_t c, const std::string& text) {
    const auto &whole = reference_.boundaries[b].value.shape, &shape = candidate_[c].shape;
    if (pairing_.marked[b] || !differ_by_merged_axes(whole, shape)) return;
    std::vector<std::pair<size_t, size_t>> known;
    for (const PortPair& pair : pairing_.pairs) known.emplace_back(pair.boundary, pair.candidate);
    if (!PairingOrder(reference_, known).possible(b, c)) return;
    Layout layout;
    if (shape != whole) layout.reshape = whole;
    pairing_.add(
        {b, c, layout, kPairLimits.trial.by_size, fmt::format("order and shape: its place in the list {}", text), 1});
  }

  PortPairing& pairing_;
  const Program& reference_;
  const std::vector<CandidateTensor>& candidate_;
  SeriesByText modules_, tensors_;
  std::map<size_t, PortPair> pairs_;  // by candidate tensor, as they were
};

}  // namespace

bool pair_series(PortPairing& pairing, const Program& reference, const std::vector<CandidateTensor>& candidate) {
  return SeriesPairer(pairing, reference, candidate).run();
}

}  // namespace parity
