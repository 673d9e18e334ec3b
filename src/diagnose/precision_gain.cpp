#include "diagnose/precision_gain.hpp"

#include <algorithm>
#include <cmath>

#include "core/precision.hpp"
#include "diagnose/injection.hpp"
#include "measure/local.hpp"
#include "trace/lanes.hpp"

namespace parity {
namespace {

constexpr int64_t kResultSample = 1 << 14;  // elements of the result that carried roundings are kept of

struct LocalRounding {
  size_t boundary;
  int op;
  double local;        // its norm over the value's
  at::Tensor carried;  // fp32, sampled: what it does to the result
};

class Roundings {
 public:
  Roundings(const Dump& dump, const Program& program, size_t root, const std::function<void(double)>& progress)
      : dump_(dump), program_(program), root_(root), progress_(progress) {}

  PrecisionGain run(size_t most) {
    collect();
    gain_.roundings = static_cast<int64_t>(found_.size());
    const auto moved = [this](size_t i, const at::Tensor& change) {
      found_[i].carried = sampled(change).to(at::kFloat);
    };
    carry(dump_, program_, root_, injections_, moved, progress_);
    choose(most);
    confirm();
    return std::move(gain_);
  }

 private:
  static ReplayOptions lane(Precision precision) {
    ReplayOptions options;
    options.precision = precision;
    return options;
  }

  // One program in the recorded dtypes, one in fp64 on its values, one in fp64 on its own.
  void collect() {
    const std::vector<ReplayOptions> lanes{lane(Precision::recorded), lane(Precision::fp64), lane(Precision::fp64)};
    replay_in_step(dump_, program_, lanes, [&](const BoundaryEvent& event) -> Replacements {
      const at::Tensor &recorded = event.computed[0], &exact = event.computed[1];
      if (!recorded.is_floating_point()) return {};
      const at::Tensor error = at::nan_to_num(raised(recorded) - exact, 0, 0, 0);
      if (error.ne(0).any().item<bool>()) add(event.boundary, error, exact.norm().item<double>());
      if (event.boundary == root_) {
        final_ = sampled(at::nan_to_num(raised(recorded) - event.computed[2], 0, 0, 0));
        norm_ = sampled(event.computed[2]).norm().item<double>();
        truth_ = sampled(event.computed[2]);
        gain_.error = norm_ > 0 ? final_.norm().item<double>() / norm_ : 0;
      }
      return {std::nullopt, recorded, std::nullopt};
    });
  }

  static at::Tensor sampled(const at::Tensor& t) {
    const at::Tensor flat = t.reshape(-1);
    return flat.slice(0, 0, flat.numel(), std::max<int64_t>(1, flat.numel() / kResultSample)).clone();
  }

  void add(size_t boundary, const at::Tensor& error, double norm) {
    auto injection = injection_at(program_, boundary, error);
    if (!injection) return;
    found_.push_back({boundary, injection->op, norm > 0 ? error.norm().item<double>() / norm : 0, {}});
    injections_.push_back(std::move(*injection));
  }

  // Each step takes the rounding without which the least is left.
  void choose(size_t most) {
    at::Tensor left = final_.clone(), all = final_.clone();
    for (const LocalRounding& r : found_)
      if (r.carried.defined()) all -= r.carried;
    const double whole = final_.square().sum().item<double>();
    gain_.explained = whole > 0 ? 1 - all.square().sum().item<double>() / whole : 0;
    for (size_t step = 0; step < most; ++step) {
      const LocalRounding* best = nullptr;
      double largest = 0;
      for (const LocalRounding& r : found_) {
        if (!r.carried.defined() || std::find(chosen_.begin(), chosen_.end(), &r) != chosen_.end()) continue;
        const at::Tensor carried = r.carried.to(at::kDouble);
        const double brings = (2 * at::dot(carried, left) - at::dot(carried, carried)).item<double>();
        if (brings > largest) best = &r, largest = brings;
      }
      if (best == nullptr) return;
      chosen_.push_back(best);
      left -= best->carried;
      const Boundary& boundary = program_.boundaries[best->boundary];
      const double carried = norm_ > 0 ? best->carried.to(at::kDouble).norm().item<double>() / norm_ : 0;
      gain_.steps.push_back({program_.ops[best->op].path, program_.ops[best->op].kind, program_.source(boundary.line),
                             whole > 0 ? largest / whole : 0, best->local > 0 ? carried / best->local : 0,
                             norm_ > 0 ? left.norm().item<double>() / norm_ : 0, std::nullopt});
    }
  }

  // The first `count` chosen results kept in fp64.
  Deviation without_roundings(size_t count) const {
    Deviation deviation;
    for (size_t i = 0; i < count; ++i)
      deviation.rewrites[chosen_[i]->op] = [](OpCall& call) {
        return call.unrounded ? call.unrounded(call.arguments) : call.run_again();
      };
    return deviation;
  }

  // The recorded program once more for the first step, the first two, …
  void confirm() {
    std::vector<size_t> started;  // deviation number -> step
    const DeviationSource source = [&](int op) {
      std::vector<Deviation> deviations;
      for (size_t step = 0; step < chosen_.size(); ++step)
        if (Deviation deviation = without_roundings(step + 1); deviation.rewrites.begin()->first == op) {
          started.push_back(step);
          deviations.push_back(std::move(deviation));
        }
      return deviations;
    };
    replay_in_step(
        dump_, program_, {lane(Precision::recorded)},
        [&](const BoundaryEvent& event) -> Replacements {
          if (event.boundary != root_ || !(norm_ > 0)) return {};
          for (const DeviatingValue& d : event.deviating)
            gain_.steps[started[d.deviation]].replayed =
                (sampled(raised(d.value)) - truth_).norm().item<double>() / norm_;
          return {};
        },
        source);
  }

  const Dump& dump_;
  const Program& program_;
  const size_t root_;
  const std::function<void(double)>& progress_;
  std::vector<LocalRounding> found_;
  std::vector<Injection> injections_;  // one a rounding
  std::vector<const LocalRounding*> chosen_;
  at::Tensor final_, truth_;  // sampled
  double norm_ = 0;
  PrecisionGain gain_;
};

}  // namespace

PrecisionGain precision_gain(const Dump& dump, const Program& program, size_t root, size_t most,
                             const std::function<void(double done)>& progress) {
  return Roundings(dump, program, root, progress).run(most);
}

}  // namespace parity
