// What a value is computed from, along the recorded ops, with memory shared between views and written in place.
#include <algorithm>
#include <iterator>

#include "trace/flow.hpp"

namespace parity {
namespace {

using Sources = std::vector<size_t>;  // marked boundaries (or ops), ascending

void merge(Sources& into, const Sources& more) {
  Sources all;
  std::set_union(into.begin(), into.end(), more.begin(), more.end(), std::back_inserter(all));
  into = std::move(all);
}

// Which marked boundaries each value was directly computed from; with `ops`, which ops it was computed by last, and by
// which each of these was preceded since those boundaries. A value keeps its own answer until its memory is written to
// through another name; from then on it has the answer of the whole memory (more than necessary, never less).
class Tracker {
 public:
  explicit Tracker(const Flow& flow, bool ops = false) : flow_(flow), ops_(ops) {}

  Sources read(int64_t id) const {
    const Memory& memory = memory_of(id);
    const auto own = own_.find(id);
    return own != own_.end() && own->second.version == memory.version ? own->second.sources : memory.sources;
  }

  void run(const Op& op, const OpFlow& flow, int index) {
    Sources all, others;  // of everything read; of what is read but not written
    for (const int64_t id : flow.reads) {
      merge(all, read(id));
      if (std::find(flow.writes.begin(), flow.writes.end(), id) == flow.writes.end()) merge(others, read(id));
    }
    const bool overwrites = op.kind == "copy_" || op.kind == "fill_" || op.kind == "zero_";
    if (ops_) {
      before_.push_back(overwrites && flow.fresh.empty() ? overwritten(flow, others, all) : all);
      all = others = {static_cast<size_t>(index)};
    }
    for (const int64_t id : flow.writes) write(id, overwrites ? others : all, overwrites);
    for (const int64_t id : flow.fresh) {
      if (flow.base < 0) memories_[id].sources = memories_[id].makers = all;
      own_[id] = {all, memory_of(id).version};
    }
  }

  // All ops that lead to these.
  Sources with_all_before(const Sources& last) const {
    std::unordered_set<size_t> seen(last.begin(), last.end());
    Sources found = last;
    for (size_t i = 0; i < found.size(); ++i)
      for (const size_t op : before_[found[i]])
        if (seen.insert(op).second) found.push_back(op);
    std::sort(found.begin(), found.end());
    return found;
  }

  // A leaf that lies in memory that is known already holds what is there at its first use.
  void alias(int64_t id, int64_t base) { own_[id] = {read(base), memory_of(id).version}; }

  // From here on `id` is what boundary b says. `everywhere`: also under its other names, since in-place ops write to
  // its memory.
  void cut(int64_t id, size_t b, bool everywhere) {
    Memory& memory = memory_of(id);
    const Sources source = ops_ ? Sources() : Sources{b};
    merge(memory.sources, source);
    if (everywhere) ++memory.version;
    memory.makers.clear();
    own_[id] = {source, memory.version};
  }

 private:
  struct Memory {
    Sources sources;
    int version = 0;  // counts writes
    Sources makers;   // the op that made it; none where a marked boundary did
  };
  struct Answer {
    Sources sources;
    int version = 0;  // of the memory when it was right
  };

  int64_t root(int64_t id) const { return flow_.root.at(id); }
  Memory& memory_of(int64_t id) { return memories_[root(id)]; }
  const Memory& memory_of(int64_t id) const {
    static const Memory untouched;
    const auto found = memories_.find(root(id));
    return found == memories_.end() ? untouched : found->second;
  }

  // What an op needs that overwrites: a whole memory must be there, of one that it writes to in part (through a view)
  // the rest is still read.
  Sources overwritten(const OpFlow& flow, const Sources& others, const Sources& all) const {
    Sources needed = others;
    for (const int64_t id : flow.writes) {
      if (id != root(id)) return all;
      merge(needed, memory_of(id).makers);
    }
    return needed;
  }

  void write(int64_t id, const Sources& sources, bool overwrites) {
    Memory& memory = memory_of(id);
    ++memory.version;
    if (overwrites && id == root(id)) memory.sources.clear();
    merge(memory.sources, sources);
    own_[id] = {sources, memory.version};
  }

  const Flow& flow_;
  const bool ops_;
  std::unordered_map<int64_t, Memory> memories_;  // by root
  std::unordered_map<int64_t, Answer> own_;       // by value
  std::vector<Sources> before_;                   // by op, when asked for ops
};

std::vector<Sources> sources_of(const Program& program, const std::vector<bool>& marked, bool of_ops) {
  const Flow flow = analyse_flow(program);
  Tracker tracker(flow, of_ops);
  std::vector<Sources> sources(program.boundaries.size());
  size_t b = 0, leaf = 0;
  const int end = static_cast<int>(program.ops.size());
  for (int position = 0; position <= end; ++position) {
    for (; leaf < program.leaves.size() && program.leaves[leaf].position == position; ++leaf)
      if (program.leaves[leaf].base >= 0) tracker.alias(program.leaves[leaf].value.id, program.leaves[leaf].base);
    for (; b < program.boundaries.size() && program.boundaries[b].position == position; ++b) {
      const int64_t id = program.boundaries[b].value.id;
      if (!of_ops)
        sources[b] = tracker.read(id);
      else if (marked[b])
        sources[b] = tracker.with_all_before(tracker.read(id));
      if (marked[b]) tracker.cut(id, b, flow.written_from(id, 0));
    }
    if (position < end) tracker.run(program.ops[position], flow.ops[position], position);
  }
  return sources;
}

}  // namespace

std::vector<std::vector<size_t>> Program::marked_ancestors(const std::vector<bool>& marked) const {
  return sources_of(*this, marked, false);
}

std::vector<std::vector<size_t>> Program::ops_since(const std::vector<bool>& marked) const {
  return sources_of(*this, marked, true);
}

std::vector<bool> Program::covered_by(const std::vector<bool>& marked) const {
  const auto direct = marked_ancestors(std::vector<bool>(boundaries.size(), true));
  // The same value under another name (an op's result that is its module's output; an encoder's that the model returns)
  // is the same evidence, at the same moment where its memory is written to.
  const Flow flow = analyse_flow(*this);
  const auto key = [&](const Boundary& b) {
    return std::pair(flow.written_from(b.value.id, 0) ? b.position : -1, b.value.id);
  };
  std::map<std::pair<int, int64_t>, std::vector<size_t>> same;
  for (size_t b = 0; b < boundaries.size(); ++b) same[key(boundaries[b])].push_back(b);
  std::vector<bool> covered = marked;
  for (size_t b = boundaries.size(); b-- > 0;) {
    if (!covered[b]) continue;
    for (const size_t twin : same[key(boundaries[b])]) covered[twin] = true;
    for (const size_t ancestor : direct[b]) covered[ancestor] = true;
  }
  return covered;
}

}  // namespace parity
