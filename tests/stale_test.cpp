// What a port repeats from before: told from one value that the reference, too, has in both places but for rounding.
#include <doctest/doctest.h>

#include <limits>

#include "diagnose/stale.hpp"

namespace parity {
namespace {

const std::set<std::string> kNoInputs;

// What is said of call 1, whose candidate begins as (or is) call 0's, where the reference has `first` and `second`.
std::string said(const at::Tensor& repeated, const at::Tensor& first, const at::Tensor& second) {
  StaleRegistry registry;
  CHECK(registry.seen_before("embedder", 0, repeated, first, kNoInputs).empty());
  return registry.seen_before("embedder", 1, repeated.narrow(0, 0, second.size(0)).clone(), second, kNoInputs);
}

}  // namespace

TEST_CASE("stale: a call's result again, where the reference has another one") {
  at::manual_seed(1);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor first = at::randn({18, 96}).to(dtype), second = at::randn({18, 96}).to(dtype);
    CHECK(said(first, first, second) == "call 0 of embedder");
    CHECK(said(first, first, second.narrow(0, 0, 5)) == "call 0 of embedder");
    CHECK(said(first, first, first * 1.01) == "call 0 of embedder");  // the next of 100 timesteps
    at::Tensor end = first.clone();
    end.narrow(0, 14, 4).copy_(second.narrow(0, 14, 4));  // another end
    CHECK(said(first, first, end) == "call 0 of embedder");
  }
  const at::Tensor ids = at::arange(20, 60), next = at::cat({at::arange(20, 59), at::full({1}, 7, at::kLong)});
  CHECK(said(ids, ids, next) == "call 0 of embedder");
}

TEST_CASE("stale: not where the reference has one value twice but for other kernels' rounding") {
  at::manual_seed(2);
  const at::Tensor row = at::randn({1, 96}), all = row.expand({18, 96}).contiguous();
  CHECK(said(all, all, all.narrow(0, 0, 5)).empty());
  const at::Tensor rounded = all * (1 + 4 * std::numeric_limits<float>::epsilon());
  CHECK(said(all, all, rounded.narrow(0, 0, 5)).empty());
  CHECK(said(all, all, rounded).empty());
  const at::Tensor half = all.to(at::kBFloat16);
  at::Tensor flipped = half.clone();
  flipped.view(at::kShort).select(1, 3).add_(1);  // one unit in the last place of one channel
  CHECK(said(half, half, flipped).empty());
  at::Tensor holes = all.clone();
  holes.select(1, 7).fill_(std::numeric_limits<float>::quiet_NaN());
  CHECK(said(holes, holes, holes.clone()).empty());
}

}  // namespace parity
