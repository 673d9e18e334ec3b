// What a report says to run next, and that it can be run.
#include "report/next.hpp"

#include <doctest/doctest.h>

#include "command.hpp"
#include "report_golden.hpp"
#include "report_sample.hpp"

using namespace parity;

namespace {

/// Two files, one green linear row with an oracle.
Report green_pair() {
  Report r;
  r.command = "parity-check compare ref.h5 'it'\\''s.h5' --map 'my map.txt' --out x";
  r.reference.path = "ref.h5";
  r.candidate.path = "it's.h5";
  OpResult op;
  op.path = op.candidate_path = "blocks.0.ffn";
  op.kind = "linear";
  op.dtype = op.tensor_dtype = "bf16";
  op.verdict = Verdict::pass;
  op.rerun = "parity-check compare 'ref.h5' 'it'\\''s.h5' --layer 'blocks.0.ffn'";
  op.oracle = OracleStats{};
  op.free.emplace();
  op.free->rel_l2 = 1e-3;
  r.ops.push_back(op);
  r.coverage[""].paired = 1;
  return r;
}

void fail(OpResult& op, Gate gate, const std::string& why) {
  op.verdict = Verdict::fail;
  op.gate = gate;
  op.diagnosis = why;
}

std::vector<std::string> commands(const Report& report) {
  std::vector<std::string> out;
  for (const NextStep& step : next_steps(report)) {
    CHECK(step.why != "");
    out.push_back(step.command);
  }
  return out;
}

using List = std::vector<std::string>;

}  // namespace

TEST_CASE("next: a green report whose output is within a rounding leaves nothing to do") {
  CHECK(commands(green_pair()).empty());
  CHECK(commands(Report()).empty());
}

TEST_CASE("next: the first divergence alone, then what its gate asks for") {
  Report r = green_pair();
  fail(r.ops[0], Gate::dtype_path, "a rounding is placed differently");
  CHECK(commands(r) ==
        List{r.ops[0].rerun, "parity-check paths 'ref.h5' 'it'\\''s.h5' --map 'my map.txt' --layer 'blocks.0.ffn'"});
  fail(r.ops[0], Gate::logic, "missing bias (…)");
  CHECK(commands(r) == List{r.ops[0].rerun});  // which would find none in the port's file
  r.reference.weights = r.candidate.weights = true;
  CHECK(commands(r) == List{r.ops[0].rerun, "parity-check weights 'ref.h5' 'it'\\''s.h5'"});
  r.ops[0].kind = "gelu";
  fail(r.ops[0], Gate::logic, "GELU form (erf for tanh)");
  CHECK(commands(r) == List{r.ops[0].rerun});
}

TEST_CASE("next: blame when no op is wrong and the output differs by more than a rounding") {
  Report r = green_pair();
  r.ops[0].free->rel_l2 = .02;
  CHECK(commands(r) == List{"parity-check blame 'ref.h5' 'it'\\''s.h5' --map 'my map.txt'"});
  CHECK(next_steps(r)[0].why.starts_with("no op is wrong, and the output differs by 0.02"));
  r.ops.push_back(r.ops[0]);
  r.ops[1].verdict = Verdict::missing;  // the result, perhaps
  CHECK(next_steps(r)[0].why.starts_with("no op that was compared is wrong, and the last one differs by 0.02"));
  r.ops.pop_back();
  r.ops[0].oracle.reset();  // tensor sets: nothing can be replayed
  CHECK(commands(r).empty());
}

TEST_CASE("next: --max-free when every op passes and the output is further off than roundings alone take it") {
  Report r = green_pair();
  r.command += " --thresholds limits.json --accept-path='*.ln'";
  r.ops[0].oracle->reference_error = 1e-3;
  r.ops[0].free->rel_l2 = 2e-3;
  CHECK(commands(r) == List{"parity-check compare 'ref.h5' 'it'\\''s.h5' --map 'my map.txt' --thresholds 'limits.json' "
                            "--accept-path '*.ln' --max-free 0.0014"});
  r.ops[0].free->rel_l2 = 1.4e-3;  // two sides' roundings: sqrt(2) 1e-3
  CHECK(commands(r).empty());
  r.ops[0].free->rel_l2 = 2e-3;
  r.whole.emplace();  // asked already
  CHECK(commands(r).empty());
  r.whole.reset();
  r.ops[0].verdict = Verdict::inconclusive;  // an op may be wrong
  for (const std::string& command : commands(r)) CHECK(command.find("--max-free") == std::string::npos);
}

TEST_CASE("next: a map file when much has no counterpart, fp32 when bf16 cannot decide") {
  Report r = green_pair();
  r.coverage[""].uncovered = 1;
  r.coverage[""].uncovered_paths = {"blocks.1.ffn"};
  CHECK(commands(r) ==
        List{"parity-check compare 'ref.h5' 'it'\\''s.h5' --map 'my map.txt' --save-map more_pairs.map"});
  CHECK(next_steps(r)[0].why.find("1 of 2 points") == 0);
  r.command = "parity-check compare ref.h5 x.h5";
  CHECK(commands(r) == List{"parity-check compare 'ref.h5' 'it'\\''s.h5' --save-map pairs.map"});
  r.command = "parity-check weights ref.h5 x.h5";  // which writes another kind of map
  CHECK(commands(r) == List{"parity-check inspect 'ref.h5'"});
  Report run = green_pair();
  run.candidate.path.clear();
  run.ops[0].verdict = Verdict::inconclusive;
  run.ops[0].rerun = "parity-check run --reference 'ref.h5' --layer 'blocks.0.ffn' --dtype bf16";
  CHECK(commands(run) == List{"parity-check run --reference 'ref.h5' --layer 'blocks.0.ffn' --dtype fp32"});
}

TEST_CASE("next: a rule of layout for all names, or for those alone that need it") {
  Report r = green_pair();
  r.command = "parity-check compare ref.h5 'it'\\''s.h5'";
  r.ops[0].verdict = Verdict::shape;
  r.ops[0].shape = {2, 60, 64};
  r.ops[0].read_as = "perm(0,2,1)";
  r.ops[0].rerun.clear();
  for (const char* name : {"down.0.group_norm", "down.1.group_norm"}) {
    r.ops.push_back(r.ops[0]);
    r.ops.back().path = r.ops.back().candidate_path = name;
  }
  const std::string compare = " >layout.map && parity-check compare 'ref.h5' 'it'\\''s.h5' --map layout.map";
  CHECK(commands(r) == List{"echo '* = * perm(0,2,1)'" + compare});
  r.ops[0].verdict = Verdict::pass;  // convolutions', which are read by themselves
  r.ops.insert(r.ops.begin(), 2, r.ops[0]);
  CHECK(commands(r) == List{"echo '*.group_norm = *.group_norm perm(0,2,1)'" + compare});
  r.ops.push_back(r.ops.back());
  r.ops.back().path = r.ops.back().candidate_path = "down.0.norm";
  CHECK(commands(r) ==
        List{"printf '%s\\n' '*.group_norm = *.group_norm perm(0,2,1)' '*.norm = *.norm perm(0,2,1)'" + compare});
  r.ops[0].path = r.ops[0].candidate_path = "up.0.norm";
  CHECK(commands(r).empty());
}

TEST_CASE("next: at most three") {
  Report r = green_pair();
  fail(r.ops[0], Gate::dtype_path, "a rounding is placed differently");
  r.ops.push_back(r.ops[0]);
  fail(r.ops[1], Gate::logic, "transposed weight (…)");
  r.coverage[""].uncovered = 5;
  CHECK(next_steps(r).size() == 3);
}
