// The limits of `run` as a file: what its --thresholds reads.
#include <doctest/doctest.h>

#include "command.hpp"
#include "core/error.hpp"
#include "judge/model.hpp"
#include "judge/model_limits.hpp"
#include "recording_file.hpp"

namespace parity {
namespace {

ModelLimits model_limits_of(const std::string& text) {
  const testing::TemporaryFile file("model-thresholds.json");
  std::ofstream(file.path()) << text;
  return read_model_limits(file.path());
}

std::string refusal(const std::string& text) {
  try {
    model_limits_of(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// In force while it lives.
class InForce {
 public:
  explicit InForce(const std::string& text) { set_model_limits(model_limits_of(text)); }
  ~InForce() { set_model_limits(ModelLimits{}); }
  InForce(const InForce&) = delete;
  InForce& operator=(const InForce&) = delete;
};

// A linear in bf16 with 1 % of its elements flipped.
OpResult flipped_linear() {
  OpResult row;
  row.path = "blocks.0.proj";
  row.kind = "linear";
  row.logic = {1e-14, 1e-12, Verdict::pass};
  Stats s;
  s.count = 1000;
  s.bitwise_equal_share = .99;
  s.rel_l2 = 1e-5;
  row.forced = s;
  JudgeInput in;
  in.reference_dtype = in.candidate_dtype = at::kBFloat16;
  judge_local(row, in);
  return row;
}

}  // namespace

TEST_CASE("limits of run: a file changes what it names, and nothing else") {
  const ModelLimits changed = model_limits_of(R"({"logic_rel_l2": {"value": 1e-9, "origin": "fused kernels"},
      "linear.bitwise_equal_share": {"value": 0.9, "origin": "another BLAS"}, "gelu.rel_l2_in_u": {"value": 0, "origin": "same"},
      "accept_paths": ["blocks.*.norm1"]})");
  CHECK(changed.logic_rel_l2.value == 1e-9);
  CHECK(changed.logic_rel_l2.origin == "fused kernels");
  CHECK(changed.severe_factor.value == ModelLimits{}.severe_factor.value);
  CHECK(changed.accepted == std::vector<std::string>{"blocks.*.norm1"});
  for (const KindLimit& kind : changed.kinds)
    CHECK(kind.min_equal_share == (kind.kind == "linear" ? .9 : find_limit(kind.kind)->min_equal_share));
  CHECK(to_json(model_limits_of(to_json(changed).dump())) == to_json(changed));
}

TEST_CASE("limits of run: what is written is judged by") {
  CHECK(flipped_linear().verdict == Verdict::fail);
  {
    const InForce file(R"({"linear.bitwise_equal_share": {"value": 0.98, "origin": "another BLAS"}})");
    CHECK(flipped_linear().verdict == Verdict::pass);
    CHECK(flipped_linear().limits.front().origin == "table, linear: another BLAS");
  }
  {
    const InForce file(R"({"accept_paths": ["blocks.*"]})");
    CHECK(flipped_linear().verdict == Verdict::pass);
    CHECK(testing::contains(flipped_linear().diagnosis, "declared (accept_paths blocks.*): 1 % of elements differ"));
  }
  {
    const InForce file(R"({"accept_paths": ["encoder.*"]})");
    CHECK(flipped_linear().verdict == Verdict::fail);
  }
  CHECK(flipped_linear().verdict == Verdict::fail);
}

TEST_CASE("limits of run: a file that means nothing is refused in one line") {
  using testing::contains;
  CHECK(
      contains(refusal(R"({"half_ratio": {"value": 2, "origin": "x"}})"), "there is no threshold 'half_ratio' of run"));
  CHECK(contains(refusal(R"({"lineal.rel_l2_in_u": {"value": 2, "origin": "x"}})"), "there is no threshold 'lineal"));
  CHECK(contains(refusal(R"({"linear.bitwise_equal_share": {"value": 1.5, "origin": "x"}})"), "cannot be over 1"));
  CHECK(
      contains(refusal(R"({"linear.bitwise_equal_share": {"value": 0, "origin": "x"}})"), "must be a positive number"));
  CHECK(contains(refusal(R"({"severe_factor": {"value": 2}})"), "'origin' that says why"));
  CHECK(contains(refusal(R"({"severe_factor": 2})"), "'origin' that says why"));
  CHECK(contains(refusal("[]"), "is not a JSON object of thresholds"));
}

TEST_CASE("limits of run: --thresholds, and the file of all of them beside the report") {
  const test::Scratch scratch;
  const std::string common = "run --layer blocks.0.norm1 --mode forced --quiet --reference " +
                             test::reference_dump("diffusers-wan-t2v.fp32.h5").string() + " --out " +
                             (scratch / "out").string();
  CHECK(test::parity_check(common).status == 0);
  nlohmann::json limits = nlohmann::json::parse(test::read_text(scratch / "out/thresholds.json"));
  CHECK(limits == to_json(ModelLimits{}));
  limits["logic_rel_l2"] = {{"value", 1e-30}, {"origin", "a test"}};
  std::ofstream(scratch / "t.json") << limits.dump();
  CHECK(test::parity_check(common + " --thresholds " + (scratch / "t.json").string()).status == 0);  // bitwise equal
  const nlohmann::json report = nlohmann::json::parse(test::read_text(scratch / "out/report.json"));
  for (const auto& row : report["ops"]) CHECK(row["logic"]["limit"] == 1e-30);
  CHECK(!report["ops"].empty());
  CHECK(nlohmann::json::parse(test::read_text(scratch / "out/thresholds.json")) == limits);
  const test::Finished gone = test::parity_check(common + " --thresholds " + (scratch / "none.json").string());
  CHECK(gone.status == 2);
  CHECK(test::lines(gone.err) == 1);
}

}  // namespace parity
