#include "jobs/likely_changes.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/findings.hpp"
#include "jobs/limits.hpp"
#include "jobs/variant_plan.hpp"
#include "trace/first_order.hpp"

namespace parity {
namespace {

constexpr uint64_t kSketchSeed = 20261122;

using Parts = std::vector<double>;  // a change's part along the difference (of norm 1), then along random signs

// "h.5.mlp.act/mul.1" -> "h.*.mlp.act/mul.1"
std::string in_every_layer(const std::string& path) {
  std::string out;
  const size_t op = std::min(path.rfind('/'), path.size());
  for (size_t i = 0; i < path.size();) {
    const bool begins = i == 0 || path[i - 1] == '.' || path[i - 1] == ' ';
    size_t end = i;
    while (end < op && path[end] >= '0' && path[end] <= '9') ++end;
    if (begins && end > i && (end == op || path[end] == '.')) {
      out += '*';
      i = end;
    } else {
      out += path[i++];
    }
  }
  return out;
}

// cos^2 with the difference. The squared norm of what a change does at the end is the mean square of its parts along
// random signs.
double along(const Parts& sketch, const FaultHypothesis& h) {
  double squared = 0;
  for (size_t r = 1; r < sketch.size(); ++r) squared += sketch[r] * sketch[r] / static_cast<double>(sketch.size() - 1);
  if (!(squared > 0) || !std::isfinite(squared) || (h.fixed_amplitude && !(sketch[0] > 0))) return 0;
  return sketch[0] * sketch[0] / squared;
}

std::vector<std::optional<Parts>> sketches_of(const Dump& dump, const Program& program, const Stretch& stretch,
                                              std::vector<Deviation> changes) {
  FirstOrderTask task;
  task.part = std::make_shared<ProgramPart>(ProgramPart{stretch.ops, {stretch.boundary}, {}});
  task.given = stretch.given;
  const at::Tensor difference = at::nan_to_num(raised(stretch.value) - raised(stretch.computed[kRecorded]), 0, 0, 0);
  task.directions.push_back((difference / difference.norm()).to(at::kFloat));
  at::Generator random = at::detail::createCPUGenerator(kSketchSeed);
  const at::TensorOptions floats(at::kFloat);
  for (int i = 0; i < kSketches; ++i)
    task.directions.push_back(at::randint(0, 2, difference.sizes(), random, floats).mul_(2).sub_(1));
  for (Deviation& change : changes) change.lane = 0;
  return first_order(dump, program, task, changes);
}

// The same change at the same place of several layers.
StretchChange together(const std::vector<size_t>& members, const std::vector<StretchChange>& logic,
                       const std::vector<std::optional<Parts>>& sketches) {
  StretchChange all = logic[members.front()];
  all.change.place = fmt::format("{} ({} places)", in_every_layer(all.change.place), members.size());
  ++all.change.rank;
  Parts sum(sketches[members.front()]->size());
  for (const size_t m : members) {
    for (size_t r = 0; r < sum.size(); ++r) sum[r] += (*sketches[m])[r];
    const auto& rewrites = logic[m].change.deviation.rewrites;
    all.change.deviation.rewrites.insert(rewrites.begin(), rewrites.end());
    all.work = std::max(all.work, logic[m].work);
  }
  all.along = along(sum, all.change);
  return all;
}

}  // namespace

LikelyChanges likely_changes(const Dump& dump, const Program& program, const Stretch& stretch,
                             std::vector<StretchChange> logic, const std::vector<Deviation>& deviations) {
  const auto sketches = sketches_of(dump, program, stretch, deviations);
  LikelyChanges found;
  std::map<std::string, std::vector<size_t>> layers;
  for (size_t i = 0; i < logic.size(); ++i) {
    if (!sketches[i]) continue;
    ++found.estimated;
    logic[i].estimated = true;
    logic[i].along = along(*sketches[i], logic[i].change);
    found.changes.push_back(logic[i]);
    layers[fmt::format("{}: {} at {}", logic[i].change.fault, logic[i].change.what,
                       in_every_layer(logic[i].change.place))]
        .push_back(i);
  }
  for (const auto& [name, members] : layers)
    if (members.size() > 1) found.changes.push_back(together(members, logic, sketches));
  std::erase_if(found.changes, [](const StretchChange& choice) { return !(choice.along > kSearch.along); });
  std::stable_sort(found.changes.begin(), found.changes.end(),
                   [](const StretchChange& a, const StretchChange& b) { return a.along > b.along; });
  for (size_t i = 0; i < logic.size(); ++i)
    if (!sketches[i]) found.changes.push_back(std::move(logic[i]));
  return found;
}

}  // namespace parity
