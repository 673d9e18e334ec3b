#include "jobs/pairs_map.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/plain.hpp"
#include "core/precision.hpp"
#include "core/shell.hpp"
#include "jobs/call_rules.hpp"
#include "jobs/map_rules.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

// A point of the reference, or a tensor of the candidate.
struct NamedPlace {
  std::string path;
  int call = 0;
  std::string what;    // "[1, 12, 64] fp32"
  int64_t value = -1;  // places of one value have one counterpart; -1: of its own
};

// A pair as a rule would say it.
struct SavedPair {
  std::string path, candidate, steps, witnesses;
  int call = 0, candidate_call = 0;
  bool moved = false;
};

std::string what(at::IntArrayRef shape, const std::string& dtype) {
  return fmt::format("[{}] {}", fmt::join(shape, ", "), dtype);
}

// A rule may take a part of what another has in `split(…)` alone (pair/port_pairing.cpp).
Layout in_equal_parts(Layout layout, const std::vector<int64_t>& shape) {
  if (!layout.slice) return layout;
  const auto [axis, begin, length] = *layout.slice;
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t whole = shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  if (whole % length != 0 || begin % length != 0) return layout;
  layout.slice.reset();
  layout.split = {axis, begin / length, whole / length};
  return layout;
}

// The axis of `made` that is one of `given`, taken over whole, the last before those that are taken apart or put
// together: tokens, mostly, whose number is another one in another run. -1: none.
int64_t whole_axis(const std::vector<int64_t>& given, const std::vector<int64_t>& made) {
  int64_t last = -1, before = -1;
  size_t next = 0;
  for (const int64_t n : given) {
    if (n == 1) continue;
    while (next < made.size() && made[next] == 1) ++next;
    if (next == made.size() || made[next] != n) return last;
    before = std::exchange(last, static_cast<int64_t>(next++));
  }
  return before;  // all are whole: features come last
}

// Of one path's calls: the steps of each, which say -1 for the axis that whole_axis finds in any of them.
void open_sizes(std::vector<std::pair<Layout, std::vector<int64_t>>>& calls) {
  const auto open = [&](std::vector<int64_t> Layout::*sizes, auto given) {
    int64_t axis = -1;
    for (const auto& [layout, shape] : calls) axis = std::max(axis, whole_axis(given(layout, shape), layout.*sizes));
    for (auto& [layout, shape] : calls)
      if (axis >= 0 && axis < std::ssize(layout.*sizes)) (layout.*sizes)[static_cast<size_t>(axis)] = -1;
  };
  open(&Layout::reshape, [](Layout before, const std::vector<int64_t>& shape) {
    before.reshape.clear();
    return before.fit_reference(at::zeros({}).expand(shape)).tensor.sizes().vec();
  });
  open(&Layout::view, [](Layout before, const std::vector<int64_t>& shape) {
    before.view.clear(), before.reshape.clear(), before.permutation.clear();
    return before.fit_reference(at::zeros({}).expand(shape)).tensor.sizes().vec();
  });
}

class PairsMap {
 public:
  PairsMap(const Sides& sides, const std::vector<OpResult>& rows) : sides_(sides) {
    for (const CandidateTensor& t : sides.candidate.tensors) known_.emplace(t.path, t.call);
    sides.replayable() ? take_pairing() : take_rows(rows);
    for (const SavedPair& pair : pairs_) {
      if (!by_path_.contains(pair.path)) order_.push_back(pair.path);
      by_path_[pair.path].push_back(&pair);
    }
  }

