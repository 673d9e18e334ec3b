#include "jobs/live_judge.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "calls/parts_to_come.hpp"
#include "jobs/port_job.hpp"
#include "pair/layout_advice.hpp"

namespace parity {
namespace {

// One boundary alone is explained; of the others the values are gone on from.
class OneUnit final : public WorkUnits {
 public:
  explicit OneUnit(int64_t boundary) : boundary_(boundary) {}

  std::optional<OpResult> row;

  void expect(size_t) override {}
  std::vector<int64_t> take(const std::vector<int64_t>& together) override {
    return std::vector<int64_t>(static_cast<size_t>(std::ranges::count(together, boundary_)), boundary_);
  }
  void finished(const WorkUnit& unit) override { row = unit.row; }
  std::optional<WorkUnit> find(int64_t index) override {  // nobody computes them, and nobody waits for them
    WorkUnit unit;
    unit.row.index = index;
    return unit;
  }
  std::vector<int64_t> arrived() override { return {}; }
  bool over() override { return row.has_value(); }
  bool reports() const override { return false; }

 private:
  const int64_t boundary_;
};

// Pairs that were guessed may turn out otherwise; axes that are merged may be what a map or all others say.
bool is_certain(const PortPair& pair, const Program& program, const std::vector<CandidateTensor>& tensors) {
  const auto &whole = program.boundaries[pair.boundary].value.shape, &shape = tensors[pair.candidate].shape;
  const bool merged = whole != shape && pair.layout.as_it_is() && differ_by_merged_axes(whole, shape);
  return pair.confidence >= 1 && !merged;
}

}  // namespace

std::optional<OpResult> LiveJudge::first_divergence() {
  const Dump& dump = *sides_.reference.dump;
  const Program &program = sides_.reference.program, *own = &sides_.candidate.program;
  const NameMap* map = sides_.map ? &*sides_.map : nullptr;
  const auto tensors = without_parts_to_come(program, sides_.candidate.tensors,
                                             pair_by_name(program, sides_.candidate.tensors, own, map).pairs);
  if (tensors.size() == std::exchange(judged_, tensors.size())) return std::nullopt;
  const PortPairing pairing = pair_recordings(dump, program, tensors, own, map);
  if (pairing.pairs.empty()) return std::nullopt;
  std::set<int64_t> certain;
  for (const PortPair& pair : pairing.pairs)
    if (is_certain(pair, program, tensors)) certain.insert(static_cast<int64_t>(pair.boundary));
  PortJobOptions job;
  job.layer = layer_;
  job.diagnose = false;
  job.go_on = [&](const JobResult& so_far) { return so_far.rows.size() < pairing.pairs.size(); };
  Report report;
  report.ops = run_port_job(dump, program, tensors, pairing, job).rows;
  std::erase_if(report.ops,
                [&](const OpResult& row) { return !certain.contains(row.index) || right_.contains(row.index); });
  while (const OpResult* first = parity::first_divergence(report)) {
    OneUnit unit(first->index);
    PortJobOptions explained;
    explained.units = &unit;
    run_port_job(dump, program, tensors, pairing, explained);
    Report alone;
    alone.ops.push_back(unit.row.value_or(*first));
    if (parity::first_divergence(alone) != nullptr) return alone.ops.front();
    right_.insert(first->index);
    std::erase_if(report.ops, [&](const OpResult& row) { return right_.contains(row.index); });
  }
  return std::nullopt;
}

}  // namespace parity
