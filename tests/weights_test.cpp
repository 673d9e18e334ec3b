// The pieces of the weight audit against naive computations: signatures, layouts, rows, names, rules with parts.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <numeric>

#include "core/error.hpp"
#include "weights/content.hpp"
#include "weights/faults.hpp"
#include "weights/names.hpp"
#include "weights/rows.hpp"
#include "weights/signature.hpp"

using namespace parity;

namespace {

at::Tensor random(at::IntArrayRef shape, at::ScalarType dtype = at::kFloat) { return at::randn(shape).to(dtype); }

// Sums of powers, one element after the other.
std::array<double, 4> naive(const at::Tensor& tensor) {
  std::array<double, 4> sums{};
  const at::Tensor x = tensor.to(at::kDouble).contiguous().reshape({-1});
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double v = x.const_data_ptr<double>()[i];
    if (std::isfinite(v)) sums[0] += v, sums[1] += v * v, sums[2] += v * v * v, sums[3] += v * v * v * v;
  }
  return sums;
}

}  // namespace

TEST_CASE("weights: a signature is the sums of powers, whatever dtype, strides and length") {
  at::manual_seed(1);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    for (const int64_t n : {1, 3, 4, 1023, 70001}) {
      const at::Tensor x = random({n}, dtype);
      const Signature s = signature_of(x);
      const auto sums = naive(x);
      CHECK(s.count == n);
      for (int k = 0; k < 4; ++k) CHECK(s.power[k] == doctest::Approx(sums[k]).epsilon(1e-5));
      CHECK(s.least == x.min().item<double>());
      CHECK(s.greatest == x.max().item<double>());
    }
  }
  const at::Tensor x = random({60, 50});
  CHECK(signature_of(x.t()).power[1] == doctest::Approx(naive(x)[1]));
  CHECK(signature_of(x.narrow(1, 3, 7)).power[1] == doctest::Approx(naive(x.narrow(1, 3, 7))[1]));
  at::Tensor odd = x.clone();
  odd[3][4] = NAN, odd[5][6] = INFINITY, odd[7][8] = 1e20;
  const Signature s = signature_of(odd);
  CHECK(s.nonfinite == 2);
  CHECK(s.greatest == doctest::Approx(1e20));
  CHECK(s.power[3] == doctest::Approx(1e80));
  CHECK(signature_of(at::ones({100})).constant());
  CHECK_FALSE(signature_of(at::arange(100).to(at::kFloat)).constant());
}

TEST_CASE("weights: permuted and rounded tensors may hold the same, others do not") {
  at::manual_seed(2);
  int confused = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const int64_t n = 64 + 37 * trial;
    const at::Tensor x = random({n}) * std::exp(trial % 7 - 3.0), y = random({n}) * std::exp(trial % 7 - 3.0);
    const at::Tensor moved = x.index_select(0, at::randperm(n));
    CHECK(may_hold_the_same(signature_of(x), signature_of(moved)));
    CHECK(may_hold_the_same(signature_of(x), signature_of(moved.to(at::kBFloat16))));
    CHECK(may_hold_the_same(signature_of(x.to(at::kHalf)), signature_of(moved)));
    confused += may_hold_the_same(signature_of(x), signature_of(y));
  }
  CHECK(confused == 0);
}

TEST_CASE(
    "weights: content is found under every permutation, as another shape, rounded, but not when one element differs") {
  at::manual_seed(3);
  const std::vector<std::vector<int64_t>> shapes{{7, 5}, {6, 6}, {4, 3, 5}, {4, 4, 2, 3}, {3, 4, 1, 2, 5}, {1, 1, 9}};
  for (const auto& shape : shapes) {
    const at::Tensor reference = random(shape);
    std::vector<int64_t> axes(shape.size());
    std::iota(axes.begin(), axes.end(), int64_t{0});
    do {
      for (const bool flat : {false, true}) {
        at::Tensor candidate = reference.permute(axes).contiguous();
        if (flat) candidate = candidate.reshape({candidate.size(0), -1});
        for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
          const auto found = find_content(reference, candidate.to(dtype));
          REQUIRE(found);
          CHECK(found->rounding.kept);
          const Layout layout = layout_of(found->order, std::nullopt, candidate.sizes(), reference.sizes());
          CHECK(at::equal(layout.to_reference(candidate), reference));
        }
        at::Tensor damaged = candidate.clone();
        damaged.view(-1)[damaged.numel() / 2] += 1e-3;
        CHECK_FALSE(find_content(reference, damaged));
      }
    } while (std::next_permutation(axes.begin(), axes.end()));
  }
}

