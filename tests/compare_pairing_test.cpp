// Automatic pairing: real recordings next to the re-implementation under its own names, faults, and made-up lists.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "compare_pairing_data.hpp"
#include "pair/by_content.hpp"
#include "wan_dumps.hpp"

using namespace parity;
using namespace parity::test;

namespace {

// A recording, a run of the re-implementation, and which is which by the model's map.
struct Lists {
  explicit Lists(const WanCase& c) {
    std::vector<size_t> boundaries;
    reference = recorded_tensors(c.dump, c.program, &boundaries);
    std::map<size_t, size_t> place;
    for (size_t i = 0; i < boundaries.size(); ++i) place[boundaries[i]] = i;
    for (const auto& pair : c.pairs) by_point[pair.candidate] = place.at(pair.boundary);
  }

  void run(const WanCase& c, const std::map<std::string, at::Tensor>& values) {
    candidate.clear(), truth.clear(), back.clear();
    for (const auto& point : c.points) {
      if (!values.count(point)) continue;
      const auto known = by_point.find(point);
      if (known != by_point.end()) truth[candidate.size()] = known->second, back[known->second] = candidate.size();
      candidate.push_back(named(point, values.at(point)));
    }
  }

  std::vector<NamedTensor> reference, candidate;
  std::map<std::string, size_t> by_point;
  std::map<size_t, size_t> truth, back;  // candidate -> reference, and the other way
};

void check(const std::string& what, const PairingScore& s, double least) {
  INFO(what, ": right ", s.right, ", wrong ", s.wrong, ", missed ", s.missed, " of ", s.comparable, "\n",
       fmt::format("{}", fmt::join(s.faults, "\n")));
  CHECK(s.comparable > 0);
  CHECK(s.wrong == 0);
  CHECK(static_cast<double>(s.missed) <= (1 - least) * static_cast<double>(s.comparable));
}

}  // namespace

// The rules were tuned on these very recordings; measured: all of 6 x 2 lists, 1151 pairs (doubles of equal content
// included), none wrong.
TEST_CASE("pairing: recordings and the re-implementation find each other without a map, both ways") {
  for (const auto* name : {"diffusers-skyreels-v2-i2v.bf16", "diffusers-wan-t2v.fp32", "diffusers-skyreels-v2-df.fp32",
                           "skyreels-v2-i2v.bf16", "wan-i2v.bf16", "wan-t2v.fp32"}) {
    const WanCase c(name);
    Lists lists(c);
    lists.run(c, model_values(c, Precision::recorded, nullptr));
    check(name,
          score(pair_automatically(lists.reference, lists.candidate), lists.reference, lists.candidate, lists.truth),
          0.98);
    check(std::string(name) + ", exchanged",
          score(pair_automatically(lists.candidate, lists.reference), lists.candidate, lists.reference, lists.back),
          0.98);
  }
}

TEST_CASE("pairing: bf16 next to fp32, whose contents differ by rounding") {
  for (const auto* name : {"diffusers-skyreels-v2-i2v.bf16", "diffusers-wan-t2v.bf16", "skyreels-v2-t2v.bf16"}) {
    const WanCase c(name);
    Lists lists(c);
    lists.run(c, model_values(c, Precision::fp32, nullptr));
    check(name,
          score(pair_automatically(lists.reference, lists.candidate), lists.reference, lists.candidate, lists.truth),
          0.95);
  }
}

// Measured after tuning, right of comparable: 48 / 79, 69 / 79, 45 / 79 and 60 / 91, 75 / 91, 58 / 91; none wrong. The
// limits lie just below: they guard what is reached, they are not a promise for other models.
TEST_CASE("pairing: a fault in the first block leaves the pairs, whatever it does to the contents downstream") {
  const auto forget_one = [](WanOps& ops) {
    ops.modulate = [](at::Tensor x, auto& scale, auto& shift, Precision p) {
      return ops::mul_add_add(std::move(x), scale - 1, shift, p);
    };
  };
  const auto no_rope = [](WanOps& ops) { ops.rope = [](auto& x, auto&, Precision) { return x.to(at::kDouble); }; };
  const auto noise = [](WanOps& ops) {  // everything from the first norm on is something else
    ops.layer_norm = [](auto& x, auto&, auto&, double, auto, auto out) { return random_tensor(x.sizes(), 5).to(out); };
  };
  const std::vector<std::tuple<std::string, std::function<void(WanOps&)>, double>> faults = {
      {"1 + forgotten", forget_one, 0.6}, {"RoPE left out", no_rope, 0.75}, {"norms are noise", noise, 0.55}};
  for (const auto* name : {"diffusers-wan-t2v.fp32", "skyreels-v2-t2v.bf16"})
    for (const auto& [what, put, least] : faults) {
      const WanCase c(name);
      Lists lists(c);
      WanOps ops;
      put(ops);
      lists.run(c, model_values(c, Precision::recorded, nullptr, ops));
      check(fmt::format("{}, {}", name, what),
            score(pair_automatically(lists.reference, lists.candidate), lists.reference, lists.candidate, lists.truth),
            least);
    }
}

