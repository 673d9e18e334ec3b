// What failing rows have in common: planted attributes are found, chance is not.
#include "report/discriminator.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace parity {
namespace {

/// A transformer's rows: `layers` blocks of eight ops in two dtypes, heads of 64, two steps.
Report transformer(int layers) {
  const std::vector<std::pair<std::string, std::string>> ops{
      {"norm1", "layer_norm"}, {"attn.to_q", "linear"}, {"attn.to_k", "linear"}, {"attn.to_v", "linear"},
      {"attn", "attention"},   {"norm2", "layer_norm"}, {"ffn.act", "gelu"},     {"ffn.out", "linear"}};
  Report report;
  for (int call = 0; call < 2; ++call)
    for (const char* dtype : {"fp32", "bf16"})
      for (int layer = 0; layer < layers; ++layer)
        for (const auto& [name, kind] : ops) {
          OpResult op;
          op.path = "blocks." + std::to_string(layer) + "." + name;
          op.candidate_path = "decoder." + std::to_string(layer) + "/" + kind + ".0";
          op.kind = kind;
          op.dtype = op.tensor_dtype = dtype;
          op.call = call;
          op.shape = kind == "attention" ? std::vector<int64_t>{1, 8, 12, 64} : std::vector<int64_t>{1, 12, 512};
          op.verdict = Verdict::pass;
          report.ops.push_back(op);
        }
  return report;
}

template <class F>
Report failing_where(Report report, F wanted) {
  for (OpResult& op : report.ops)
    if (wanted(op)) op.verdict = Verdict::fail, op.gate = Gate::logic;
  return report;
}

std::string attribute(const Report& report) {
  const auto found = discriminate(report);
  return found ? found->attribute : "";
}

}  // namespace

TEST_CASE("report: Fisher's exact test has the textbook's numbers") {
  CHECK(fisher_exact(3, 4, 4, 8) == doctest::Approx(17. / 70));  // Fisher's tea
  CHECK(fisher_exact(4, 4, 4, 8) == doctest::Approx(1. / 70));
  CHECK(fisher_exact(0, 4, 4, 8) == doctest::Approx(1));
  CHECK(fisher_exact(2, 2, 3, 54) == doctest::Approx(3. / 1431));
}

TEST_CASE("report: an attribute that splits failures from passes is found, of every sort") {
  Report rows = transformer(6);
  for (OpResult& op : rows.ops)
    if (op.path.ends_with("attn") && op.path.starts_with("blocks.1")) op.shape.back() = 80;
  for (OpResult& op : rows.ops)
    if (op.path.ends_with("attn") && op.path.starts_with("blocks.4")) op.shape.back() = 80;
  const auto head = discriminate(failing_where(rows, [](const OpResult& op) { return op.shape.back() == 80; }));
  REQUIRE(head);
  CHECK(head->attribute == "last dimension = 80");
  CHECK(head->failing_with == 8);
  CHECK(head->with == 8);
  CHECK(head->failing_without == 0);
  CHECK(head->without == 184);
  CHECK(head->sentence().find("8 of 8 rows with last dimension = 80 fail, 0 of 184 others") == 0);
  CHECK(attribute(failing_where(rows, [](const OpResult& op) { return op.kind == "gelu"; })) == "kind = gelu");
  CHECK(attribute(failing_where(rows, [](const OpResult& op) { return op.dtype == "bf16"; })) == "dtype = bf16");
  CHECK(attribute(failing_where(rows, [](const OpResult& op) { return op.call > 0; })) == "call = 1");
  CHECK(attribute(failing_where(rows, [](const OpResult& op) { return op.path[7] % 2 == 1; })) == "layer = odd");
  CHECK(attribute(failing_where(rows, [](const OpResult& op) { return op.path[7] == '5'; })) == "layer = the last");
  CHECK(attribute(failing_where(rows, [](const OpResult& op) { return op.path.ends_with("to_q"); })) ==
        "part of the path = to_q");
}

TEST_CASE("report: a pair of attributes is named where no single one splits as well") {
  const Report rows = transformer(6);
  const std::string found =
      attribute(failing_where(rows, [](const OpResult& op) { return op.kind == "linear" && op.dtype == "bf16"; }));
  CHECK(found == "kind = linear and dtype = bf16");
  // With a few others that do not fit: still the same, with its numbers.
  int n = 0;
  const auto noisy = discriminate(failing_where(rows, [&](const OpResult& op) {
    const bool other = op.kind == "gelu" && n++ % 12 == 0;
    return (op.kind == "linear" && op.dtype == "bf16") || other;
  }));
  REQUIRE(noisy);
  CHECK(noisy->attribute == "kind = linear and dtype = bf16");
  CHECK(noisy->failing_without == 2);
}

TEST_CASE("report: nothing is said of one failure, of all rows failing, of inherited errors, and of none") {
  const Report rows = transformer(4);
  CHECK_FALSE(discriminate(rows));
  CHECK_FALSE(discriminate(Report()));
  CHECK_FALSE(discriminate(failing_where(rows, [](const OpResult&) { return true; })));
  CHECK_FALSE(discriminate(failing_where(
      rows, [&](const OpResult& op) { return op.path == "blocks.0.norm1" && op.call == 0 && op.dtype == "fp32"; })));
  Report inherited = failing_where(rows, [](const OpResult& op) { return op.kind == "gelu"; });
  for (OpResult& op : inherited.ops)
    if (op.verdict == Verdict::fail) op.gate = Gate::propagation;
  CHECK_FALSE(discriminate(inherited));
}

TEST_CASE(
    "report: of 1000 reports whose failures are drawn by chance fewer than one in a hundred has a common attribute") {
  const Report rows = transformer(3);
  std::mt19937 random(7);
  int alarms = 0;
  for (int draw = 0; draw < 1000; ++draw) {
    std::vector<size_t> order(rows.ops.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    Report report = rows;
    const size_t failing = 2 + static_cast<size_t>(draw) % 24;
    for (size_t i = 0; i < failing; ++i)
      report.ops[order[i]].verdict = Verdict::fail, report.ops[order[i]].gate = Gate::logic;
    alarms += discriminate(report).has_value();
  }
  CHECK(alarms <= 1000 * kDiscriminatorAlarms);
}

}  // namespace parity
