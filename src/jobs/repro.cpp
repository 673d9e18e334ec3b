#include "jobs/repro.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "measure/measure.hpp"
#include "trace/extract.hpp"
#include "trace/lanes.hpp"
#include "trace/machine.hpp"

namespace parity {
namespace {

enum RunIndex : size_t { kAskedRun, kKernelRun, kExactRun, kReorderedRun, kRuns };

at::Tensor comparable(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBool ? tensor.to(at::kByte) : tensor;
}

double distance(const at::Tensor& from, const at::Tensor& to) {
  return measure_sums(comparable(from), comparable(to)).rel_l2.value_or(0);
}

bool all_equal(const Stats& stats) { return equal_share(stats) == 1; }

class Runner {
 public:
  Runner(const Dump& dump, const Program& program, Precision precision, const ShareDone& progress)
      : dump_(dump), program_(program), precision_(precision), progress_(progress) {
    for (const auto& result : result_paths(dump, program)) results_.insert(result);
    repro_.same_kernels = other_kernels(dump.provenance()).empty();
  }

  Repro run() {
    std::vector<ReplayOptions> lanes(kRuns);
    lanes[kAskedRun].precision = precision_;
    lanes[kExactRun].arithmetic = Arithmetic::exact;
    lanes[kReorderedRun].arithmetic = Arithmetic::reordered;
    const auto visit = [&](const BoundaryEvent& event) -> Replacements {
      cross(event);
      return {};
    };
    const auto reports = replay_in_step(dump_, program_, lanes, visit, {}, done_by_op());
    repro_.opaque = reports[kAskedRun].opaque;
    repro_.executed =
        std::any_of(program_.ops.begin(), program_.ops.end(), [](const Op& op) { return op.opaque.empty(); });
    if (std::none_of(repro_.rows.begin(), repro_.rows.end(), [](const ReproRow& row) { return row.result; }))
      throw Error(fmt::format("{}: holds no recorded result to compare with; extract it again", dump_.file().string()));
    run_port();
    return std::move(repro_);
  }

 private:
  OpObserver done_by_op() const {
    if (!progress_) return nullptr;
    return [this](int op, const auto&) { progress_((op + 1) / static_cast<double>(program_.ops.size())); };
  }

  bool is_result(const Boundary& b) const { return results_.contains({b.path, b.call}); }

  void cross(const BoundaryEvent& event) {
    const Boundary& b = program_.boundaries[event.boundary];
    if (b.value.key.empty() || !(b.comparable || is_result(b))) return;
    ReproRow row{b.path, b.kind, b.call, b.value.dtype, b.value.shape, b.value.key, is_result(b), {}, 0, false};
    const auto& lanes = event.computed;
    row.stats = measure(comparable(dump_.value(b.value.key)), comparable(lanes[kAskedRun]));
    for (const size_t other : {kKernelRun, kExactRun, kReorderedRun})
      row.limit = std::max(row.limit, 2 * distance(lanes[kAskedRun], lanes[other]));
    row.limit += unit_roundoff(b.value.dtype);
    const bool bits = precision_ == Precision::recorded && repro_.same_kernels;
    const bool near =
        row.stats.special_mismatch == 0 && row.stats.difference_norm <= row.limit * row.stats.reference_norm;
    row.reproduced = all_equal(row.stats) || (!bits && near);
    if (row.result) repro_.reproduced = repro_.reproduced && row.reproduced;
    repro_.rows.push_back(std::move(row));
  }

  // The program on the port's own inputs, so that what it inherited is not held against it.
  void run_port() {
    const PortState port = port_state(dump_);
    if (port.outputs.empty()) return;
    std::vector<ReplayOptions> lanes(2);
    lanes[0].precision = Precision::fp64;
    for (ReplayOptions& lane : lanes) lane.given = port.inputs;
    replay_in_step(dump_, program_, lanes, [&](const BoundaryEvent& event) -> Replacements {
      const Boundary& b = program_.boundaries[event.boundary];
      const auto value = port.outputs.find(b.path);
      if (!is_result(b) || value == port.outputs.end()) return {};
      if (value->second.sizes() != event.computed[1].sizes())
        throw Error(fmt::format("{}: the port's value for '{}' has another shape than the reference's",
                                dump_.file().string(), b.path));
      repro_.port.push_back({b.path, measure(comparable(event.computed[1]), comparable(value->second)),
                             measure_against_oracle(comparable(event.computed[0]), comparable(event.computed[1]),
                                                    comparable(value->second)),
                             !port.inputs.empty()});
      return {};
    });
  }

  const Dump& dump_;
  const Program& program_;
  Precision precision_;
  const ShareDone& progress_;
  std::set<std::pair<std::string, int>> results_;
  Repro repro_;
};

}  // namespace

Repro run_again(const Dump& dump, const Program& program, Precision precision, const ShareDone& progress) {
  return Runner(dump, program, precision, progress).run();
}

}  // namespace parity