  std::string text() {
    for (const std::string& path : order_) choose(path);
    std::string out = fmt::format(
        "# Written by: parity-check compare {} {} --save-map FILE\n"
        "# For: parity-check compare REF CAND --map FILE. {} of {} paired names need a rule, the others are equal:\n",
        plain(shell_word(sides_.reference.file.string())), plain(shell_word(sides_.candidate.file.string())),
        rules_.size() + by_call_, by_path_.size());
    for (const std::string& rule : generalised(rules_, others_, [this](const auto&reference, const auto&target) {
           return settled_.contains(reference) || taken_or_free(reference, target.candidate);
         }))
      out += rule + "\n";
    for (const std::string& rule : call_rules(call_pairs_, other_calls_, [this](const std::string&name, int call) {
           return known_.contains({name, call});
         }))
      out += rule + "\n";
    for (const std::string& line : left_out_) out += "# no rule, and looked for anew: " + plain(line) + "\n";
    return out + unpaired_text() + unmatched_text();
  }

 private:
  void take_pairing() {
    const Program& program = sides_.reference.program;
    std::set<size_t> paired;
    std::set<int64_t> values;
    std::map<std::string, std::vector<std::pair<Layout, std::vector<int64_t>>>> layouts;
    for (const PortPair& pair : sides_.pairing.pairs) {
      const CandidateTensor& t = sides_.candidate.tensors[pair.candidate];
      layouts[program.boundaries[pair.boundary].path].emplace_back(in_equal_parts(pair.layout, t.shape), t.shape);
    }
    for (auto& [path, calls] : layouts) open_sizes(calls);
    std::map<std::string, size_t> written;
    for (const PortPair& pair : sides_.pairing.pairs) {
      const Boundary& b = program.boundaries[pair.boundary];
      const CandidateTensor& t = sides_.candidate.tensors[pair.candidate];
      paired.insert(pair.boundary), values.insert(b.value.id);
      pairs_.push_back({b.path, t.path, steps_text(layouts.at(b.path)[written[b.path]++].first), pair.evidence, b.call,
                        t.call, pair.moved || !pair.goes_on});
    }
    for (size_t i = 0; i < program.boundaries.size(); ++i) {
      const Boundary& b = program.boundaries[i];
      if (paired.contains(i) || !b.comparable) continue;
      others_.push_back(b.path), other_calls_.emplace_back(b.path, b.call);
      if (!values.contains(b.value.id))
        unpaired_.push_back({b.path, b.call, what(b.value.shape, short_dtype_name(b.value.dtype)), b.value.id});
    }
    for (const size_t c : sides_.pairing.unmatched) add_unmatched(sides_.candidate.tensors[c]);
  }

  void take_rows(const std::vector<OpResult>& rows) {
    std::set<std::pair<std::string, int>> used;
    for (const OpResult& row : rows) {
      if (row.shape.empty() && row.candidate_path.empty() && row.tensor_dtype.empty())
        continue;  // of a whole recording
      if (row.candidate_path.empty()) {
        unpaired_.push_back({row.path, row.call, what(row.shape, row.tensor_dtype)});
        others_.push_back(row.path), other_calls_.emplace_back(row.path, row.call);
        continue;
      }
      const PairedBy by = row.paired_by.value_or(PairedBy{"path", 1, "", "", row.call});
      pairs_.push_back(
          {row.path, row.candidate_path, by.steps.empty() ? "" : " " + by.steps, by.witnesses, row.call, by.call});
      used.emplace(row.candidate_path, by.call);
    }
    for (const CandidateTensor& t : sides_.candidate.tensors)
      if (!used.contains({t.path, t.call})) add_unmatched(t);
  }

  void add_unmatched(const CandidateTensor& t) {
    unmatched_.push_back({t.path, t.call, what(t.shape, short_dtype_name(t.dtype))});
  }

  // Could this target take a tensor that the reference's name has not got in this run?
  bool taken_or_free(const std::string& reference, const std::string& candidate) const {
    return std::any_of(other_calls_.begin(), other_calls_.end(), [&](const auto& other) {
      return other.first == reference && known_.contains({candidate, other.second});
    });
  }

