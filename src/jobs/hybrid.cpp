#include "jobs/hybrid.hpp"

#include "jobs/reference_values.hpp"

namespace parity {
namespace {

// One side's pass: what it computes at each of its boundaries, given all other values.
Values reference_pass(const Dump& dump, const Program& program, Precision precision, const std::vector<bool>& taken,
                      const Values& hybrid) {
  Values computed;
  replay(dump, program, replay_options(precision), [&](size_t b, const at::Tensor& value) -> std::optional<at::Tensor> {
    if (taken[b]) {
      computed[b] = value.detach().clone();
      return std::nullopt;
    }
    const auto given = hybrid.find(b);
    if (given == hybrid.end() || given->second.sizes() != value.sizes()) return std::nullopt;
    return given->second;
  });
  return computed;
}

Values port_pass(PortedModel& model, const Program& program, const Pairing& pairing, const std::vector<bool>& taken,
                 const Values& hybrid) {
  Values given;
  for (const auto& [b, value] : hybrid)
    if (taken[b]) given[b] = value;
  Values computed = run_forced(model, program, pairing, given);
  std::erase_if(computed, [&](const auto& value) { return taken[value.first]; });
  return computed;
}

// True when any value changed.
bool update(Values& hybrid, Values computed) {
  bool changed = false;
  for (auto& [b, value] : computed) {
    const auto before = hybrid.find(b);
    changed = changed || before == hybrid.end() || !bitwise_equal(before->second, value);
    hybrid[b] = std::move(value);
  }
  return changed;
}

}  // namespace

Values run_hybrid(const ModelFactory& make, const Dump& dump, const Program& program, const Pairing& pairing,
                  Precision precision, const std::vector<bool>& taken) {
  Values hybrid;
  // Every two passes the values behind at least one more change of sides are final.
  for (size_t pass = 0; pass <= pairing.pairs.size(); ++pass) {
    const bool moved = update(hybrid, port_pass(*make(dump, precision), program, pairing, taken, hybrid));
    if (!update(hybrid, reference_pass(dump, program, precision, taken, hybrid)) && !moved) break;
  }
  return hybrid;
}

}  // namespace parity
