#include "trace/lanes.hpp"

#include <ATen/core/LegacyTypeDispatch.h>

#include <list>
#include <memory>

#include "core/error.hpp"
#include "trace/lane.hpp"
#include "trace/settings.hpp"
#include "trace/variant_run.hpp"

namespace parity {
namespace {

class InStep {
 public:
  InStep(const Dump& dump, const Program& program, const std::vector<ReplayOptions>& lanes, const EventVisitor& visit,
         const DeviationSource& source, const OpObserver& observer)
      : program_(program), visit_(visit), source_(source), observer_(observer), flow_(analyse_flow(program)) {
    for (const ReplayOptions& options : lanes) {
      lanes_.push_back(std::make_unique<Lane>(dump, program, flow_, options));
      if (options.begin != lanes.front().begin || options.end != lanes.front().end)
        throw Error("replays in step must run the same ops");
    }
    next_boundary_ = lanes_.front()->first_boundary();
  }

  std::vector<ReplayReport> run() {
    const int begin = lanes_.front()->options().begin, end = lanes_.front()->end();
    cross(begin);
    for (int i = 0; i < end; ++i) {
      if (i >= begin) start_variants(i);
      for (const auto& run : variants_) run->step(i);
      for (const auto& lane : lanes_)
        if (!lane->skips(i)) lane->step(i);
      if (observer_ && i >= begin) observer_(i, [&](int64_t id) { return lanes_.front()->get(id); });
      if (i >= begin) cross(i + 1);
      for (const auto& lane : lanes_)
        if (!lane->skips(i)) lane->release(i);
      for (const auto& run : variants_) run->release();
      variants_.remove_if([&](const auto& run) { return run->over(i); });
    }
    std::vector<ReplayReport> reports;
    for (const auto& lane : lanes_) reports.push_back(std::move(lane->report()));
    return reports;
  }

 private:
  void start_variants(int op) {
    if (!source_) return;
    for (Deviation& deviation : source_(op)) {
      Lane& lane = *lanes_.at(deviation.lane);
      variants_.push_back(std::make_unique<VariantRun>(started_++, std::move(deviation), program_, flow_, lane));
    }
  }

  void cross(int position) {
    const size_t end = lanes_.front()->end_boundary();
    for (; next_boundary_ < end && program_.boundaries[next_boundary_].position == position; ++next_boundary_) {
      begin_calls(position);
      if (!program_.boundaries[next_boundary_].value.nested) visit_one();
      for (const auto& lane : lanes_) lane->leave(next_boundary_);
    }
    begin_calls(position);
  }

  // Of the model itself, before op `position`: after every boundary that came before the call.
  void begin_calls(int position) {
    for (; next_call_ < program_.calls.size() && program_.calls[next_call_].begin <= position &&
           program_.calls[next_call_].boundary <= next_boundary_;
         ++next_call_) {
      const ModuleCall& call = program_.calls[next_call_];
      if (call.parent >= 0 || call.begin < position) continue;
      for (const auto& lane : lanes_)
        if (lane->options().recorded_inputs) lane->begin_call(call);
    }
  }

  void visit_one() {
    BoundaryEvent event{next_boundary_, {}, {}};
    for (const auto& lane : lanes_) event.computed.push_back(lane->at_boundary(next_boundary_));
    for (const auto& run : variants_)
      if (at::Tensor value = run->at_boundary(next_boundary_); value.defined())
        event.deviating.push_back({run->number(), std::move(value)});
    const Replacements replacements = visit_(event);
    for (size_t l = 0; l < lanes_.size() && l < replacements.size(); ++l) {
      if (!replacements[l]) continue;
      for (const auto& run : variants_)
        if (run->beside(*lanes_[l])) run->exchange(next_boundary_);
      if (!replacements[l]->is_same(event.computed[l])) lanes_[l]->exchange(next_boundary_, *replacements[l]);
    }
  }

  const Program& program_;
  const EventVisitor& visit_;
  const DeviationSource& source_;
  const OpObserver& observer_;
  Flow flow_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::list<std::unique_ptr<VariantRun>> variants_;
  size_t next_boundary_ = 0, next_call_ = 0, started_ = 0;
};

}  // namespace

std::vector<ReplayReport> replay_in_step(const Dump& dump, const Program& program,
                                         const std::vector<ReplayOptions>& lanes, const EventVisitor& visit,
                                         const DeviationSource& deviations, const OpObserver& observer) {
  // Recorded below autograd and autocast, so replayed below them.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const RecordedSettings settings(dump.provenance());
  return InStep(dump, program, lanes, visit, deviations, observer).run();
}

}  // namespace parity