  // One rule for all calls of a path, one for each, or why there is none.
  void choose(const std::string& path) {
    const std::vector<const SavedPair*>& calls = by_path_.at(path);
    const SavedPair& first = *calls.front();
    const auto each = [&](auto test) { return std::all_of(calls.begin(), calls.end(), test); };
    if (each([&](auto* p) { return p->candidate == path && p->steps.empty() && p->witnesses.starts_with("path"); })) {
      settle(path);
      return;
    }
    const bool shared = first.steps.find("slice(") != std::string::npos && !sliced_.insert(first.candidate).second;
    const auto can_be_written = [](const std::string& name) { return writable(name) || name.empty(); };
    const char* why = !each([](auto* p) { return !p->moved; }) ? "it has another value's name"
                      : shared                                 ? "unequal parts of one tensor"
                      : !can_be_written(path) || !each([&](auto* p) { return can_be_written(p->candidate); })
                          ? "no map file can hold such a name"
                          : nullptr;
    const bool alike = each([&](auto* p) {
      return p->candidate == first.candidate && p->steps == first.steps && p->call == p->candidate_call;
    });
    if (why == nullptr && alike && !taken_or_free(path, first.candidate)) {
      rules_.push_back({quoted_name(path), quoted_name(first.candidate), first.steps});
      return;
    }
    if (why == nullptr) {
      for (const SavedPair* p : calls)
        call_pairs_.push_back({path, p->candidate, p->steps, p->call, p->candidate_call});
      ++by_call_;
    } else {
      for (const SavedPair* p : calls)
        left_out_.push_back(fmt::format("{} call {} = {} call {}{} ({})", quoted_name(path), p->call,
                                        quoted_name(p->candidate), p->candidate_call, p->steps, why));
    }
    settle(path);
  }

  void settle(const std::string& path) { settled_.insert(path), others_.push_back(path); }

  // Modules' results first: what a port has most likely. One line a value, as its counterpart settles all its names.
  std::string unpaired_text() {
    std::stable_partition(unpaired_.begin(), unpaired_.end(), [](const NamedPlace& p) { return !is_op_path(p.path); });
    std::set<int64_t> shown;
    std::vector<NamedPlace> lines;
    for (const NamedPlace& p : unpaired_)
      if (p.value < 0 || shown.insert(p.value).second) lines.push_back(p);
    return block(lines,
                 "points of the reference that could be paired; with a candidate's name for the ?, and the # "
                 "taken away, each is a rule",
                 " = ?  # ");
  }

  std::string unmatched_text() const {
    return block(unmatched_, "tensors of the candidate without a reference", "  # ");
  }

  static std::string block(const std::vector<NamedPlace>& places, const char* title, const char* between) {
    if (places.empty()) return "";
    std::map<std::string, int> calls;
    for (const NamedPlace& p : places) ++calls[p.path];
    std::string out = fmt::format("\n# {} {}:\n", calls.size(), title);
    for (const NamedPlace& p : places)
      if (const auto here = calls.find(p.path); here != calls.end()) {
        out += fmt::format("# {}{}{}{}\n", plain(quoted_name(p.path)), between, p.what,
                           here->second > 1 ? fmt::format(", {} calls", here->second) : "");
        calls.erase(here);
      }
    return out;
  }

  const Sides& sides_;
  std::vector<SavedPair> pairs_;
  std::map<std::string, std::vector<const SavedPair*>> by_path_;
  std::set<std::pair<std::string, int>> known_;  // the candidate's names and calls
  std::vector<std::string> order_, others_, left_out_;
  std::vector<std::pair<std::string, int>> other_calls_;  // the reference's without a counterpart
  std::set<std::string> settled_, sliced_;  // paths that no rule may reach; tensors that a rule slices already
  std::vector<NamedPlace> unpaired_, unmatched_;
  std::vector<MapRule> rules_;
  std::vector<CallPair> call_pairs_;  // of paths whose calls need a rule each
  size_t by_call_ = 0;                // so many paths
};

}  // namespace

std::string pairs_map(const Sides& sides, const std::vector<OpResult>& rows) { return PairsMap(sides, rows).text(); }

}  // namespace parity
