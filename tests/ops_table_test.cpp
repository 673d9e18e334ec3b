// One sweep over the op table: every op, case and storage dtype against its independent fp64 reference, held to the
// bound beside its code.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "ops/own.hpp"
#include "ops/table.hpp"

using namespace parity;

namespace {

constexpr at::ScalarType kStorages[] = {at::kDouble, at::kFloat, at::kBFloat16};

// LibTorch's code and the others of a row.
std::vector<OpVariant> variants_of(const OpRow& row) {
  std::vector<OpVariant> all{{"aten", row.run, row.bounds}};
  all.insert(all.end(), row.variants.begin(), row.variants.end());
  return all;
}

const OpBound* bound_of(const OpVariant& variant, at::ScalarType storage) {
  for (const auto& bound : variant.bounds)
    if (bound.storage == storage && (bound.ulp || bound.rel_l2)) return &bound;
  return nullptr;
}

OpCase stored(const OpCase& from, at::ScalarType storage) {
  OpCase to{from.name, {}};
  for (const auto& tensor : from.in) to.in.push_back(tensor.to(storage));
  return to;
}

// Why it fails; empty when it holds. `!(x <= limit)`: a NaN statistic must fail.
std::string verdict(const OpError& e, const OpBound* bound) {
  if (!bound) return "no bound: measure it and write it beside the op";
  if (e.count == 0 || e.zeros * 10 > e.count * 9) return "nothing was exercised";
  if (e.special_mismatch) return fmt::format("{} NaN or infinities differ", e.special_mismatch);
  if (bound->ulp && !(e.max_ulp <= *bound->ulp))
    return fmt::format("{} ulp > {} at [{}]: got {:a} want {:a}", e.max_ulp, *bound->ulp, e.worst, e.worst_actual,
                       e.worst_expected);
  if (bound->rel_l2 && !(e.rel_l2 <= *bound->rel_l2))
    return fmt::format("relative L2 {:.3g} u > {}", e.rel_l2, *bound->rel_l2);
  return "";
}

// A line for scripts/op_bounds.
void print_measured(const OpRow& row, const OpVariant& variant, at::ScalarType storage, const OpCase& c,
                    const OpError& e) {
  const OpBound none{storage, {}, {}}, *bound = bound_of(variant, storage);
  const OpBound& b = bound != nullptr ? *bound : none;
  const auto limit = [](const std::optional<double>& x) { return x ? fmt::format("{:g}", *x) : ""; };
  fmt::print(stderr, "{}\n",
             fmt::format("{};{};{};{};{:.3g};{};{:.3g};{};[{}] got {:a} want {:a}", row.name, variant.name,
                         short_dtype_name(storage), c.name, e.max_ulp, limit(b.ulp), e.rel_l2, limit(b.rel_l2), e.worst,
                         e.worst_actual, e.worst_expected));
}

}  // namespace

TEST_CASE("ops: every op of the table holds its bound in every precision, in every variant") {
  const bool print = std::getenv("PARITY_PRINT_OPS");  // scripts/op_bounds
  for (const OpRow* row : op_table())
    for (const auto storage : kStorages)
      for (const auto& c : row->cases()) {
        const auto rounded = stored(stored(c, storage), at::kDouble);  // both sides see the same numbers
        const auto expected = row->reference(rounded);  // three quarters of the time: once for all variants
        for (const OpVariant& variant : variants_of(*row)) {
          CAPTURE(row->name);
          CAPTURE(variant.name);
          CAPTURE(short_dtype_name(storage));
          CAPTURE(c.name);
          const auto e = measure_op(expected, variant.run(stored(c, storage)));
          if (print) print_measured(*row, variant, storage, c, e);
          CHECK(verdict(e, bound_of(variant, storage)) == "");
        }
      }
}

TEST_CASE("ops: names in the table are unique") {
  std::map<std::string, int> seen;
  for (const OpRow* row : op_table()) CHECK(seen[std::string(row->name)]++ == 0);
  CHECK(seen.size() >= 25);
}

