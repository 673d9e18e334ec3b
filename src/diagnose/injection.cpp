#include "diagnose/injection.hpp"

#include <algorithm>

#include "trace/flow.hpp"
#include "trace/lanes.hpp"

namespace parity {
namespace {

constexpr size_t kCarriedAtOnce = 16;  // injections carried in one pass: bounds the memory

Deviation deviation_of(const Injection& injection) {
  Deviation deviation;
  deviation.rewrites[injection.op] = [&injection](OpCall& call) {
    Results results = call.run_again();
    at::Tensor& result = *results.at(injection.output);
    result = written_ids(call.op).empty() ? result + injection.error : result.add_(injection.error);
    return results;
  };
  return deviation;
}

}  // namespace

std::optional<Injection> injection_at(const Program& program, size_t boundary, const at::Tensor& error) {
  const int64_t id = program.boundaries[boundary].value.id;
  for (int i = program.boundaries[boundary].position - 1; i >= 0; --i)
    for (size_t j = 0; j < program.ops[i].outputs.size(); ++j)
      if (program.ops[i].outputs[j] && program.ops[i].outputs[j]->id == id) return Injection{boundary, i, j, error};
  return std::nullopt;
}

void carry(const Dump& dump, const Program& program, size_t root, std::vector<Injection>& injections,
           const std::function<void(size_t, const at::Tensor&)>& moved, const std::function<void(double)>& progress) {
  ReplayOptions exact;
  exact.precision = Precision::fp64;
  for (size_t first = 0, last = 0; first < injections.size(); first = last) {
    last = std::min(first + kCarriedAtOnce, injections.size());
    std::vector<size_t> started;  // deviation number -> injection
    const DeviationSource source = [&](int op) {
      std::vector<Deviation> deviations;
      for (size_t i = first; i < last; ++i) {
        if (injections[i].op != op) continue;
        started.push_back(i);
        deviations.push_back(deviation_of(injections[i]));
      }
      return deviations;
    };
    replay_in_step(
        dump, program, {exact},
        [&](const BoundaryEvent& event) -> Replacements {
          if (event.boundary != root) return {};
          for (const DeviatingValue& d : event.deviating)
            moved(started[d.deviation], at::nan_to_num(d.value - event.computed[0], 0, 0, 0));
          return {};
        },
        source);
    for (size_t i = first; i < last; ++i) injections[i].error.reset();
    progress(static_cast<double>(last) / static_cast<double>(injections.size()));
  }
}

}  // namespace parity
