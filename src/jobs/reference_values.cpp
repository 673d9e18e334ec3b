#include "jobs/reference_values.hpp"

#include <algorithm>
#include <set>

#include "measure/measure.hpp"
#include "trace/settings.hpp"

namespace parity {
namespace {

void widen(NullRun& null, const at::Tensor& recorded, const at::Tensor& computed) {
  const Stats s = measure_sums(recorded, computed);
  null.equal_share = std::min(null.equal_share.value_or(1), equal_share(s));
  null.rel_l2 = std::max(null.rel_l2.value_or(0), s.rel_l2.value_or(0));
  ++null.runs;
}

// One more teacher-forced replay with other kernels; only the null is kept.
void widen_null(const Dump& dump, const Program& program, ReferenceValues& reference) {
  replay(dump, program, replay_options(Precision::recorded),
         [&](size_t b, const at::Tensor& computed) -> std::optional<at::Tensor> {
           const auto recorded = reference.values.find(b);
           if (recorded == reference.values.end()) return std::nullopt;
           const auto null = reference.null.find(b);
           if (null != reference.null.end()) widen(null->second, recorded->second, computed);
           return recorded->second;
         });
}

}  // namespace

ReplayOptions replay_options(Precision precision) {
  ReplayOptions options;
  options.precision = precision;
  options.recorded_inputs = true;
  return options;
}

bool bitwise_equal(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && equal_share(measure_sums(a, b)) == 1;
}

ReferenceValues recorded_values(const Dump& dump, const Program& program, const std::vector<bool>& marked) {
  ReferenceValues reference;
  const ReplayReport report = replay(dump, program, replay_options(Precision::recorded),
                                     [&](size_t b, const at::Tensor& computed) -> std::optional<at::Tensor> {
                                       if (!marked[b]) return std::nullopt;
                                       const Value& value = program.boundaries[b].value;
                                       if (value.key.empty()) {
                                         reference.values[b] = computed.detach().clone();
                                         return std::nullopt;
                                       }
                                       const at::Tensor recorded = stored_value(dump, value);
                                       reference.values[b] = recorded;
                                       const bool equal = bitwise_equal(recorded, computed);
                                       widen(reference.null[b], recorded, computed);
                                       if (equal) return std::nullopt;
                                       reference.same_machine[b] = computed.detach().clone();
                                       return recorded;
                                     });
  reference.opaque = report.opaque;
  if (!reference.same_machine.empty()) {
    const OtherKernels one_thread(true, 1);
    widen_null(dump, program, reference);
    const OtherKernels plain(false, 1);
    widen_null(dump, program, reference);
  }
  return reference;
}

ReferenceValues replayed_values(const Dump& dump, const Program& program, const std::vector<bool>& marked,
                                Precision precision) {
  ReferenceValues reference;
  const ReplayReport report = replay(dump, program, replay_options(precision),
                                     [&](size_t b, const at::Tensor& computed) -> std::optional<at::Tensor> {
                                       if (marked[b]) reference.values[b] = computed.detach().clone();
                                       return std::nullopt;
                                     });
  reference.opaque = report.opaque;
  reference.lowered = report.lowered;
  return reference;
}

std::map<size_t, at::Tensor> fp64_on_given(const Dump& dump, const Program& program,
                                           const std::map<size_t, at::Tensor>& given) {
  std::map<size_t, at::Tensor> computed_values;
  replay(dump, program, replay_options(Precision::fp64),
         [&](size_t b, const at::Tensor& computed) -> std::optional<at::Tensor> {
           const auto value = given.find(b);
           if (value == given.end()) return std::nullopt;
           computed_values[b] = computed.detach().clone();
           return value->second;
         });
  return computed_values;
}

}  // namespace parity
