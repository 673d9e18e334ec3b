// What a reference's dataflow forbids: a tensor that was there before what it is computed from.
#include <doctest/doctest.h>

#include "command.hpp"
#include "dump/dump.hpp"
#include "pair/order.hpp"

using namespace parity;
using namespace parity::test;

namespace {

using Pairs = std::vector<std::pair<size_t, size_t>>;

// Every fourth boundary of the module paired in order, candidate tensors 10, 11, …
Pairs in_order(const Program& program) {
  Pairs pairs;
  for (size_t b = 0; b < program.boundaries.size(); b += 4) pairs.emplace_back(b, 10 + pairs.size());
  return pairs;
}

}  // namespace

TEST_CASE("pair order: a value of an earlier run is found out, a file in no order is left alone") {
  const Dump dump(reference_dump("transformers-gpt2.fp32.h5"));
  const Program program = load_program(dump);
  const Pairs right = in_order(program);
  REQUIRE(right.size() > 20);
  CHECK(before_their_causes(program, right).empty());
  Pairs stale = right;
  stale[right.size() - 3].second = 1;  // before everything
  CHECK(before_their_causes(program, stale) == std::vector<size_t>{right[right.size() - 3].first});
  Pairs late = right;
  late[2].second = 1000;  // recorded once more behind all: what is computed from it is no earlier run's
  CHECK(before_their_causes(program, late).empty());
  Pairs backwards = right;
  for (auto& [b, c] : backwards) c = 1000 - c;
  CHECK(before_their_causes(program, backwards).empty());
}

TEST_CASE("pair order: recorded again later is possible, long before is not") {
  const Dump dump(reference_dump("transformers-gpt2.fp32.h5"));
  const Program program = load_program(dump);
  Pairs known = in_order(program);
  const auto [boundary, candidate] = known[10];
  known.erase(known.begin() + 10);
  const PairingOrder order(program, known);
  CHECK(order.possible(boundary, candidate));
  CHECK_FALSE(order.possible(boundary, 2000));
  CHECK(order.possible_again(boundary, 2000));
  CHECK_FALSE(order.possible_again(boundary, 1));
}

TEST_CASE("pair order: a stale value is behind what is computed from the one it repeats, and it alone") {
  const Dump dump(reference_dump("transformers-gpt2.fp32.h5"));
  const Program program = load_program(dump);
  const Pairs right = in_order(program);
  CHECK(behind_their_effects(program, right).empty());
  Pairs stale = right;
  stale[2].second = 1000;
  CHECK(behind_their_effects(program, stale) == std::vector<size_t>{right[2].first});
  Pairs last = right;
  last.back().second = 1000;  // nothing follows from it
  CHECK(behind_their_effects(program, last).empty());
  Pairs backwards = right;
  for (auto& [b, c] : backwards) c = 1000 - c;
  CHECK(behind_their_effects(program, backwards).empty());
}
