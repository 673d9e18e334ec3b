#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/glob.hpp"
#include "pair/name_map.hpp"

using namespace parity;

TEST_CASE("map: captures carry over, later lines win, comments are dropped") {
  const auto map = NameMap::parse(
      "# Wan\n"
      "blocks.{i}.attn1.to_{x} = blocks.{i}.self_attn.{x}   # projections\n"
      "*.norm1 = *.first_norm\n"
      "blocks.{i}.attn1.to_q = blocks.{i}.self_attn.query\n"
      "\"\" = result\n",
      "m.map");
  CHECK(map.find("blocks.12.attn1.to_k")->candidate == "blocks.12.self_attn.k");
  CHECK(map.find("blocks.3.attn1.to_q")->candidate == "blocks.3.self_attn.query");
  CHECK(map.find("blocks.3.norm1")->candidate == "blocks.3.first_norm");
  CHECK(map.find("")->candidate == "result");
  CHECK_FALSE(map.find("blocks.3.attn1.to_k.x"));
  CHECK_FALSE(map.find("xblocks.3.attn1.to_k"));
  CHECK_FALSE(map.find("blocks.3+attn1+to_k"));  // a dot is a dot
}

TEST_CASE("map: a repeated name must match the same text") {
  const auto map = NameMap::parse("h.{i}.x.{i} = y.{i}", "m.map");
  CHECK(map.find("h.1.x.1")->candidate == "y.1");
  CHECK_FALSE(map.find("h.1.x.2"));
}

TEST_CASE("map: perm and split bring a candidate into the reference's layout, perm also back") {
  const auto map = NameMap::parse("q = qkv split(-1,0,3) perm(1,0)\nx = y perm(0,2,1)", "m.map");
  const auto fused = at::arange(18).reshape({2, 9});
  CHECK(at::equal(map.find("q")->layout.to_reference(fused), fused.narrow(1, 0, 3).t()));
  const auto candidate = at::arange(24).reshape({2, 3, 4});
  const auto layout = map.find("x")->layout;
  CHECK(at::equal(layout.to_reference(candidate), candidate.permute({0, 2, 1})));
  CHECK(at::equal(layout.to_candidate(layout.to_reference(candidate)), candidate));
  CHECK_THROWS_AS(map.find("q")->layout.to_candidate(fused), Error);
  CHECK_THROWS_AS(layout.to_reference(fused), Error);
}

TEST_CASE("map: slice, view and reshape, in the order of their meaning, and back") {
  const auto map = NameMap::parse(
      "q = qkv slice(-1,0,8)\n"
      "heads = y perm(0,2,1,3) view(2,3,-1,4)\n"
      "flat = z reshape(6,-1) perm(0,2,1,3)   # axes first, then the shape\n",
      "m.map");
  const auto fused = at::arange(2 * 3 * 12).reshape({2, 3, 12});
  CHECK(at::equal(map.find("q")->layout.to_reference(fused), fused.narrow(2, 0, 8)));
  const auto y = at::arange(2 * 3 * 8).reshape({2, 3, 8});
  const auto heads = map.find("heads")->layout;
  CHECK(at::equal(heads.to_reference(y), y.view({2, 3, 2, 4}).permute({0, 2, 1, 3})));
  CHECK(at::equal(heads.to_candidate(heads.to_reference(y), y.sizes()), y));
  CHECK_THROWS_AS(heads.to_candidate(heads.to_reference(y)), Error);
  const auto z = at::arange(2 * 5 * 3 * 4).reshape({2, 5, 3, 4});
  const auto flat = map.find("flat")->layout;
  CHECK(at::equal(flat.to_reference(z), z.permute({0, 2, 1, 3}).reshape({6, 20})));
  CHECK(at::equal(flat.to_candidate(flat.to_reference(z), z.sizes()), z));
  CHECK(flat.text() == "perm(0,2,1,3) reshape(6,-1)");
  CHECK(NameMap::parse("a = b " + heads.text(), "m.map").find("a")->layout.text() == heads.text());
  CHECK_THROWS_AS(map.find("q")->layout.to_reference(y.narrow(2, 0, 4)), Error);
  CHECK_THROWS_AS(flat.to_reference(at::arange(14).reshape({1, 7, 1, 2})), Error);
  CHECK_THROWS_AS(NameMap::parse("a = b slice(0,-1,2)", "m.map"), Error);
  CHECK_THROWS_AS(NameMap::parse("a = b view(-1,-1)", "m.map"), Error);
}

TEST_CASE("map: what cannot be meant is an error that names the line") {
  const auto message = [](const char* text) {
    try {
      NameMap::parse(text, "m.map");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message("\n\nfoo bar").starts_with("m.map:3: expected"));
  CHECK(message("a = b perm(0,0)").find("not a permutation") != std::string::npos);
  CHECK(message("a = b split(0,3,3)").find("split(0,3,3)") != std::string::npos);
  CHECK(message("a{i = b").find("without") != std::string::npos);
  CHECK_THROWS_AS(NameMap::parse("a = b.{i}", "m.map").find("a"), Error);
}

TEST_CASE("map: a rule that matches nothing is an error") {
  const auto map = NameMap::parse("a.* = b.*\nc = d", "m.map");
  CHECK_NOTHROW(map.require_all_used({{"a.1"}, {"c"}}));
  CHECK_THROWS_WITH(map.require_all_used({{"a.1"}}), "m.map:2: the rule 'c = d' matches nothing in the reference");
}

TEST_CASE("map: a rule holds for all calls, or for those that it names") {
  const auto map = NameMap::parse(
      "h.* = layer_*\nh.* call({n}) = step{n}/layer_*\nhead call(0) = t call(2) perm(1,0)\n\"\" call(1) = last\n"
      "tail = end",
      "m.map");
  const auto target = [&](const std::string& path, int call) {
    const auto found = map.find(path, call);
    return found ? found->candidate + call_text(found->call) : "none";
  };
  CHECK(target("h.3.x", 12) == "step12/layer_3.x call(0)");
  CHECK(map.find("h.3.x")->candidate == "layer_3.x");  // a weight has no calls
  CHECK(target("head", 0) == "t call(2)");
  CHECK(map.find("head", 0)->layout.text() == "perm(1,0)");
  CHECK(target("head", 1) == "none");
  CHECK(target("", 1) == "last call(0)");
  CHECK(target("", 0) == "none");
  CHECK(target("tail", 7) == "end call(7)");
  CHECK_THROWS_WITH(map.require_all_used({{"h.0", 0}, {"head", 1}, {"", 1}, {"tail", 0}}),
                    "m.map:3: the rule 'head call(0) = t call(2) perm(1,0)' matches nothing in the reference");
  CHECK_THROWS_AS(NameMap::parse("a call(x) = b", "m.map"), Error);
  CHECK_THROWS_AS(NameMap::parse("a call(1,2) = b", "m.map"), Error);
  CHECK_THROWS_WITH(NameMap::parse("{i}.a = b call({i})", "m.map").find("x.a", 0),
                    "m.map:1: 'x' is not the number of a call");
}

TEST_CASE("map: layer patterns") {
  CHECK(matches_layer("blocks.0.norm1", "all"));
  CHECK(matches_layer("blocks.0.norm1", "head*,blocks.0.*"));
  CHECK_FALSE(matches_layer("blocks.1.norm1", "head*,blocks.0.*"));
}
