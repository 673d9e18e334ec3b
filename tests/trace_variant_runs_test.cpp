// Runs of a changed program must not disturb the replay beside them.
#include <doctest/doctest.h>

#include <filesystem>

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

}  // namespace parity
