// The flow-matching samplers beside diffusers' (tests/data/record_schedulers.py), and both beside the formulas in plain
// doubles.
#include <doctest/doctest.h>
#include <cmath>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "models/schedulers/euler.hpp"
#include "models/schedulers/unipc.hpp"
#include "test_places.hpp"
#include "trace/program.hpp"

using namespace parity;

namespace {

constexpr int64_t kSteps = 5;

struct Sampling {  // what was recorded of one case
  at::Tensor sigmas, timesteps;
  std::vector<at::Tensor> samples, velocities;  // kSteps + 1, kSteps
};

Sampling recorded_sampling(const std::string& name) {
  const Dump dump(PARITY_SOURCE_DIR "/tests/data/flow_schedulers.h5");
  const Program program = load_program(dump);
  const auto read = [&](const std::string& what, int call) {
    const auto found = program.find(name + "." + what, call);
    REQUIRE(found);
    return stored_value(dump, program.boundaries[*found].value);
  };
  Sampling all{read("sigmas", 0), read("timesteps", 0), {}, {}};
  for (int i = 0; i <= kSteps; ++i) all.samples.push_back(read("sample", i));
  for (int i = 0; i < kSteps; ++i) all.velocities.push_back(read("velocity", i));
  return all;
}

// The samples of a run on its own values, under `dtype`.
template <class Sampler>
std::vector<at::Tensor> sampled(Sampler sampler, const Sampling& given, at::ScalarType dtype) {
  std::vector<at::Tensor> samples{given.samples[0].to(dtype)};
  for (const auto& velocity : given.velocities) samples.push_back(sampler.step(velocity.to(dtype), samples.back()));
  return samples;
}

using Row = std::vector<double>;

Row doubles(const at::Tensor& x) {
  const auto wide = x.to(at::kDouble).contiguous();
  return {wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel()};
}

std::vector<Row> euler_in_doubles(const Sampling& given) {
  const Row sigma = doubles(given.sigmas);
  std::vector<Row> samples{doubles(given.samples[0])};
  for (size_t i = 0; i < kSteps; ++i) {
    const Row v = doubles(given.velocities[i]);
    Row x = samples.back();
    for (size_t k = 0; k < x.size(); ++k) x[k] += (sigma[i + 1] - sigma[i]) * v[k];
    samples.push_back(x);
  }
  return samples;
}

double lambda(double sigma) { return std::log((1 - sigma) / sigma); }

// One step from level `s` to `t` with data prediction (Zhao et al. 2023, equations 3 and 9 with B(h) = e^h - 1):
// `before` is the clean sample one level before `s`, `at_t` that of the corrector; empty: without that term.
Row unipc_in_doubles(double s, double t, double level_before, const Row& x, const Row& at_s, const Row& before,
                     const Row& at_t) {
  const double h = lambda(t) - lambda(s), em = std::expm1(-h);
  const double b1 = (em / -h - 1) / em, b2 = 2 * ((em / -h - 1) / -h - 0.5) / em;
  const double r = before.empty() ? 0 : (lambda(level_before) - lambda(s)) / h;
  double old_weight = 0, new_weight = 0;
  if (at_t.empty())
    old_weight = before.empty() ? 0 : 0.5;
  else if (before.empty())
    new_weight = 0.5;
  else
    old_weight = (b1 - b2) / (1 - r), new_weight = b1 - old_weight;
  Row y(x.size());
  for (size_t k = 0; k < x.size(); ++k) {
    double terms = 0;
    if (!before.empty()) terms += old_weight * (before[k] - at_s[k]) / r;
    if (!at_t.empty()) terms += new_weight * (at_t[k] - at_s[k]);
    y[k] = t / s * x[k] - (1 - t) * em * (at_s[k] + terms);
  }
  return y;
}

std::vector<Row> unipc_in_doubles(const Sampling& given) {
  const Row sigma = doubles(given.sigmas);
  std::vector<Row> samples{doubles(given.samples[0])}, clean;
  Row from;
  for (size_t i = 0; i < kSteps; ++i) {
    const Row v = doubles(given.velocities[i]);
    Row now = samples.back();
    for (size_t k = 0; k < now.size(); ++k) now[k] -= sigma[i] * v[k];
    // corrected with as many clean samples as the prediction before had
    from = i == 0 ? samples.back()
                  : unipc_in_doubles(sigma[i - 1], sigma[i], i > 1 ? sigma[i - 2] : 0, from, clean[i - 1],
                                     i > 1 ? clean[i - 2] : Row{}, now);
    clean.push_back(now);
    const bool second = i > 0 && i + 1 < kSteps;
    samples.push_back(unipc_in_doubles(sigma[i], sigma[i + 1], second ? sigma[i - 1] : 0, from, now,
                                       second ? clean[i - 1] : Row{}, {}));
  }
  return samples;
}

double relative(const Row& expected, const at::Tensor& got) {
  const Row y = doubles(got);
  double error = 0, size = 0;
  for (size_t k = 0; k < y.size(); ++k) error += std::pow(y[k] - expected[k], 2), size += std::pow(expected[k], 2);
  return std::sqrt(error / size);
}

double worst(const std::vector<Row>& expected, const std::vector<at::Tensor>& got) {
  double most = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = relative(expected[i], got[i]);
    most = std::isnan(error) || error > most ? error : most;
    if (std::isnan(most)) break;
  }
  return most;
}

