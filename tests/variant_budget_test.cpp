// Runs of a changed program within a budget: parts alone, what is dropped early, what is searched, what is said.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "diagnose/findings.hpp"
#include "jobs/port_job.hpp"
#include "jobs/sides.hpp"
#include "pair/segments.hpp"
#include "program_file.hpp"
#include "test_places.hpp"
#include "trace/first_order.hpp"
#include "trace/lanes.hpp"

namespace parity {
namespace {

namespace fs = std::filesystem;
const fs::path kPairs = fs::path(PARITY_SOURCE_DIR) / "reference_dumps" / "selftest";

// The suite's tiny GPT-2 (two layers): what lies between the first layer's result and the model's.
struct SecondLayer {
  Dump dump{kPairs / "gpt2.fp32.h5"};
  Program program = load_program(dump);
  size_t begin = *program.find("transformer.h.0"), end = *program.find("");
  std::shared_ptr<ProgramPart> part = std::make_shared<ProgramPart>();
  at::Tensor entering, leaving;  // in the whole replay

  SecondLayer() {
    std::vector<bool> marked(program.boundaries.size());
    marked[begin] = marked[end] = true;
    part->ops = program.ops_since(marked)[end];
    part->boundaries = {end};
    replay(dump, program, {}, [&](size_t b, const at::Tensor& value) -> std::optional<at::Tensor> {
      if (b == begin) entering = value.clone();
      if (b == end) leaving = value.clone();
      return std::nullopt;
    });
  }

  ReplayOptions alone(const at::Tensor& from) const {
    ReplayOptions options;
    options.part = part;
    options.given[program.boundaries[begin].value.id] = from;
    return options;
  }