TEST_CASE("weights: roundings are told apart") {
  at::manual_seed(4);
  const at::Tensor x = random({64, 64});
  CHECK(rounding_between(x, x).kept);
  CHECK(rounding_between(x, x.to(at::kBFloat16)).kept);
  CHECK(rounding_between(x.to(at::kBFloat16), x.to(at::kBFloat16).to(at::kFloat)).kept);
  CHECK(rounding_between(x, x.to(at::kBFloat16).to(at::kFloat)).narrower == "bf16");
  CHECK(rounding_between(x, x.to(at::kHalf).to(at::kFloat)).narrower == "fp16");
  CHECK(rounding_between(x, x.to(at::kFloat8_e4m3fn).to(at::kBFloat16)).narrower == "fp8_e4m3");
  const at::Tensor cut = x.view(at::kInt).bitwise_and(-65536).view(at::kFloat);
  CHECK(rounding_between(x, cut.to(at::kBFloat16)).truncated);
  CHECK(rounding_between(x, cut).truncated);
  CHECK_FALSE(rounding_between(x, x * 1.0001).found());
  at::Tensor holes = x.clone();
  holes[0][0] = NAN;
  CHECK(rounding_between(holes, holes.clone()).kept);
  CHECK_FALSE(rounding_between(x, holes).found());
}

TEST_CASE("weights: rows are found in a fused tensor, and their permutation is recovered") {
  at::manual_seed(5);
  const at::Tensor q = random({32, 24}), k = random({16, 24}), v = random({16, 24});
  const at::Tensor fused = at::cat({q, k, v}).to(at::kBFloat16);
  CHECK(find_rows(row_sums(fused, 0), row_sums(q, 0)) == 0);
  CHECK(find_rows(row_sums(fused, 0), row_sums(v, 0)) == 48);
  CHECK(find_rows(row_sums(fused, 0), row_sums(k.t(), 1)) == 32);
  CHECK_FALSE(find_rows(row_sums(fused, 0), row_sums(random({16, 24}), 0)));
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor moved = at::randperm(64), x = random({64, 48});
    const auto found = row_permutation(x.index_select(0, moved), x.to(dtype), 0);
    REQUIRE(found);
    CHECK(*found == std::vector<int64_t>(moved.const_data_ptr<int64_t>(), moved.const_data_ptr<int64_t>() + 64));
    CHECK_FALSE(row_permutation(x, x.to(dtype), 0));
    CHECK_FALSE(row_permutation(x, random({64, 48}), 1));
  }
  CHECK(permutation_text({4, 5, 6, 7, 0, 1, 2, 3}, "rows").find("2 blocks of 4 rows") == 0);
  CHECK(permutation_text({3, 2, 1, 0}, "rows") == "rows in reverse");
  CHECK(permutation_text({0, 2, 1, 3, 4, 6, 5, 7}, "rows").find("interleaved within groups of 4") != std::string::npos);
}

TEST_CASE("weights: a healthy tensor has no fault, a factor is measured") {
  at::manual_seed(6);
  const at::Tensor x = random({40, 30});
  const Fault scaled = diagnose(x, (x.t() * 0.125).contiguous(), std::nullopt);
  CHECK(scaled.name == "scaled");
  CHECK(scaled.detail.find("0.125") != std::string::npos);
  CHECK(diagnose(x, -x, std::nullopt).name == "sign flipped");
  CHECK(diagnose(x, x - 1, std::nullopt).name == "offset");
  const at::Tensor gain = 1 + 0.3 * random({30});
  const Fault folded = diagnose(x, (x * gain).t().contiguous(), std::nullopt);
  CHECK(folded.name == "scaled along an axis");
  CHECK(folded.detail.starts_with("columns times a factor each"));
  CHECK(diagnose(x, x * (1 + 0.3 * random({40, 1})), std::nullopt).detail.starts_with("rows times"));
  CHECK(diagnose(x, x * gain + 0.01 * random({40, 30}), std::nullopt).name == "values differ");
  CHECK(diagnose(x, at::zeros_like(x), std::nullopt).name == "zero");
  CHECK(diagnose(x, x.narrow(0, 0, 39), std::nullopt).detail.find("agree") != std::string::npos);
  CHECK(diagnose(x, x.to(at::kInt), std::nullopt).name == "dtype");
  CHECK(diagnose(x, x.view(-1).index_select(0, at::randperm(1200)).view({40, 30}), std::nullopt).name == "shuffled");
  CHECK(diagnose(x, x + 0.01 * random({40, 30}), std::nullopt).name == "values differ");
}

