#include "trace/lanes.hpp"

#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <list>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "trace/lane.hpp"
#include "trace/settings.hpp"
#include "trace/variant_run.hpp"

namespace parity {
namespace {

class InStep {
 public:
  InStep(const Dump& dump, const Program& program, const std::vector<ReplayOptions>& lanes, const EventVisitor& visit,
         const Variants& variants, const OpObserver& observer)
      : program_(program),
        visit_(visit),
        variants_(variants),
        observer_(observer),
        flow_(analyse_flow(program)),
        leaves_(dump, program, flow_) {
    for (const ReplayOptions& options : lanes) {
      lanes_.push_back(std::make_unique<Lane>(dump, program, flow_, leaves_, options));
      if (options.begin != lanes.front().begin || options.end != lanes.front().end ||
          options.part != lanes.front().part)
        throw Error("replays in step must run the same ops");
    }
    next_boundary_ = lanes_.front()->first_boundary();
    share_results();
  }

  std::vector<ReplayReport> run() {
    const int begin = lanes_.front()->options().begin, end = lanes_.front()->end();
    cross(begin);
    for (int i = 0; i < end; ++i) {
      if (i >= begin) start_variants(i);
      step(i);
      if (observer_ && i >= begin) observer_(i, [&](int64_t id) { return lanes_.front()->get(id); });
      if (i >= begin) cross(i + 1);
      for (const auto& lane : lanes_)
        if (!lane->skips(i)) lane->release(i);
      release_variants(i);
      leaves_.sweep();
    }
    std::vector<ReplayReport> reports;
    for (const auto& lane : lanes_) reports.push_back(std::move(lane->report()));
    return reports;
  }

 private:
  // Other valid arithmetics change few ops: what goes through the recorded kernels on the same memory is computed once.
  void share_results() {
    const auto plain = [](const ReplayOptions& o, Arithmetic a) {
      return o.precision == Precision::recorded && o.arithmetic == a && !o.differentiable;
    };
    const auto kernels = std::find_if(lanes_.begin(), lanes_.end(),
                                      [&](const auto& lane) { return plain(lane->options(), Arithmetic::kernel); });
    for (auto lane = kernels; lane != lanes_.end(); ++lane)
      if (lane != kernels && plain((*lane)->options(), (*lane)->options().arithmetic)) (*lane)->take_from(**kernels);
  }

  void start_variants(int op) {
    if (!variants_.start || lanes_.front()->skips(op)) return;
    for (Deviation& deviation : variants_.start(op)) {
      Lane& lane = *lanes_.at(deviation.lane);
      running_.push_back(std::make_unique<VariantRun>(started_++, std::move(deviation), program_, flow_, lane));
    }
  }

  // A replay's writes in place would change a variant run's arguments, so those go first. Elsewhere the replays do: a
  // variant run whose result is its replay's has ended.
  void step(int i) {
    const bool variants_first = !flow_.ops[i].writes.empty();
    if (variants_first) step_variants(i);
    step_lanes(i);
    if (!variants_first) step_variants(i);
  }

  void step_lanes(int i) {
    std::vector<std::pair<Lane*, std::string>> failed;
    for (const auto& lane : lanes_) {
      if (lane->skips(i)) continue;
      try {
        lane->step(i);
      } catch (const Error& error) {
        if (!lane->options().instead) throw;
        failed.emplace_back(lane.get(), error.what());
      }
    }
    for (const auto& [lane, problem] : failed) lane->take_results(i, *lanes_.at(*lane->options().instead), problem);
  }

  void step_variants(int i) {
    if (running_.empty() || lanes_.front()->skips(i) || (!variants_.worth.empty() && !variants_.worth[i])) return;
    for (auto run = running_.begin(); run != running_.end();) {
      bytes_ -= (*run)->bytes();
      (*run)->step(i);
      bytes_ += (*run)->bytes();
      ++run;
      while (bytes_ > variants_.most_bytes && !running_.empty()) {
        if (run != running_.end() && std::next(run) == running_.end()) run = running_.end();
        give_up_last();
      }
    }
  }

  void release_variants(int i) {
    for (const auto& run : running_) run->release();
    running_.remove_if([&](const auto& run) { return run->over(i); });
    for (const auto& lane : lanes_) lane->forget_dropped();
    bytes_ = 0;
    for (const auto& run : running_) bytes_ += run->bytes();
  }

  void give_up_last() {
    bytes_ -= running_.back()->bytes();
    if (variants_.give_up) variants_.give_up(running_.back()->number());
    running_.pop_back();
  }

  void cross(int position) {
    const size_t end = lanes_.front()->end_boundary();
    for (; next_boundary_ < end && program_.boundaries[next_boundary_].position == position; ++next_boundary_) {
      begin_calls(position);
      if (!lanes_.front()->visits(next_boundary_)) continue;
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
    for (const auto& run : running_)
      if (at::Tensor value = run->at_boundary(next_boundary_); value.defined())
        event.deviating.push_back({run->number(), std::move(value)});
    const Replacements replacements = visit_ ? visit_(event) : Replacements();
    event.deviating.clear();
    for (size_t l = 0; l < lanes_.size() && l < replacements.size(); ++l) {
      if (!replacements[l]) continue;
      for (const auto& run : running_)
        if (run->beside(*lanes_[l])) run->exchange(next_boundary_);
      // A replay's own value goes before the next one's copy comes: all of them beside each other were the peak.
      const at::Tensor own = std::exchange(event.computed[l], {});
      if (!replacements[l]->is_same(own)) lanes_[l]->exchange(next_boundary_, *replacements[l]);
    }
  }

  const Program& program_;
  const EventVisitor& visit_;
  const Variants& variants_;
  const OpObserver& observer_;
  Flow flow_;
  Leaves leaves_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::list<std::unique_ptr<VariantRun>> running_;
  size_t next_boundary_ = 0, next_call_ = 0, started_ = 0;
  int64_t bytes_ = 0;  // of what differs in all variant runs
};

}  // namespace

std::vector<ReplayReport> replay_in_step(const Dump& dump, const Program& program,
                                         const std::vector<ReplayOptions>& lanes, const EventVisitor& visit,
                                         const Variants& variants, const OpObserver& observer) {
  // Recorded below autograd and autocast, so replayed below them.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const RecordedSettings settings(dump.provenance());
  return InStep(dump, program, lanes, visit, variants, observer).run();
}

}  // namespace parity
