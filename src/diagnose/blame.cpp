#include "diagnose/blame.hpp"

#include "core/error.hpp"
#include "diagnose/injection.hpp"
#include "measure/local.hpp"
#include "trace/lanes.hpp"

namespace parity {
namespace {

class Blamer {
 public:
  Blamer(const Dump& dump, const Program& program, const std::vector<CandidateTensor>& candidate,
         const PortPairing& pairing, const std::function<void(double)>& progress)
      : dump_(dump), program_(program), candidate_(candidate), pairing_(pairing), progress_(progress) {
    for (const PortPair& pair : pairing.pairs)
      if (program.is_result(pair.boundary)) root_ = pair.boundary;
    if (!root_)
      throw Error("the model's result has no counterpart in the candidate: there is no final error to blame on ops");
  }

  Blame run() {
    collect();
    const double squared = at::dot(final_.flatten(), final_.flatten()).item<double>();
    const auto moved = [&](size_t i, const at::Tensor& change) {
      if (squared > 0)
        blame_.share[injections_[i].boundary] = at::dot(change.flatten(), final_.flatten()).item<double>() / squared;
    };
    carry(dump_, program_, *root_, injections_, moved, progress_);
    for (const auto& [boundary, share] : blame_.share) blame_.explained += share;
    return std::move(blame_);
  }

 private:
  // Local errors, and the final one.
  void collect() {
    std::map<size_t, const PortPair*> pairs;
    for (const PortPair& pair : pairing_.pairs)
      if (pair.goes_on) pairs[pair.boundary] = &pair;
    replay_in_step(
        dump_, program_, {ReplayOptions{}, ReplayOptions{}}, [&](const BoundaryEvent& event) -> Replacements {
          const auto pair = pairs.find(event.boundary);
          if (pair == pairs.end()) return {};
          const at::Tensor value = pair->second->layout.to_reference(candidate_[pair->second->candidate].load());
          if (value.sizes() != event.computed[0].sizes() || !value.is_floating_point()) return {};
          if (event.boundary == *root_) finish(raised(value) - raised(event.computed[1]), raised(event.computed[1]));
          const at::Tensor error = at::nan_to_num(raised(value) - raised(event.computed[0]), 0, 0, 0);
          if (error.ne(0).any().item<bool>())
            if (auto injection = injection_at(program_, event.boundary, error))
              injections_.push_back(std::move(*injection));
          return {value, std::nullopt};
        });
  }

  void finish(const at::Tensor& error, const at::Tensor& result) {
    final_ = at::nan_to_num(error, 0, 0, 0);
    const double norm = result.norm().item<double>();
    blame_.final_error = norm > 0 ? final_.norm().item<double>() / norm : 0;
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