TEST_CASE("weights: names tell roles, blocks and kinds") {
  const auto names = parameter_names({"model.h.3.attn.q_proj.weight", "model.h.3.attn.k_proj.bias",
                                      "model.layers_3.attention.query.kernel", "model.h.3.attn.in_proj_weight"});
  CHECK(names[0].kind == "weight");
  CHECK(names[1].kind == "bias");
  CHECK(names[0].tokens.blocks == std::vector<int>{3});
  CHECK(names[0].plain == "h.3.attn.q_proj|weight");
  CHECK(roles_differ(names[0], names[1]));
  CHECK_FALSE(roles_differ(names[0], names[2]));
  CHECK(likeness(names[0], names[2]) == doctest::Approx(1));
  CHECK(names[3].kind == "weight");
  CHECK(names[3].module == "model.h.3.attn.in_proj");
}

TEST_CASE("weights: numbers of layers are told however they are spelt, numbers of siblings are words") {
  using Forms = std::pair<std::string, std::string>;
  for (const auto& [stage, block] :
       {Forms{"net.stages.", ".blocks."}, {"net.stage", ".block"}, {"net/s_", "/block_"}}) {
    std::vector<std::string> paths;
    for (const std::string s : {"0", "1"}) {
      for (const char* leaf : {".proj.kernel", ".proj.bias", ".norm.scale"}) paths.push_back(stage + s + leaf);
      for (const std::string b : {"0", "1"})
        for (const char* leaf : {".attn1.q.kernel", ".attn2.q.kernel", ".fc1.kernel", ".fc2.kernel"})
          paths.push_back(stage + s + block + b + leaf);
    }
    const auto names = parameter_names(paths);
    CHECK(names[3].form == "net block block attn self q | weight");
    CHECK(names[4].form == "net block block attn cross q | weight");
    CHECK(names[5].form != names[6].form);
    CHECK(names[14].form == names[3].form);
    CHECK(names[14].tokens.blocks == std::vector<int>{1, 0});
    CHECK(names[11].form == names[0].form);
  }
}

TEST_CASE("weights: running statistics are one another's by their leaf, whatever its word") {
  const auto names = parameter_names({"head.norm.running_mean", "head.norm.running_var", "bn/mean", "bn/var",
                                      "bn/moving_mean", "bn/moving_variance", "bn/scale"});
  for (const size_t theirs : {2, 4}) {
    CHECK_FALSE(roles_differ(names[0], names[theirs]));
    CHECK_FALSE(roles_differ(names[1], names[theirs + 1]));
    CHECK(roles_differ(names[0], names[theirs + 1]));
    CHECK(roles_differ(names[1], names[theirs]));
  }
  CHECK(roles_differ(names[0], names[6]));
}

TEST_CASE("weights: a map rule may take a part of the reference's weight, boundaries never do") {
  const NameMap map = NameMap::parse(
      "h.{i}.attn.c_attn = h.{i}.qkv\n"
      "h.{i}.attn.c_attn.weight split(1,0,3) = h.{i}.q.kernel perm(1,0)\n"
      "h.{i}.attn.c_attn.weight split(1,1,3) = h.{i}.k.kernel\n",
      "test.map");
  const auto parts = map.find_parts("h.4.attn.c_attn.weight");
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].candidate == "h.4.q.kernel");
  CHECK(parts[0].layout.text() == "perm(1,0)");
  CHECK(parts[1].candidate == "h.4.k.kernel");
  CHECK_FALSE(map.find("h.4.attn.c_attn.weight"));
  CHECK(map.find("h.4.attn.c_attn")->candidate == "h.4.qkv");
  const auto known = weights_and_owners({"h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias"});
  CHECK(std::ranges::count(known, "h.0.attn.c_attn", &NameMap::Name::path) >= 1);
  CHECK_NOTHROW(map.require_all_used(known));
  CHECK_THROWS_AS(map.require_all_used({{"h.0.attn.c_attn"}}), Error);
  CHECK_THROWS_AS(NameMap::parse("a perm(1,0) = b\n", "test.map"), Error);
}
