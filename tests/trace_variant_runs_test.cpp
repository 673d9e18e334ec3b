// Runs of a changed program must not disturb the replay beside them, nor replays each other.
#include <doctest/doctest.h>

#include <filesystem>

#include "program_file.hpp"
#include "test_places.hpp"
#include "trace/lanes.hpp"

namespace parity {

TEST_CASE("variant runs: in-place writes through views made in one never reach the replay beside it") {
  const std::filesystem::path suite = PARITY_SOURCE_DIR "/reference_dumps/selftest";
  const Dump dump(suite / "wan.fp32.h5");  // its RoPE writes into slices of an empty tensor
  const Program program = load_program(dump);
  const auto run = [&](const DeviationSource& source) {
    std::vector<at::Tensor> values;
    replay_in_step(
        dump, program, {ReplayOptions{}},
        [&](const BoundaryEvent& c) -> Replacements {
          values.push_back(c.computed[0].clone());
          return {};
        },
        source);
    return values;
  };
  size_t started = 0;
  const auto clean = run(nullptr);
  const auto beside = run([&](int op) {
    std::vector<Deviation> deviations;
    const std::string& kind = program.ops[op].kind;
    if (kind == "slice" || kind == "select" || kind == "mul" || kind == "empty_like") {
      ++started;
      Deviation deviation;
      deviation.rewrites[op] = [](OpCall& call) {
        Results results = call.run_again();
        if (results[0] && results[0]->is_floating_point() && !call.op.view) results[0] = *results[0] * 1.5;
        return results;
      };
      deviations.push_back(std::move(deviation));
    }
    return deviations;
  });
  CHECK(started > 20);
  REQUIRE(clean.size() == beside.size());
  for (size_t i = 0; i < clean.size(); ++i)
    CHECK(at::equal(at::nan_to_num(clean[i].to(at::kDouble)), at::nan_to_num(beside[i].to(at::kDouble))));
}

TEST_CASE("lanes: what arithmetics take from the recorded kernels is what each computes alone") {
  const std::filesystem::path suite = PARITY_SOURCE_DIR "/reference_dumps/selftest";
  const Dump dump(suite / "wan.fp32.h5");  // with writes in place
  const Program program = load_program(dump);
  std::vector<ReplayOptions> lanes;
  for (const Arithmetic a : {Arithmetic::kernel, Arithmetic::reordered, Arithmetic::split, Arithmetic::transposed}) {
    lanes.emplace_back();
    lanes.back().arithmetic = a;
  }
  std::map<size_t, at::Tensor> given;  // every second boundary goes on from these, as from a port's
  replay(dump, program, {}, [&](size_t b, const at::Tensor& value) -> std::optional<at::Tensor> {
    if (b % 2 == 0) given[b] = value.is_floating_point() ? value * 1.001 : value.clone();
    return std::nullopt;
  });
  const auto values_of = [&](const std::vector<ReplayOptions>& together) {
    std::vector<std::vector<at::Tensor>> values(together.size());
    replay_in_step(dump, program, together, [&](const BoundaryEvent& event) -> Replacements {
      for (size_t l = 0; l < together.size(); ++l) values[l].push_back(event.computed[l].clone());
      const auto found = given.find(event.boundary);
      if (found == given.end()) return {};
      return Replacements(together.size(), found->second);
    });
    return values;
  };
  const auto together = values_of(lanes);
  for (size_t l = 0; l < lanes.size(); ++l) {
    const auto alone = values_of({lanes[l]})[0];
    REQUIRE(alone.size() == together[l].size());
    for (size_t i = 0; i < alone.size(); ++i) CHECK(alone[i].nan_to_num().equal(together[l][i].nan_to_num()));
  }
}

TEST_CASE("variant runs: one that fails costs itself, not the replay, nor the others") {
  testing::ProgramFile file("failing.h5");
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
  const int64_t leaf = file.leaf(x), twice = file.op("aten::mul.Tensor", {testing::ref(leaf), 2}, {x * 2});
  file.op("aten::add.Tensor", {testing::ref(twice), 1}, {x * 2 + 1});
  const std::vector<std::function<at::Tensor(const at::Tensor& result)>> changes{
      [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("a hypothesis with a fault of its own"); },
      [](const at::Tensor& t) { return t.as_strided({100}, {1}); },  // LibTorch: out of bounds
      [](const at::Tensor&) { return at::Tensor(); },
      [](const at::Tensor& t) { return at::complex(t, t); },
      [](const at::Tensor& t) { return t.flatten().slice(0, 0, 5); },
      [](const at::Tensor& t) { return t * 3; }};
  const auto source = [&](int op) {
    std::vector<Deviation> all;
    for (size_t i = 0; op == 0 && i < changes.size(); ++i) {
      Deviation& deviation = all.emplace_back();
      deviation.rewrites[0] = [change = changes[i]](OpCall& call) {
        Results results = call.run_again();
        results[0] = change(*results[0]);
        return results;
      };
    }
    return all;
  };
  const Dump dump = file.dump();
  const Program program = load_program(dump);
  std::vector<size_t> seen;
  at::Tensor last, last_deviating;
  const auto visit = [&](const BoundaryEvent& event) -> Replacements {
    for (const DeviatingValue& d : event.deviating) seen.push_back(d.deviation), last_deviating = d.value.clone();
    last = event.computed[0].clone();
    return {};
  };
  replay_in_step(dump, program, {ReplayOptions{}}, visit, DeviationSource(source));
  CHECK(seen == std::vector<size_t>{5, 5});
  CHECK(at::equal(last, x * 2 + 1));
  CHECK(at::equal(last_deviating, x * 6 + 1));
}

}  // namespace parity