  // What a run with `rewrite` at the first op of that kind in the part has at the end; undefined: as without it.
  at::Tensor changed(const std::string& kind, const Rewrite& rewrite, Variants variants = {}) const {
    at::Tensor value;
    variants.start = [&, started = false](int op) mutable {
      std::vector<Deviation> deviations;
      if (!started && program.ops[op].kind == kind) deviations.emplace_back().rewrites[op] = rewrite;
      started = started || !deviations.empty();
      return deviations;
    };
    replay_in_step(
        dump, program, {alone(entering)},
        [&](const BoundaryEvent& event) -> Replacements {
          if (!event.deviating.empty()) value = event.deviating.front().value.clone();
          return {};
        },
        variants);
    return value;
  }
};

Results scaled(OpCall& call, double factor) {
  Results results = call.run_again();
  results[0] = *results[0] * factor;
  return results;
}

JobResult logits_alone(const std::string& candidate, const VariantBudget& budget) {
  Sides sides = open_sides(kPairs / "gpt2.fp32.h5", kPairs / candidate, "");
  PortPairing pairing = sides.pairing;
  const size_t root = *sides.reference.program.find("");
  std::erase_if(pairing.pairs, [&](const PortPair& pair) { return pair.boundary != root; });
  pairing.marked.assign(pairing.marked.size(), false);
  pairing.marked[root] = true;
  PortJobOptions options;
  options.budget = budget;
  return run_port_job(*sides.reference.dump, sides.reference.program, sides.candidate.tensors, pairing, options);
}

VariantBudget budget_of(double replays, int64_t bytes = int64_t{1} << 30) {
  VariantBudget budget;
  budget.replays = replays;
  budget.bytes = bytes;
  budget.least = 0;
  return budget;
}

const OpResult& only_row(const JobResult& result) {
  for (const OpResult& row : result.rows)
    if (row.path.empty()) return row;
  throw std::runtime_error("the result was not compared");
}

}  // namespace

TEST_CASE("variant budget: a part of a program run alone gives what the whole gives, bit by bit") {
  const SecondLayer layer;
  REQUIRE(layer.leaving.defined());
  CHECK(layer.part->ops.size() < layer.program.ops.size() / 2 + 20);
  const auto run = [&](const at::Tensor& from) {
    at::Tensor value;
    replay(layer.dump, layer.program, layer.alone(from), [&](size_t b, const at::Tensor& computed) {
      CHECK(b == layer.end);
      value = computed.clone();
      return std::optional<at::Tensor>();
    });
    return value;
  };
  CHECK(at::equal(run(layer.entering), layer.leaving));
  CHECK(!at::equal(run(layer.entering * 1.01), layer.leaving));  // the part does begin there
}

// Padding written into a slice of ids, a buffer filled after it was made: the part needs what they write to.
TEST_CASE("variant budget: a part that writes through a view, or into what an op made, runs alone") {
  testing::ProgramFile file("part-view.h5");
  const at::Tensor base = at::arange(6, at::kFloat), padded = at::cat({base.narrow(0, 0, 4), at::ones({2})});
  const int64_t x = file.leaf(base);
  const int64_t tail =
      file.op("aten::slice.Tensor", {testing::ref(x), 0, 4, 6}, {base.narrow(0, 4, 2)}, {}, {{"view", true}});
  file.op("aten::fill_.Scalar", {testing::ref(tail), 1}, {at::ones({2})}, {}, {{"ids", {tail}}});
  const int64_t made = file.op("aten::zeros_like", {testing::ref(x)}, {at::zeros({6})});
  file.op("aten::copy_", {testing::ref(made), testing::ref(x)}, {padded}, {}, {{"ids", {made}}});
  file.op("aten::mul.Tensor", {testing::ref(made), 2}, {padded * 2});
  const Dump dump = file.dump();
  const Program program = load_program(dump);
  const size_t end = program.boundaries.size() - 1;
  std::vector<bool> marked(program.boundaries.size());
  marked[end] = true;
  ReplayOptions alone;
  alone.part = std::make_shared<ProgramPart>(ProgramPart{program.ops_since(marked)[end], {end}, {}});
  at::Tensor value;
  replay(dump, program, alone, [&](size_t, const at::Tensor& v) -> std::optional<at::Tensor> {
    value = v.clone();
    return std::nullopt;
  });
  CHECK(at::equal(value, padded * 2));
}

TEST_CASE("variant budget: a run that no longer differs, or cannot matter, is dropped") {
  const SecondLayer layer;
  CHECK(layer.changed("addmm", [](OpCall& call) { return scaled(call, 1.5); }).defined());
  // A sum of two floats has the same bits exactly rounded.
  CHECK(!layer.changed("add", [](OpCall& call) { return call.run_again(); }).defined());
  Variants none;
  none.worth.assign(layer.program.ops.size(), false);
  CHECK(!layer
             .changed(
                 "addmm", [](OpCall& call) { return scaled(call, 1.5); }, none)
             .defined());
  Variants small;
  size_t given_up = 0;
  small.most_bytes = 16;
  small.give_up = [&](size_t number) { given_up += number == 0; };
  CHECK(!layer
             .changed(
                 "addmm", [](OpCall& call) { return scaled(call, 1.5); }, small)
             .defined());
  CHECK(given_up == 1);
}

TEST_CASE("variant budget: views of one memory count once, and what has been dropped no longer") {
  const SecondLayer layer;
  const std::vector<Op>& ops = layer.program.ops;
  const auto fits = [&](int64_t bytes, const std::vector<bool>& worth) {
    Variants variants;
    bool given_up = false;
    variants.most_bytes = bytes, variants.worth = worth;
    variants.give_up = [&](size_t) { given_up = true; };
    layer.changed(
        "addmm", [](OpCall& call) { return scaled(call, 1.5); }, variants);
    return !given_up;
  };
  const auto size_of = [&](size_t op) {
    return ops[op].view ? 0 : c10::multiply_integers(ops[op].outputs.at(0)->shape) * 4;  // fp32
  };
  std::vector<size_t> behind = layer.part->ops;
  const auto found = std::ranges::find_if(behind, [&](size_t op) { return ops[op].kind == "addmm"; });
  REQUIRE(found != behind.end());
  behind.erase(behind.begin(), found);
  const size_t product = behind.front();
  std::vector<bool> with_views(ops.size());
  with_views[product] = true;
  size_t views = 0;
  while (ops[behind.at(views + 1)].view) with_views[behind[++views]] = true;
  CHECK(views >= 2);  // the projection's shape, its queries, keys and values
  CHECK(fits(size_of(product), with_views));
  CHECK(!fits(size_of(product) - 1, with_views));

  int64_t all = 0, least = 0;
  for (const size_t op : behind) all += size_of(op);
  CHECK(fits(all, {}));
  for (int64_t high = all; high - least > 1;) {
    const int64_t middle = least + (high - least) / 2;
    (fits(middle, {}) ? high : least) = middle;
  }
  CHECK(least < all / 2);  // its feed-forward alone makes eight values of four times the width, one after the other
}

TEST_CASE("variant budget: first order agrees with a small change's own run") {
  const SecondLayer layer;
  const Rewrite rewrite = [](OpCall& call) { return scaled(call, 1 + 1e-3); };
  const at::Tensor moved = (layer.changed("native_layer_norm", rewrite) - layer.leaving).to(at::kDouble);
  FirstOrderTask task;
  task.part = layer.part;
  task.given = layer.alone(layer.entering).given;
  at::manual_seed(1);
  task.directions = {(moved / moved.norm()).to(at::kFloat), at::randn(moved.sizes())};
  Deviation change, none;
  for (const size_t op : layer.part->ops)
    if (layer.program.ops[op].kind == "native_layer_norm" && change.rewrites.empty())
      change.rewrites[static_cast<int>(op)] = rewrite;
  none.rewrites[change.rewrites.begin()->first] = [](OpCall& call) { return call.run_again(); };
  for (const auto& [bytes, precision] :
       {std::pair{int64_t{1} << 28, Precision::recorded},  // in one piece, in many
        std::pair{int64_t{1} << 12, Precision::recorded},
        std::pair{int64_t{1} << 28, Precision::fp64}}) {  // attention by its definition
    task.piece_bytes = bytes;
    task.precision = precision;
    const auto found = first_order(layer.dump, layer.program, task, {change, none});
    REQUIRE(found.size() == 2);
    REQUIRE(found[0].has_value());
    CHECK((*found[0])[0] == doctest::Approx(moved.norm().item<double>()).epsilon(.02));
    const double other = at::dot(moved.flatten(), task.directions[1].to(at::kDouble).flatten()).item<double>();
    CHECK(std::abs((*found[0])[1] - other) < .05 * moved.norm().item<double>());
    REQUIRE(found[1].has_value());
    CHECK((*found[1])[0] == 0);
  }
}

TEST_CASE("variant budget: a long stretch of small ops takes the time of its calls, and is searched") {
  for (const int steps : {20, 1500}) {
    testing::ProgramFile file("small-ops.h5");
    at::Tensor value = at::ones({4});
    int64_t id = file.leaf(value);
    for (int i = 0; i < steps; ++i) {
      value = at::gelu(value);
      id = file.op("aten::gelu", {testing::ref(id)}, {value});
    }
    const Dump dump = file.dump();
    const Program program = load_program(dump);
    std::vector<bool> marked(program.boundaries.size());
    marked.back() = true;
    const Catalogue catalogue(program, {kOracle, kRecorded, kExact});
    const VariantPlan plan =
        plan_variants(catalogue.index(), segments_of(program, marked), catalogue, kLastValid + 1, VariantBudget{});
    CHECK(plan.apart.back() == (steps > 20));
    CHECK(plan.allowed.back() <= kSearch.always.value);
  }
}

TEST_CASE("variant budget: with logits alone a fault inside is named, searched as well as run in step") {
  const JobResult whole = logits_alone("gpt2.fp32.fault.gelu-erf.h5", VariantBudget{});
  CHECK(whole.coverage.variants.empty());
  const JobResult searched = logits_alone("gpt2.fp32.fault.gelu-erf.h5", budget_of(4));
  REQUIRE(searched.coverage.variants.size() == 1);
  const VariantCoverage& c = searched.coverage.variants.front();
  CHECK(c.from == "the inputs");
  CHECK(c.to == "the model's result");
  CHECK(c.estimated > 0);
  CHECK(c.run > 0);
  CHECK(c.run < c.named);
  CHECK(c.untried <= c.named - c.estimated);
  for (const JobResult* result : {&whole, &searched}) {
    const OpResult& row = only_row(*result);
    CHECK(row.verdict == Verdict::fail);
    CHECK_MESSAGE(row.diagnosis.starts_with("GELU form"), row.diagnosis);
  }
}

TEST_CASE("variant budget: what was not tried is said, and costs the name alone") {
  const JobResult result = logits_alone("gpt2.fp32.fault.gelu-erf.h5", budget_of(0));
  REQUIRE(result.coverage.variants.size() == 1);
  const VariantCoverage& c = result.coverage.variants.front();
  CHECK(c.run == 0);
  CHECK(c.untried == c.named);
  CHECK(c.why == "budget of work");
  CHECK(only_row(result).verdict == Verdict::fail);
  const JobResult healthy = logits_alone("gpt2.fp32.h5", budget_of(2));
  CHECK(only_row(healthy).verdict == Verdict::pass);
  const JobResult tight = logits_alone("gpt2.fp32.fault.gelu-erf.h5", budget_of(1000, 1 << 10));
  REQUIRE(!tight.coverage.variants.empty());
  CHECK(tight.coverage.variants.front().why == "budget of memory");
}

}  // namespace parity
