#include "jobs/row_details.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/dtype_kind.hpp"
#include "diagnose/cast_path.hpp"
#include "jobs/limits.hpp"
#include "judge/naming.hpp"
#include "measure/measure.hpp"

namespace parity {
namespace {

constexpr size_t kExplanations = 8;  // kept a row

}  // namespace

std::vector<ReplayOptions> lane_options() {
  std::vector<ReplayOptions> lanes(kLanes);
  lanes[kOracle].precision = lanes[kPerturbed].precision = Precision::fp64;
  for (size_t lane = kRecorded; lane <= kLastValid; ++lane)
    lanes[lane].arithmetic = static_cast<Arithmetic>(lane - kRecorded);
  for (size_t lane = 0; lane < kOwn; ++lane) lanes[lane].instead = kOwn;
  return lanes;
}

at::Tensor perturbed(const at::Tensor& value, size_t boundary) {
  if (!is_float(value.scalar_type())) return value;
  const at::Tensor wide = raised(value);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(boundary);
  return at::randn(wide.sizes(), generator, wide.options()).mul_(kPerturbation).add_(1).mul_(wide);
}

std::vector<Explanation> explanations(const std::vector<Finding>& found, const Thresholds& limits) {
  std::vector<Explanation> list;
  for (const Finding& f : found)
    list.push_back({f, f.gate, f.fit.amplitude, f.fit.sigma(), f.explained(), f.rest, f.null_amplitude,
                    detectable_amplitude(f, limits)});
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.explained > b.explained; });
  if (list.size() > kExplanations) list.resize(kExplanations);
  return list;
}

std::vector<DtypePath> cast_placements(const Program& program, const Segment& segment, const std::string& side,
                                       const at::Tensor& value, const BoundaryEvent& event,
                                       const std::vector<FaultHypothesis>& started) {
  const Boundary& boundary = program.boundaries[event.boundary];
  const at::ScalarType dtype = boundary.value.dtype;
  if (!segment.arithmetic || !is_float(dtype)) return {};
  DtypePath path{boundary.path, side, "", {placement("as recorded", event.computed[kRecorded], value, dtype)}};
  for (const DeviatingValue& d : event.deviating) {
    const FaultHypothesis& h = started[d.deviation];
    if (h.gate == Gate::dtype_path)
      path.candidates.push_back(placement(fmt::format("{}: {}", h.fault, h.detail()), d.value, value, dtype));
  }
  conclude(path, cast_path_of(program, segment));
  if (path.candidates.size() > kExplanations) path.candidates.resize(kExplanations);
  return {std::move(path)};
}

}  // namespace parity
