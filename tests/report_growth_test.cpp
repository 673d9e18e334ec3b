#include "report/growth.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace parity {
namespace {

// `depth` blocks whose free-running error is c (block + 1)^p, and a deeper row in each that must not be taken.
Report growing(int depth, double p) {
  Report report;
  for (int i = 0; i < depth; ++i)
    for (const char* suffix : {"", ".norm1"}) {
      OpResult op;
      op.path = "blocks." + std::to_string(i) + suffix;
      op.dtype = "bf16";
      op.free.emplace();
      op.free->rel_l2 = (*suffix ? 7e-2 : 3e-3) * std::pow(i + 1, *suffix ? 3 : p);
      report.ops.push_back(op);
    }
  return report;
}

}  // namespace

TEST_CASE("report: the exponent of the error's growth is that of the shortest block pattern") {
  for (const double p : {.5, 1.}) {
    const std::vector<Growth> found = error_growth(growing(12, p));
    REQUIRE(found.size() == 1);
    CHECK(found[0].pattern == "blocks.*");
    CHECK(found[0].depth == 12);
    CHECK(found[0].exponent == doctest::Approx(p));
  }
}

TEST_CASE("report: three blocks, no error and rows without a number give no exponent") {
  CHECK(error_growth(growing(3, .5)).empty());
  CHECK(error_growth(Report()).empty());
  Report zero = growing(12, .5);
  for (OpResult& op : zero.ops) op.free->rel_l2 = 0;
  CHECK(error_growth(zero).empty());
}

TEST_CASE("report: the number of an op in its module and the steps of a Sequential are no depth") {
  Report report;
  const auto add = [&](const std::string& path, const std::string& kind, double error) {
    OpResult op;
    op.path = path;
    op.kind = kind;
    op.dtype = "bf16";
    op.shape = {1, 4};
    op.free.emplace();
    op.free->rel_l2 = error;
    report.ops.push_back(op);
  };
  for (int i = 0; i < 6; ++i) add("blocks.0/add." + std::to_string(i), "add", 1e-3 * (i + 1));
  CHECK(error_growth(report).empty());
  for (int i = 0; i < 5; ++i) add("img_emb.proj." + std::to_string(i), i % 2 ? "linear" : "layer_norm", 1e-3 * (i + 1));
  CHECK(error_growth(report).empty());
  for (int i = 0; i < 4; ++i) add("blocks." + std::to_string(i) + "/add.1", "add", 1e-3 * (i + 1));
  REQUIRE(error_growth(report).size() == 1);
  CHECK(error_growth(report)[0].pattern == "blocks.*/add.1");
  CHECK(error_growth(report)[0].exponent == doctest::Approx(1));
}

}  // namespace parity
