#include "calls/last_tokens.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace parity {
namespace {

struct LastToken {
  size_t candidate = 0;
  int64_t axis = 0, tokens = 0;
  bool without_axis = false;  // the candidate's tensor has it no more
};

std::optional<LastToken> last_token_of(const std::vector<int64_t>& whole, const std::vector<int64_t>& shape) {
  if (whole.size() == 2 && shape.size() == 2)  // tokens of several prompts, one after the other
    return shape[1] == whole[1] && shape[0] > 0 && shape[0] < whole[0] && whole[0] % shape[0] == 0
               ? std::optional(LastToken{0, 0, whole[0] / shape[0], false})
               : std::nullopt;
  for (size_t axis = 1; axis + 1 < whole.size(); ++axis) {  // the first is the batch's
    std::vector<int64_t> kept = whole, gone = whole;
    kept[axis] = 1;
    gone.erase(gone.begin() + static_cast<ptrdiff_t>(axis));
    if (whole[axis] > 1 && (shape == kept || shape == gone))
      return LastToken{0, static_cast<int64_t>(axis), whole[axis], shape == gone};
  }
  return std::nullopt;
}

class LastTokens {
 public:
  LastTokens(const Program& reference, const std::vector<CandidateTensor>& tensors, const std::vector<PortPair>& pairs)
      : pairs_(reference.boundaries.size(), nullptr) {
    std::vector<bool> marked(pairs_.size(), false);
    for (const PortPair& pair : pairs) {
      const auto &whole = reference.boundaries[pair.boundary].value.shape, &shape = tensors[pair.candidate].shape;
      marked[pair.boundary] = true;
      pairs_[pair.boundary] = &pair;
      if (!pair.layout.as_it_is()) continue;
      if (const auto last = last_token_of(whole, shape))
        found_.emplace(pair.boundary, *last).first->second.candidate = pair.candidate;
      else if (shape != whole)
        wrong_.insert(pair.boundary);
    }
    if (found_.empty()) return;
    before_ = reference.marked_ancestors(marked);
    for (const auto& [b, last] : found_) follow_.emplace(b, computed_from_rows(reference, {{b}, last.tokens}));
    leave_out_what_goes_on_whole();
    leave_out_what_follows_from_wrong_shapes();
  }

  const std::map<size_t, LastToken>& found() const { return found_; }

 private:
  // A tensor of another shape that the port goes on from in full is a fault.
  void leave_out_what_goes_on_whole() {
    const int64_t tokens = found_.rbegin()->second.tokens;
    std::vector<bool> in_full(pairs_.size(), false);  // something after it has every token
    for (size_t b = pairs_.size(); b-- > 0;) {
      const auto last = found_.find(b);
      if (pairs_[b] == nullptr || (last != found_.end() && last->second.tokens == tokens && !in_full[b])) continue;
      if (last != found_.end()) found_.erase(last);
      for (const size_t a : before_[b])
        if (const auto rows = follow_.find(a); rows == follow_.end() || rows->second[b]) in_full[a] = true;
    }
  }

  // A port that ran one sample of a batch has one row everywhere.
  void leave_out_what_follows_from_wrong_shapes() {
    for (size_t b = 0; b < pairs_.size(); ++b) {
      if (std::none_of(before_[b].begin(), before_[b].end(), [&](size_t a) { return wrong_.contains(a); })) continue;
      if (found_.erase(b) > 0) wrong_.insert(b);
    }
  }

  std::vector<const PortPair*> pairs_;  // by boundary
  std::vector<std::vector<size_t>> before_;
  std::map<size_t, LastToken> found_;           // by boundary
  std::map<size_t, std::vector<bool>> follow_;  // of these: what is computed from more than the last row
  std::set<size_t> wrong_;                      // pairs of other shapes
};

}  // namespace

std::optional<LastRows> last_tokens_by_name(const Program& reference, std::vector<CandidateTensor>& tensors,
                                            const std::vector<PortPair>& pairs, std::vector<std::string>& notes) {
  const std::map<size_t, LastToken> found = LastTokens(reference, tensors, pairs).found();
  if (found.empty()) return std::nullopt;
  LastRows last{{}, found.begin()->second.tokens};
  std::vector<std::string> names;
  for (const auto& [b, row] : found) {
    last.first.insert(b);
    CandidateTensor& tensor = tensors[row.candidate];
    names.push_back(tensor.path.empty() ? "(result)" : tensor.path);
    if (!row.without_axis) continue;
    tensor.shape.insert(tensor.shape.begin() + row.axis, 1);
    tensor.load = [load = tensor.load, axis = row.axis] { return load().unsqueeze(axis); };
  }
  notes.push_back(
      fmt::format("the port has the last of {} tokens alone in {}: the reference's last row is compared there",
                  last.tokens, fmt::join(names, ", ")));
  return last;
}

}  // namespace parity
