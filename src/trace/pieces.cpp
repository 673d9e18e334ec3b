#include "trace/pieces.hpp"

namespace parity {
namespace {

class Cutter {
 public:
  Cutter(const Program& program, const Flow& flow, const ProgramPart& part, const std::map<int64_t, at::Tensor>& given)
      : flow_(flow), ops_(part.ops) {
    for (size_t k = 0; k < ops_.size(); ++k) {
      for (const int64_t id : flow.ops[ops_[k]].reads) read(id, k, given);
      for (const int64_t id : flow.ops[ops_[k]].fresh) born_[id] = k;
      for (const auto& output : program.ops[ops_[k]].outputs)
        if (output) bytes_[output->id] = size_of(*output);
    }
    for (const size_t b : part.boundaries) read(program.boundaries[b].value.id, ops_.size(), given);
  }

  std::vector<Piece> run(const std::vector<std::pair<size_t, size_t>>& spans, int64_t bytes) {
    weigh(spans);
    std::vector<size_t> cuts{0};
    int64_t made = 0;
    for (size_t k = 0; k < ops_.size(); ++k) {
      for (const int64_t id : flow_.ops[ops_[k]].fresh) made += bytes_[id];
      if (made < bytes || k + 1 == ops_.size()) continue;
      const size_t cut = best(cuts.back() + 1, k + 1, made >= 8 * bytes);
      if (cut == 0) continue;
      cuts.push_back(cut);
      made = 0;
      for (size_t j = cut; j <= k; ++j)
        for (const int64_t id : flow_.ops[ops_[j]].fresh) made += bytes_[id];
    }
    cuts.push_back(ops_.size());
    std::vector<Piece> pieces;
    for (size_t c = 0; c + 1 < cuts.size(); ++c)
      pieces.push_back({{ops_.begin() + static_cast<std::ptrdiff_t>(cuts[c]),
                         ops_.begin() + static_cast<std::ptrdiff_t>(cuts[c + 1])},
                        crossing(cuts[c]),
                        crossing(cuts[c + 1])});
    return pieces;
  }

 private:
  static int64_t size_of(const Value& value) {
    int64_t count = static_cast<int64_t>(c10::elementSize(value.dtype));
    for (const int64_t n : value.shape) count *= n;
    return count;
  }

  void read(int64_t id, size_t k, const std::map<int64_t, at::Tensor>& given) {
    if (given.contains(id)) return;
    if (const auto base = flow_.leaf_base.find(id); base != flow_.leaf_base.end()) return read(base->second, k, given);
    if (born_.contains(id)) last_[id] = k;
  }

  // Values made before op number `cut` of the part that it or a later one reads.
  std::vector<int64_t> crossing(size_t cut) const {
    std::vector<int64_t> ids;
    for (const auto& [id, last] : last_)
      if (born_.at(id) < cut && last >= cut) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  // What each cut costs: the bytes that cross, or why it must not be.
  void weigh(const std::vector<std::pair<size_t, size_t>>& spans) {
    weight_.assign(ops_.size() + 1, 0);
    forbidden_.assign(ops_.size() + 1, false);
    inside_.assign(ops_.size() + 1, 0);
    for (const auto& [id, last] : last_)
      for (size_t cut = born_.at(id) + 1; cut <= last && cut < ops_.size(); ++cut) {
        weight_[cut] += bytes_[id];
        if (flow_.written_from(id, static_cast<int>(ops_[cut]))) forbidden_[cut] = true;
      }
    for (const auto& [first, last] : spans)
      for (size_t cut = place(first) + 1; cut <= place(last) && cut < ops_.size(); ++cut) ++inside_[cut];
  }

  size_t place(size_t op) const { return std::lower_bound(ops_.begin(), ops_.end(), op) - ops_.begin(); }

  // The cheapest cut in [first, last], the latest of equals; 0: none is allowed.
  size_t best(size_t first, size_t last, bool through_spans) const {
    size_t found = 0;
    for (size_t cut = first; cut <= last; ++cut)
      if (!forbidden_[cut] && (through_spans || inside_[cut] == 0) && (found == 0 || weight_[cut] <= weight_[found]))
        found = cut;
    return found;
  }

  const Flow& flow_;
  const std::vector<size_t>& ops_;
  std::unordered_map<int64_t, size_t> born_, last_;  // by value: number of the op that makes it, that reads it last
  std::unordered_map<int64_t, int64_t> bytes_;
  std::vector<int64_t> weight_;
  std::vector<bool> forbidden_;
  std::vector<int> inside_;  // how many spans a cut would part
};

}  // namespace

std::vector<Piece> pieces_of(const Program& program, const Flow& flow, const ProgramPart& part,
                             const std::map<int64_t, at::Tensor>& given,
                             const std::vector<std::pair<size_t, size_t>>& spans, int64_t bytes) {
  return Cutter(program, flow, part, given).run(spans, bytes);
}

}  // namespace parity
