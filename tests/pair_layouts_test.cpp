// Automatic pairing of what another program keeps in another layout.
#include <doctest/doctest.h>

#include <limits>

#include "compare_pairing_data.hpp"
#include "pair/by_content.hpp"
#include "pair/links.hpp"

using namespace parity;
using namespace parity::test;

TEST_CASE("pairing: layouts: axes exchanged, merged, parts of fused tensors") {
  struct Case {
    const char* name;
    at::Tensor candidate, reference;
    const char* layout;
  };
  const at::Tensor video = random_tensor({2, 6, 3, 4, 5}, 1), heads = random_tensor({2, 7, 4, 16}, 2);
  const at::Tensor fused = random_tensor({2, 7, 3 * 48}, 3), grouped = random_tensor({2, 7, (4 + 2) * 16}, 4);
  const std::vector<Case> cases = {
      {"as it is", heads, heads, ""},
      {"NDHWC", video.permute({0, 2, 3, 4, 1}).contiguous(), video, "perm(0,4,1,2,3)"},
      {"(B,H,S,D)", heads.permute({0, 2, 1, 3}), heads, "perm(0,2,1,3)"},
      {"heads merged", heads.reshape({2, 7, 64}), heads, "reshape(2,7,4,16)"},
      {"heads first and merged", heads.permute({0, 2, 1, 3}).contiguous(), heads.reshape({14, 64}),
       "perm(0,2,1,3) reshape(14,64)"},
      {"merged, wanted heads first", heads.reshape({2, 7, 64}), heads.permute({0, 2, 1, 3}),
       "view(2,7,4,16) perm(0,2,1,3)"},
      {"key of q, k, v", fused, fused.narrow(2, 48, 48), "split(2,1,3)"},
      {"value of q, k, v as heads", fused, fused.narrow(2, 96, 48).reshape({2, 7, 3, 16}).permute({0, 2, 1, 3}),
       "split(2,2,3) view(2,7,3,16) perm(0,2,1,3)"},
      {"query of grouped attention", grouped, grouped.narrow(2, 0, 64), "slice(2,0,64)"},
      {"value of grouped attention", grouped, grouped.narrow(2, 80, 16), "split(2,5,6)"},
      {"without the batch", heads[0], heads.narrow(0, 0, 1), "reshape(1,7,4,16)"}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto pairing = pair_automatically({named("a.b", c.reference)}, {named("x_y", c.candidate)});
    REQUIRE(pairing.pairs.size() == 1);
    CHECK(pairing.pairs[0].layout.text() == c.layout);
    CHECK(at::equal(pairing.pairs[0].layout.to_reference(c.candidate), c.reference));
  }
  // and no layout at all makes them equal
  CHECK(pair_automatically({named("a.b", heads)}, {named("x_y", random_tensor({2, 7, 4, 16}, 9))}).pairs.empty());
}

TEST_CASE("pairing: layouts of engines: rows of heads interleaved, keys padded to the cache's length") {
  const at::Tensor halves = random_tensor({1, 24, 4, 16}, 1), scores = random_tensor({1, 4, 24, 24}, 2);
  const auto interleaved = [](const at::Tensor& t) {  // x0 x1 … y0 y1 … -> x0 y0 x1 y1 …
    return t.unflatten(-1, {2, -1}).transpose(-1, -2).flatten(-2).contiguous();
  };
  struct Case {
    const char* name;
    at::Tensor candidate, reference;
    const char* layout;
  };
  const std::vector<Case> cases = {
      {"after RoPE", interleaved(halves)[0], halves.transpose(1, 2), "view(24,4,8,2) perm(1,0,3,2) reshape(1,4,24,16)"},
      {"heads in one axis", interleaved(halves)[0].reshape({24, 64}), halves.reshape({1, 24, 64}),
       "view(24,4,8,2) perm(0,1,3,2) reshape(1,24,64)"},
      {"the other way round", halves.reshape({1, 24, 64}), interleaved(halves).reshape({1, 24, 64}),
       "view(1,24,4,2,8) perm(0,1,2,4,3) reshape(1,24,64)"},
      {"padded", at::constant_pad_nd(scores[0], {0, 232}), scores, "slice(2,0,24) reshape(1,4,24,24)"}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const NamedTensor engine{"x_y", 0, at::kFloat, c.candidate.sizes().vec(),
                             fingerprint_of(c.candidate, Origin::engine)};
    const auto pairing = pair_automatically({named("a.b", c.reference)}, {engine});
    REQUIRE(pairing.pairs.size() == 1);
    const std::string text = pairing.pairs[0].layout.text();
    CHECK(text == c.layout);
    const auto rule = NameMap::parse("a.b = x_y " + text, "map").find("a.b");  // as a map file says it
    REQUIRE(rule.has_value());
    CHECK(at::equal(rule->layout.to_reference(c.candidate), c.reference));
  }
}

TEST_CASE("pairing: a fused reference of a split candidate stays unpaired, with a note") {
  const at::Tensor fused = random_tensor({1, 9, 96}, 1);
  const auto pairing = pair_automatically(
      {named("attn.qkv", fused)}, {named("attn.q", fused.narrow(2, 0, 32)), named("attn.k", fused.narrow(2, 32, 32))});
  CHECK(pairing.pairs.empty());
  CHECK(pairing.unpaired_candidate.size() == 2);
  REQUIRE(pairing.notes.size() == 2);
  CHECK(pairing.notes[1] ==
        "'attn.k' of the candidate is part of 'attn.qkv' of the reference (split(2,1,3)): unpaired");
}

TEST_CASE("pairing: contents whose norms differ in the last bits are the same") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const NamedTensor reference = named("a.b", random_tensor({12, 64}, seed));
    for (int bits = -4; bits <= 4; ++bits) {  // its sums were taken in another order
      NamedTensor candidate = reference;
      candidate.print.rms *= 1 + bits * std::numeric_limits<double>::epsilon();
      const auto link = compare_content(reference, candidate);
      CAPTURE(seed);
      CAPTURE(bits);
      REQUIRE(link.has_value());
      CHECK(link->distance < 1e-6);
    }
  }
}