// Measured after tuning: 29 of 76 and 51 of 70 paired, none wrong.
TEST_CASE("pairing: other weights, so no content agrees: names and order pair some, never wrongly") {
  for (const auto& [one, other] : {std::pair{"diffusers-skyreels-v2-i2v.fp32", "skyreels-v2-i2v.fp32"},
                                   std::pair{"skyreels-v2-t2v.fp32", "wan-t2v.fp32"}}) {
    const WanCase a(one), b(other);
    Lists lists(a);
    lists.run(b, model_values(b, Precision::recorded, nullptr));
    std::erase_if(lists.truth, [&](const auto& pair) {
      return lists.candidate[pair.first].shape != lists.reference[pair.second].shape;
    });
    const auto pairing = pair_automatically(lists.reference, lists.candidate);
    check(fmt::format("{} and {}", one, other), score(pairing, lists.reference, lists.candidate, lists.truth), 0.35);
    for (const AutoPair& pair : pairing.pairs)
      if (lists.reference[pair.reference].path.find("blocks") != std::string::npos) {
        INFO(lists.reference[pair.reference].path, " = ", lists.candidate[pair.candidate].path, " ", pair.evidence);
        CHECK(pair.confidence <= 0.85);
      }
  }
}

TEST_CASE("pairing: another order, equal contents, repeated calls") {
  const auto t = [](uint64_t seed) { return random_tensor({1, 8, 12}, seed); };
  SUBCASE("q, k, v in another order") {
    const auto pairing = pair_automatically(
        {named("in", t(1)), named("q", t(2)), named("k", t(3)), named("v", t(4)), named("out", t(5))},
        {named("a", t(1)), named("b", t(4)), named("c", t(3)), named("d", t(2)), named("e", t(5))});
    std::map<size_t, size_t> found;
    for (const auto& pair : pairing.pairs) found[pair.candidate] = pair.reference;
    CHECK(found == std::map<size_t, size_t>{{0, 0}, {1, 3}, {2, 2}, {3, 1}, {4, 4}});
  }
  SUBCASE("of equal contents the most similar name, else the module, else the first") {
    const auto first = pair_automatically(
        {named("b/mul.0", t(1)), named("b.o", t(1)), named("b.drop", t(1)), named("b", t(1))}, {named("x", t(1))});
    REQUIRE(first.pairs.size() == 1);
    CHECK(first.pairs[0].reference == 1);
    CHECK(first.pairs[0].evidence.find("as in 3 others") != std::string::npos);
    const auto named_so = pair_automatically(
        {named("b/mul.0", t(1)), named("b.o", t(1)), named("b.drop", t(1)), named("b", t(1))}, {named("drop", t(1))});
    REQUIRE(named_so.pairs.size() == 1);
    CHECK(named_so.pairs[0].reference == 2);
  }
  SUBCASE("a value of a residual stream, as like an earlier one, crosses nothing") {
    const at::Tensor x = t(1), later = x + .002 * t(2);
    const auto pairing =
        pair_automatically({named("embed", x), named("block.norm", t(4)), named("block/add.0", later)},
                           {named("n1", t(4)), named("res1", x + .008 * t(3)), named("res2", later + 1e-4 * t(5))});
    CHECK(pairing.pairs.size() == 2);
    for (const auto& pair : pairing.pairs) CHECK_MESSAGE(pair.candidate != 1, pair.evidence);
  }
  SUBCASE("calls of equal content pair in order") {
    std::vector<NamedTensor> reference, candidate;
    for (int call = 0; call < 4; ++call) {
      reference.push_back(named("time", t(1), call)), reference.push_back(named("block", t(10 + call), call));
      candidate.push_back(named("t_emb", t(1), call)), candidate.push_back(named("layer", t(10 + call), call));
    }
    const auto pairing = pair_automatically(reference, candidate);
    CHECK(pairing.pairs.size() == 8);
    for (const auto& pair : pairing.pairs) CHECK(pair.reference == pair.candidate);
  }
}