// The sweep proves itself: a missing bound, a wrong result, NaN, and a result that exercises nothing all go red.
TEST_CASE("ops: the sweep goes red for an op without bound, a fault, NaN and all zeros") {
  const auto x = spread({4, 5}, 1);
  const OpBound one_ulp{at::kFloat, 1.0, {}}, small{at::kFloat, {}, 4.0};
  CHECK(verdict(measure_op(x, x.to(at::kFloat)), &one_ulp) == "");
  CHECK(verdict(measure_op(x, x.to(at::kFloat)), nullptr) != "");
  CHECK(verdict(measure_op(x, x.to(at::kFloat) * (1 + 1e-6)), &one_ulp) != "");
  CHECK(verdict(measure_op(x, x.to(at::kFloat) * (1 + 1e-6)), &small) != "");
  CHECK(verdict(measure_op(x, at::full_like(x, NAN).to(at::kFloat)), &small) != "");
  CHECK(verdict(measure_op(at::zeros_like(x), at::zeros_like(x)), &one_ulp) != "");
  CHECK_THROWS_AS(measure_op(x, x.t()), Error);
}

// One-line faults of attention over grouped heads, a window and sinks, against the row that judges both variants.
TEST_CASE("ops: window, sink, head and cache faults of attention go red in every precision") {
  const auto faulty = [](const OpCase& c, int fault) {
    const auto& sinks = c.in[3];
    const auto heads_tiled = [&](const at::Tensor& t) { return t.repeat({1, c.in[0].size(1) / t.size(1), 1, 1}); };
    const auto shifted = [](const at::Tensor& t) { return t.roll(1, 2); };
    switch (fault) {
      case 0:
        return ops::own_causal_attention(c.in[0], c.in[1], c.in[2], {6, sinks});  // the row's window is 5
      case 1:
        return ops::own_causal_attention(c.in[0], c.in[1], c.in[2], {5, {}});  // sinks left out
      case 2:
        return ops::own_causal_attention(c.in[0], heads_tiled(c.in[1]), heads_tiled(c.in[2]), {5, sinks});
      default:
        return ops::own_causal_attention(c.in[0], shifted(c.in[1]), shifted(c.in[2]), {5, sinks});
    }
  };
  const OpRow& row = causal_attention_sinks_row();
  const OpCase grouped = row.cases()[2];
  for (const auto storage : kStorages)
    for (int fault = 0; fault < 4; ++fault) {
      CAPTURE(fault);
      CAPTURE(short_dtype_name(storage));
      const auto expected = row.reference(stored(stored(grouped, storage), at::kDouble));
      CHECK(verdict(measure_op(expected, faulty(stored(grouped, storage), fault)),
                    bound_of(row.variants[0], storage)) != "");
    }
}

TEST_CASE("ops: NaN and infinity go through our own attention") {
  auto c = causal_attention_row().cases()[0];
  c.in[1][0][0][2][0] = NAN;
  const auto y = ops::own_causal_attention(c.in[0], c.in[1], c.in[2], {});
  CHECK_FALSE(y[0][0].slice(0, 0, 2).isnan().any().item<bool>());  // before the token that has it
  CHECK(y[0][0].slice(0, 2).isnan().all().item<bool>());
  CHECK_FALSE(y[0][1].isnan().any().item<bool>());
}

TEST_CASE("ops: ULPs count neighbours, across zero too") {
  const auto one = at::ones({1}, at::kDouble);
  CHECK(measure_op(one, one.to(at::kBFloat16)).max_ulp == 0);
  CHECK(measure_op(one, (one * (1 + 0x1p-7)).to(at::kBFloat16)).max_ulp == 1);
  CHECK(measure_op(one, (one * (1 - 0x1p-8)).to(at::kBFloat16)).max_ulp == 1);
  CHECK(measure_op(one * 0x1p-149, (one * -0x1p-149).to(at::kFloat)).max_ulp == 2);
  CHECK(measure_op(one * 0.0, (one * -0.0).to(at::kFloat)).max_ulp == 0);
}
