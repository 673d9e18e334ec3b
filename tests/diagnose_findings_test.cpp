// Named changes held against a difference that valid arithmetics make, too.
#include <doctest/doctest.h>

#include "diagnose/findings.hpp"
#include "judge/naming.hpp"

namespace parity {
namespace {

// A boundary where one named change of the program, of fixed size, moves the result by `direction`; every valid
// arithmetic gives the same, but for the last, which is `apart` from the others.
struct Scene {
  at::Tensor recorded, direction;
  Crossing crossing;
  std::vector<FaultHypothesis> hypotheses;

  explicit Scene(double apart) {
    recorded = at::arange(1, 4097, at::kFloat).reshape({64, 64});
    direction = recorded * at::where(at::arange(64).remainder(2).eq(0), 1e-3, -1e-3);
    crossing.computed.assign(kLanes, recorded);
    for (const size_t wide : {kOracle, kPerturbed}) crossing.computed[wide] = recorded.to(at::kDouble);
    crossing.computed[kLastValid] = (recorded + apart * direction).to(at::kFloat);
    crossing.deviating.push_back({0, recorded.to(at::kDouble) + direction});
    hypotheses.resize(1);
    hypotheses[0].fault = "channel order";
  }

  Finding found(const at::Tensor& candidate) const {
    for (const Finding& f : match_hypotheses(crossing, candidate, hypotheses, -1))
      if (f.fault == "channel order") return f;
    throw std::runtime_error("the change was not tried");
  }

  std::string named(const at::Tensor& candidate) const {
    const std::vector<Finding> findings = match_hypotheses(crossing, candidate, hypotheses, -1);
    const Finding* best = best_finding(findings, {});
    return best == nullptr ? "" : best->fault;
  }
};

}  // namespace

TEST_CASE("findings: what a valid arithmetic does, too, has no name") {
  const Scene alone(0), shared(1);
  const at::Tensor candidate = (alone.recorded + alone.direction).to(at::kFloat);
  CHECK(alone.found(candidate).null_amplitude < 1e-3);
  CHECK(alone.found(candidate).rest < 1e-6);
  CHECK(alone.named(candidate) == "channel order");
  CHECK(shared.found(candidate).null_amplitude == doctest::Approx(1).epsilon(1e-3));
  CHECK(shared.found(candidate).rest > 1);  // the valid arithmetic is nearer
  CHECK(shared.named(candidate).empty());
}

TEST_CASE("findings: a name has to come nearer than the nearest valid arithmetic") {
  const Scene near(.25);  // a quarter of the change: too little to be called it, enough to be nearer to a fifth of it
  const at::Tensor fifth = (near.recorded + .2 * near.direction).to(at::kFloat);
  CHECK(near.found(fifth).rest > 100);
  CHECK(Scene(0).found(fifth).rest == doctest::Approx(16).epsilon(.01));  // (.8 / .2)^2
}

}  // namespace parity