// The last level has no lambda: there e^-h is 0 in the limit, and doubles give it without a case of its own.
std::vector<Row> in_doubles(bool euler, const Sampling& given) {
  return euler ? euler_in_doubles(given) : unipc_in_doubles(given);
}

struct FlowCase {
  const char* name;
  bool euler;
  double shift;
};
constexpr FlowCase kFlowCases[] = {{"euler.1", true, 1},  {"euler.3", true, 3},  {"euler.5", true, 5},
                                   {"unipc.1", false, 1}, {"unipc.3", false, 3}, {"unipc.5", false, 5}};

std::vector<at::Tensor> sampled(const FlowCase& c, const FlowSchedule& schedule, const Sampling& given,
                                at::ScalarType dtype, int64_t order = 2) {
  return c.euler ? sampled(FlowEuler(schedule), given, dtype) : sampled(FlowUniPc(schedule, order), given, dtype);
}

FlowSchedule schedule_of(const FlowCase& c, double shift) {
  return c.euler ? euler_schedule(kSteps, shift) : unipc_schedule(kSteps, shift);
}

// Relative L2 of a step's sample after the steps before it. Worst measured: 2.4 roundoffs of fp32 at unipc.3 (1.0 at
// euler.5), of diffusers' as of ours; twice that.
constexpr double kFlowLimit = 5 * 0x1p-24;

}  // namespace

TEST_CASE("schedulers: noise levels and time steps are diffusers' to the bit") {
  for (const FlowCase& c : kFlowCases) {
    CAPTURE(c.name);
    const Sampling given = recorded_sampling(c.name);
    const FlowSchedule schedule = schedule_of(c, c.shift);
    CHECK(at::equal(schedule.sigmas, given.sigmas));
    CHECK((schedule.timesteps.scalar_type() == given.timesteps.scalar_type()));
    CHECK(at::equal(schedule.timesteps, given.timesteps));
  }
  CHECK_THROWS_AS(euler_schedule(0, 3), Error);
  CHECK_THROWS_AS(unipc_schedule(5, 0), Error);
}

TEST_CASE("schedulers: every step lies within fp32 rounding of the formulas in doubles, as diffusers' does") {
  for (const FlowCase& c : kFlowCases) {
    CAPTURE(c.name);
    const Sampling given = recorded_sampling(c.name);
    const auto truth = in_doubles(c.euler, given);
    const auto schedule = schedule_of(c, c.shift);
    const auto ours = sampled(c, schedule, given, at::kFloat);
    CHECK(worst(truth, ours) <= kFlowLimit);
    CHECK(worst(truth, given.samples) <= kFlowLimit);
    CHECK(worst(truth, sampled(c, schedule, given, at::kDouble)) <= 1e-12);
    for (size_t i = 0; i < ours.size(); ++i) CHECK(relative(doubles(given.samples[i]), ours[i]) <= kFlowLimit);
  }
}

TEST_CASE("schedulers: shift left out, order 1 and a sigma off by one go red in fp32 and fp64") {
  for (const FlowCase& c : kFlowCases)
    for (const auto dtype : {at::kFloat, at::kDouble}) {
      CAPTURE(c.name);
      CAPTURE(short_dtype_name(dtype));
      const Sampling given = recorded_sampling(c.name);
      const auto truth = in_doubles(c.euler, given);
      const auto red = [&](const FlowSchedule& schedule, int64_t order) {
        return !(worst(truth, sampled(c, schedule, given, dtype, order)) <= 100 * kFlowLimit);
      };
      const FlowSchedule right = schedule_of(c, c.shift);
      CHECK_FALSE(red(right, 2));
      CHECK(red(schedule_of(c, 1), 2) == (c.shift != 1));
      if (!c.euler) CHECK(red(right, 1));
      const auto late = at::cat({right.sigmas.narrow(0, 0, 1), right.sigmas.narrow(0, 0, kSteps)});
      CHECK(red({late, right.timesteps}, 2));
    }
}

TEST_CASE("schedulers: a step too many and an order that is not written are refused") {
  const Sampling given = recorded_sampling("unipc.3");
  FlowUniPc unipc(unipc_schedule(1, 3));
  FlowEuler euler(euler_schedule(1, 3));
  (void)unipc.step(given.velocities[0], given.samples[0]);
  (void)euler.step(given.velocities[0], given.samples[0]);
  CHECK_THROWS_WITH_AS((void)unipc.step(given.velocities[0], given.samples[0]),
                       "[unipc] the schedule has 1 steps, all taken", Error);
  CHECK_THROWS_AS((void)euler.step(given.velocities[0], given.samples[0]), Error);
  CHECK_THROWS_AS(FlowUniPc(unipc_schedule(5, 3), 3), Error);
}
