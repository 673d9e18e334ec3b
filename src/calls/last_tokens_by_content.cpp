#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "calls/last_tokens.hpp"
#include "core/error.hpp"
#include "measure/measure.hpp"
#include "pair/limits.hpp"
#include "trace/replay.hpp"

namespace parity {
namespace {

class LastTokensByContent {
 public:
  LastTokensByContent(const Program& reference, const Dump& dump, const std::vector<CandidateTensor>& tensors,
                      const PortPairing& pairing)
      : reference_(reference), dump_(dump), tensors_(tensors) {
    for (const PortPair& pair : pairing.pairs) pairs_[pair.boundary] = &pair;
    for (const size_t c : pairing.unmatched)
      if (at::isFloatingType(tensors[c].dtype) && !tensors[c].of_op)
        free_[c10::multiply_integers(tensors[c].shape)].push_back(c);
  }

  // By number of tokens: the boundaries of which the candidate has the last row.
  std::map<int64_t, std::set<size_t>> find() {
    std::map<int64_t, std::set<size_t>> found;
    if (!any_fits()) return found;
    const auto look = [&](size_t b, const at::Tensor& value) -> std::optional<at::Tensor> {
      if (const auto pair = pairs_.find(b); pair != pairs_.end()) return theirs(*pair->second);
      if (fits(b) && matches(value)) found[value.size(-2)].insert(b);
      return std::nullopt;
    };
    try {
      replay(dump_, reference_, {}, look);
    } catch (const Error&) {  // past an op that does not run on the port's values nothing is known
    }
    return found;
  }

  // Nothing whole that is paired is computed from it.
  bool stays_so(size_t b) const {
    const auto& shape = value_of(b).shape;
    const std::vector<bool> follows = computed_from_rows(reference_, {{b}, shape[shape.size() - 2]});
    return std::none_of(pairs_.begin(), pairs_.end(), [&](const auto& pair) { return follows[pair.first]; });
  }

 private:
  const Value& value_of(size_t b) const { return reference_.boundaries[b].value; }

  bool fits(size_t b) const {
    const auto& shape = value_of(b).shape;
    if (pairs_.contains(b) || !reference_.boundaries[b].comparable || shape.size() < 2 || shape[shape.size() - 2] < 2 ||
        !at::isFloatingType(value_of(b).dtype))
      return false;
    const int64_t row = value_of(b).elements() / shape[shape.size() - 2];
    return row >= static_cast<int64_t>(kPairLimits.content.enough_values) && free_.contains(row);
  }

  bool any_fits() const {
    for (size_t b = 0; b < reference_.boundaries.size(); ++b)
      if (fits(b)) return true;
    return false;
  }

  std::optional<at::Tensor> theirs(const PortPair& pair) const {
    return pair.layout.as_shape(tensors_[pair.candidate].load(), value_of(pair.boundary).shape);
  }

  bool matches(const at::Tensor& value) {
    const at::Tensor row = value.select(-2, -1).flatten();
    const auto& same_size = free_.at(row.numel());
    return std::any_of(same_size.begin(), same_size.end(), [&](size_t c) {
      const auto loaded = values_.try_emplace(c).first;
      if (!loaded->second.defined()) loaded->second = tensors_[c].load().flatten();
      return measure_sums(row, loaded->second).rel_l2.value_or(1) < kPairLimits.family.agrees;
    });
  }

  const Program& reference_;
  const Dump& dump_;
  const std::vector<CandidateTensor>& tensors_;
  std::map<size_t, const PortPair*> pairs_;      // by boundary
  std::map<int64_t, std::vector<size_t>> free_;  // unmatched tensors by number of elements
  std::map<size_t, at::Tensor> values_;          // of these, flat
};

}  // namespace

std::optional<LastRows> last_tokens_by_content(const Program& reference, const Dump& dump,
                                               const std::vector<CandidateTensor>& tensors, const PortPairing& pairing,
                                               std::vector<std::string>& notes) {
  LastTokensByContent search(reference, dump, tensors, pairing);
  for (const auto& [tokens, first] : search.find()) {
    LastRows last{first, tokens};
    std::erase_if(last.first, [&](size_t b) { return !search.stays_so(b); });
    if (last.first.empty()) continue;
    const std::string path = reference.boundaries[*last.first.begin()].path;
    notes.push_back(
        fmt::format("the port has the last of {} tokens alone from {} on, by content: the reference's last row is "
                    "compared there",
                    tokens, path.empty() ? "(result)" : path));
    return last;
  }
  return std::nullopt;
}

}  // namespace parity