TEST_CASE("pairing: what is beside a tensor says where it belongs, and never enough alone") {
  const auto t = [](uint64_t seed) { return random_tensor({1, 8, 12}, seed); };
  SUBCASE("position alone pairs nothing") {
    const auto pairing = pair_automatically({named("a", t(1)), named("b", t(2)), named("c", t(3))},
                                            {named("x", t(1)), named("y", t(9)), named("z", t(3))});
    CHECK(pairing.pairs.size() == 2);
    CHECK(pairing.unpaired_candidate == std::vector<size_t>{1});
    CHECK(pairing.unpaired_reference == std::vector<size_t>{1});
  }
  SUBCASE("anchors are kept out and teach names") {
    const auto pairing =
        pair_automatically({named("blocks.0.foo", t(1)), named("blocks.1.foo", t(2)), named("end", t(3))},
                           {named("layers_0/bar", t(7)), named("layers_1/bar", t(8)), named("last", t(3))}, {{0, 0}});
    REQUIRE(pairing.pairs.size() == 2);
    CHECK(pairing.pairs[0].reference == 1);
    CHECK(pairing.pairs[0].candidate == 1);
    CHECK(pairing.pairs[0].evidence.find("content differs") == 0);
    CHECK(pairing.pairs[0].evidence.find("name learned") != std::string::npos);
    CHECK(pairing.unpaired_reference.empty());
  }
}

TEST_CASE("pairing: masks, constants, NaN, nothing at all") {
  const at::Tensor mask = at::ones({4, 4}, at::kBool).tril(), zeros = at::zeros({3, 5});
  CHECK(pair_automatically({named("p", mask)}, {named("x", mask)}).pairs.empty());    // a mask is not a fingerprint
  CHECK(pair_automatically({named("p", zeros)}, {named("x", zeros)}).pairs.empty());  // and zeros are none
  CHECK(pair_automatically({named("attn.mask", mask)}, {named("attn_mask", mask)}).pairs.size() == 1);
  CHECK(pair_automatically({named("e", at::empty({0, 3}))}, {named("x", at::empty({0, 3}))}).pairs.empty());
  CHECK(pair_automatically({}, {named("x", zeros)}).unpaired_candidate.size() == 1);
  CHECK(pair_automatically({named("x", zeros)}, {}).unpaired_reference.size() == 1);
  at::Tensor holed = random_tensor({6, 20}, 1);
  holed[2][3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(pair_automatically({named("p", holed)}, {named("x", holed)}).pairs.size() == 1);
  CHECK(fingerprint_of(holed).nonfinite == 1);
  const auto broken = pair_automatically({named("blocks.0.ffn", random_tensor({6, 20}, 1))},
                                         {named("blocks.0.ffn", at::full({6, 20}, NAN))});
  CHECK(broken.pairs.size() == 1);  // all NaN: by its name
}

TEST_CASE("pairing: ten thousand tensors next to ten thousand") {
  std::vector<NamedTensor> reference, candidate;
  for (int block = 0; block < 100; ++block)
    for (int op = 0; op < 100; ++op) {
      const at::Tensor value = random_tensor({1, 8, 48}, 1000 * block + op);
      reference.push_back(named(fmt::format("blocks.{}.part{}", block, op), value));
      if (op % 10 != 3)
        candidate.push_back(named(fmt::format("Stage_{}/Op_{}", block, op),
                                  (value + 0.01 * random_tensor({1, 8, 48}, 7)).to(at::kBFloat16)));
      if (op % 10 == 3)
        candidate.push_back(named(fmt::format("Stage_{}/Extra_{}", block, op),
                                  random_tensor({1, 8, 48}, 1'000'000 + 1000 * block + op)));
    }
  const auto begin = std::chrono::steady_clock::now();
  const auto pairing = pair_automatically(reference, candidate);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CHECK(pairing.pairs.size() == 9000);
  CHECK(std::all_of(pairing.pairs.begin(), pairing.pairs.end(),
                    [](const AutoPair& p) { return p.reference == p.candidate; }));
  MESSAGE("10000 x 10000: ", seconds, " s");
  CHECK(seconds < 60);  // 4 s on one idle core; a loaded machine must not fail it
}
