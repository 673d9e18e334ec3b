#include "diagnose/blame.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "measure/local.hpp"
#include "trace/flow.hpp"
#include "trace/lanes.hpp"

namespace parity {
namespace {

constexpr size_t kAtOnce = 16;  // injections carried in one pass: bounds the memory

struct Injection {
  size_t boundary;
  int op;         // that made the boundary's value
  size_t output;  // which of its outputs
  at::Tensor error;
};

class Blamer {
 public:
  Blamer(const Dump& dump, const Program& program, const std::vector<CandidateTensor>& candidate,
         const PortPairing& pairing, const std::function<void(double)>& progress)
      : dump_(dump), program_(program), candidate_(candidate), pairing_(pairing), progress_(progress) {
    for (const PortPair& pair : pairing.pairs)
      if (program.boundaries[pair.boundary].path.empty()) root_ = pair.boundary;
    if (!root_)
      throw Error("the model's result has no counterpart in the candidate: there is no final error to blame on ops");
  }

  Blame run() {
    collect();
    for (size_t first = 0; first < injections_.size(); first += kAtOnce) {
      carry(first, std::min(first + kAtOnce, injections_.size()));
      progress_(static_cast<double>(std::min(first + kAtOnce, injections_.size())) /
                static_cast<double>(injections_.size()));
    }
    for (const auto& [boundary, share] : blame_.share) blame_.explained += share;
    return std::move(blame_);
  }

 private:
  // Local errors, and the final one.
  void collect() {
    std::map<size_t, const PortPair*> pairs;
    for (const PortPair& pair : pairing_.pairs) pairs[pair.boundary] = &pair;
    replay_in_step(dump_, program_, {ReplayOptions{}, ReplayOptions{}}, [&](const Crossing& crossing) -> Replacements {
      const auto pair = pairs.find(crossing.boundary);
      if (pair == pairs.end()) return {};
      const at::Tensor value = pair->second->layout.to_reference(candidate_[pair->second->candidate].load());
      if (value.sizes() != crossing.computed[0].sizes() || !value.is_floating_point()) return {};
      if (crossing.boundary == *root_)
        finish(raised(value) - raised(crossing.computed[1]), raised(crossing.computed[1]));
      const at::Tensor error = at::nan_to_num(raised(value) - raised(crossing.computed[0]), 0.0, 0.0, 0.0);
      if (error.ne(0).any().item<bool>()) add(crossing.boundary, error);
      return {value, std::nullopt};
    });
  }

  void finish(const at::Tensor& error, const at::Tensor& result) {
    final_ = at::nan_to_num(error, 0.0, 0.0, 0.0);
    const double norm = result.norm().item<double>();
    blame_.final_error = norm > 0 ? final_.norm().item<double>() / norm : 0;
  }

  void add(size_t boundary, const at::Tensor& error) {
    const int64_t id = program_.boundaries[boundary].value.id;
    for (int i = program_.boundaries[boundary].position - 1; i >= 0; --i)
      for (size_t j = 0; j < program_.ops[i].outputs.size(); ++j)
        if (program_.ops[i].outputs[j] && program_.ops[i].outputs[j]->id == id) {
          injections_.push_back({boundary, i, j, error});
          return;
        }
  }

  void carry(size_t first, size_t last) {
    std::vector<size_t> started;  // deviation number -> injection
    const DeviationSource source = [&](int op) {
      std::vector<Deviation> deviations;
      for (size_t i = first; i < last; ++i) {
        if (injections_[i].op != op) continue;
        started.push_back(i);
        Deviation deviation;
        deviation.rewrites[op] = [injection = &injections_[i]](OpCall& call) {
          Results results = call.run_again();
          at::Tensor& result = *results.at(injection->output);
          result = written_ids(call.op).empty() ? result + injection->error : result.add_(injection->error);
          return results;
        };
        deviations.push_back(std::move(deviation));
      }
      return deviations;
    };
    ReplayOptions own;
    own.precision = Precision::fp64;
    const double squared = at::dot(final_.flatten(), final_.flatten()).item<double>();
    replay_in_step(
        dump_, program_, {own},
        [&](const Crossing& crossing) -> Replacements {
          if (crossing.boundary != *root_ || !(squared > 0)) return {};
          for (const DeviatingValue& d : crossing.deviating) {
            const at::Tensor moved = at::nan_to_num(d.value - crossing.computed[0], 0.0, 0.0, 0.0);
            blame_.share[injections_[started[d.deviation]].boundary] =
                at::dot(moved.flatten(), final_.flatten()).item<double>() / squared;
          }
          return {};
        },
        source);
  }

  const Dump& dump_;
  const Program& program_;
  const std::vector<CandidateTensor>& candidate_;
  const PortPairing& pairing_;
  const std::function<void(double)>& progress_;
  std::optional<size_t> root_;
  std::vector<Injection> injections_;
  at::Tensor final_;
  Blame blame_;
};

}  // namespace

Blame blame(const Dump& dump, const Program& program, const std::vector<CandidateTensor>& candidate,
            const PortPairing& pairing, const std::function<void(double done)>& progress) {
  return Blamer(dump, program, candidate, pairing, progress).run();
}

}  // namespace parity
