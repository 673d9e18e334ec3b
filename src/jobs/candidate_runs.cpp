#include "jobs/candidate_runs.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace parity {
namespace {

void forward_all(PortedModel& model, const Program& program, Probe& probe) {
  const at::NoGradGuard no_grad;
  const auto calls =
      std::count_if(program.calls.begin(), program.calls.end(), [](const ModuleCall& c) { return c.path.empty(); });
  for (int call = 0; call < calls; ++call) model.forward(call, probe);
}

}  // namespace

RecordedPoints record_points(PortedModel& model, const Program& program) {
  RecordedPoints points;
  auto probe = recording_probe(points);
  forward_all(model, program, probe);
  return points;
}

Values run_forced(PortedModel& model, const Program& program, const Pairing& pairing, const Values& reference,
                  double noise, uint64_t draw) {
  Values got;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(20240229 + draw);
  CallbackProbe probe([&](const PointKey& point, const at::Tensor& value) -> at::Tensor {
    const Pair* pair = pairing.find(point);
    if (!pair) return value;
    got[pair->boundary] = pair->layout.to_reference(value).clone();
    const auto teacher = reference.find(pair->boundary);
    if (teacher == reference.end()) return value;
    const at::Tensor given = pair->layout.to_candidate(teacher->second);
    // In the candidate's own dtype and memory layout, so that its next kernel is its own.
    at::Tensor next =
        given.sizes() == value.sizes() ? at::empty_like(value).copy_(given) : given.to(value.scalar_type());
    if (noise != 0 && next.is_floating_point())
      next = next * (1 + noise * at::randn(next.sizes(), generator, next.options()));
    return next;
  });
  forward_all(model, program, probe);
  return got;
}

Values run_free(PortedModel& model, const Program& program, const Pairing& pairing) {
  Values got;
  CallbackProbe probe([&](const PointKey& point, const at::Tensor& value) -> at::Tensor {
    if (const Pair* pair = pairing.find(point)) got[pair->boundary] = pair->layout.to_reference(value).clone();
    return value;
  });
  forward_all(model, program, probe);
  return got;
}

}  // namespace parity
