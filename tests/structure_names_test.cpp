// What names of faults of a model's structure are found: gated products, norms left out, masks, constants, sizes.
#include <doctest/doctest.h>

#include <cmath>

#include "program_file.hpp"

namespace parity {
namespace {

using testing::diagnosis_of;
using testing::json;
using testing::ProgramFile;
using testing::ref;

constexpr const char* kAttention = "aten::_scaled_dot_product_flash_attention_for_cpu";
const json kView = {{"view", true}};
const json kHidden = {{"store", false}};

// GELU in its tanh form, step by step; the id of its result.
int64_t gelu_steps(ProgramFile& file, int64_t in, const at::Tensor& x) {
  const at::Tensor half = x * .5, cube = x.pow(3), small = cube * .044715, inner = x + small,
                   scaled = inner * .79788456;
  const int64_t a = file.op("aten::mul.Tensor", {ref(in), .5}, {half}, {}, kHidden);
  const int64_t b = file.op("aten::pow.Tensor_Scalar", {ref(in), 3}, {cube}, {}, kHidden);
  const int64_t c = file.op("aten::mul.Tensor", {ref(b), .044715}, {small}, {}, kHidden);
  const int64_t d = file.op("aten::add.Tensor", {ref(in), ref(c)}, {inner}, {}, kHidden);
  const int64_t e = file.op("aten::mul.Tensor", {ref(d), .79788456}, {scaled}, {}, kHidden);
  const int64_t f = file.op("aten::tanh", {ref(e)}, {scaled.tanh()}, {}, kHidden);
  const int64_t g = file.op("aten::add.Tensor", {ref(f), 1.0}, {scaled.tanh() + 1}, {}, kHidden);
  return file.op("aten::mul.Tensor", {ref(a), ref(g)}, {half * (scaled.tanh() + 1)}, {}, kHidden);
}

at::Tensor gelu_by_steps(const at::Tensor& x) { return x * .5 * (((x + x.pow(3) * .044715) * .79788456).tanh() + 1); }

}  // namespace

TEST_CASE("names: gate and up exchanged, of two layers, whether the activation is one op or eight") {
  at::manual_seed(21);
  const at::Tensor x = at::randn({6, 16}), gate = at::randn({24, 16}) * .4, up = at::randn({24, 16}) * .4;
  const at::Tensor g = x.mm(gate.t()), u = x.mm(up.t());
  for (const bool steps : {false, true}) {
    CAPTURE(steps);
    ProgramFile file("gated.h5");
    const int64_t in = file.leaf(x), first = file.leaf(gate, {"weights/mlp.gate_proj.weight"}),
                  second = file.leaf(up, {"weights/mlp.up_proj.weight"});
    const int64_t left = file.op("aten::t", {ref(first)}, {gate.t()}, {}, kView);
    const int64_t gated = file.op("aten::mm", {ref(in), ref(left)}, {g}, {}, kHidden);
    const int64_t active =
        steps ? gelu_steps(file, gated, g) : file.op("aten::silu", {ref(gated)}, {at::silu(g)}, {}, kHidden);
    const int64_t right = file.op("aten::t", {ref(second)}, {up.t()}, {}, kView);
    const int64_t raised = file.op("aten::mm", {ref(in), ref(right)}, {u}, {}, kHidden);
    const auto act = [steps](const at::Tensor& t) { return steps ? gelu_by_steps(t) : at::silu(t); };
    file.op("aten::mul.Tensor", {ref(active), ref(raised)}, {act(g) * u});
    const std::string said = diagnosis_of(file, act(u) * g);
    CHECK_MESSAGE(said.starts_with("gate and up exchanged ("), said);
    if (steps) CHECK(said.find("mlp.gate_proj.weight and mlp.up_proj.weight") != std::string::npos);
  }
}

TEST_CASE("names: gate and up exchanged behind their layers, both of which are right") {
  at::manual_seed(32);
  const at::Tensor x = at::randn({6, 24}), w = at::randn({24, 24}) * .4, up = at::randn({6, 24}), gate = x.mm(w);
  ProgramFile file("gate_is_right.h5");
  const int64_t made = file.op("aten::mm", {ref(file.leaf(x)), ref(file.leaf(w))}, {gate});
  const int64_t active = file.op("aten::silu", {ref(made)}, {at::silu(gate)}, {}, kHidden);
  file.op("aten::mul.Tensor", {ref(active), ref(file.leaf(up))}, {at::silu(gate) * up});
  CHECK(diagnosis_of(file, at::silu(up) * gate).starts_with("gate and up exchanged (the other one activated"));
}

TEST_CASE("names: gate and up exchanged, halves of one layer's result") {
  at::manual_seed(22);
  const at::Tensor x = at::randn({6, 16}), w = at::randn({16, 48}) * .4, both = x.mm(w);
  const at::Tensor gate = both.narrow(1, 0, 24), up = both.narrow(1, 24, 24);
  for (const bool chunks : {false, true}) {
    CAPTURE(chunks);
    ProgramFile file("fused_gate.h5");
    const int64_t made = file.op("aten::mm", {ref(file.leaf(x)), ref(file.leaf(w))}, {both}, {}, kHidden);
    int64_t first = 0, second = 0;
    if (chunks) {
      first = file.op("aten::split.Tensor", {ref(made), 24, -1}, {gate, up}, {}, kView);
      second = first + 1;
    } else {
      first = file.op("aten::slice.Tensor", {ref(made), 1, 0, 24}, {gate}, {}, kView);
      second = file.op("aten::slice.Tensor", {ref(made), 1, 24, 48}, {up}, {}, kView);
    }
    const int64_t active = file.op("aten::silu", {ref(first)}, {at::silu(gate)}, {}, kHidden);
    file.op("aten::mul.Tensor", {ref(active), ref(second)}, {at::silu(gate) * up});
    const std::string said = diagnosis_of(file, at::silu(up) * gate);
    CHECK_MESSAGE(said.starts_with("gate and up exchanged ("), said);
  }
}

TEST_CASE("names: a norm left out, fused or written out, with its gain and bias") {
  at::manual_seed(23);
  const at::Tensor x = at::randn({7, 24}) * 2 + .3, w = at::rand({24}) + .5, b = at::randn({24});
  SUBCASE("fused") {
    const auto [y, mean, root] = at::native_layer_norm(x, {24}, w, b, 1e-5);
    ProgramFile file("left_out.h5");
    file.op("aten::native_layer_norm", {ref(file.leaf(x)), json{24}, ref(file.leaf(w)), ref(file.leaf(b)), 1e-5},
            {y, mean, root});
    CHECK(diagnosis_of(file, x).starts_with("norm missing"));
  }
  SUBCASE("root of the mean square") {
    const at::Tensor mean = x.pow(2).mean(-1, true), root = (mean + 1e-6).rsqrt();
    ProgramFile file("rms_left_out.h5");
    const int64_t in = file.leaf(x), square = file.op("aten::pow.Tensor_Scalar", {ref(in), 2}, {x.pow(2)}, {}, kHidden);
    const int64_t sum = file.op("aten::mean.dim", {ref(square), json{-1}, true}, {mean}, {}, kHidden);
    const int64_t more = file.op("aten::add.Tensor", {ref(sum), 1e-6}, {mean + 1e-6}, {}, kHidden);
    const int64_t rooted = file.op("aten::rsqrt", {ref(more)}, {root}, {}, kHidden);
    const int64_t normed = file.op("aten::mul.Tensor", {ref(in), ref(rooted)}, {x * root}, {}, kHidden);
    file.op("aten::mul.Tensor", {ref(file.leaf(w, {"weights/norm.weight"})), ref(normed)}, {w * (x * root)});
    CHECK(diagnosis_of(file, x).starts_with("norm missing"));
  }
  SUBCASE("over a root, the mean subtracted") {
    const at::Tensor mean = x.mean(-1, true), c = x - mean, root = (c.pow(2).mean(-1, true) + 1e-5).sqrt();
    ProgramFile file("centred_left_out.h5");
    const int64_t in = file.leaf(x), middle = file.op("aten::mean.dim", {ref(in), json{-1}, true}, {mean}, {}, kHidden);
    const int64_t centred = file.op("aten::sub.Tensor", {ref(in), ref(middle)}, {c}, {}, kHidden);
    const int64_t square = file.op("aten::pow.Tensor_Scalar", {ref(centred), 2}, {c.pow(2)}, {}, kHidden);
    const int64_t sum =
        file.op("aten::mean.dim", {ref(square), json{-1}, true}, {c.pow(2).mean(-1, true)}, {}, kHidden);
    const int64_t more = file.op("aten::add.Tensor", {ref(sum), 1e-5}, {root.square()}, {}, kHidden);
    const int64_t rooted = file.op("aten::sqrt", {ref(more)}, {root}, {}, kHidden);
    const int64_t normed = file.op("aten::div.Tensor", {ref(centred), ref(rooted)}, {c / root}, {}, kHidden);
    const int64_t scaled = file.op("aten::mul.Tensor", {ref(normed), ref(file.leaf(w, {"weights/norm.weight"}))},
                                   {c / root * w}, {}, kHidden);
    file.op("aten::add.Tensor", {ref(scaled), ref(file.leaf(b, {"weights/norm.bias"}))}, {c / root * w + b});
    CHECK(diagnosis_of(file, x).starts_with("norm missing"));
  }
}

TEST_CASE("names: unbiased variance in bf16 is no eps") {
  at::manual_seed(24);
  const at::Tensor x = (at::randn({64, 72}) * 1.7).to(at::kBFloat16), none;
  const auto [y, mean, root] = at::native_layer_norm(x, {72}, none, none, 1e-5);
  ProgramFile file("unbiased_bf16.h5");
  file.op("aten::native_layer_norm", {ref(file.leaf(x)), json{72}, nullptr, nullptr, 1e-5}, {y, mean, root});
  const at::Tensor wide = x.to(at::kFloat), centred = wide - wide.mean(-1, true);
  const at::Tensor theirs = centred / (wide.var({-1}, /*unbiased=*/true, /*keepdim=*/true) + 1e-5).sqrt();
  const std::string said = diagnosis_of(file, theirs.to(at::kBFloat16));
  CHECK_MESSAGE(said.starts_with("unbiased variance"), said);
}

TEST_CASE("names: a sliding window that is not there, and a triangle without its diagonal") {
  at::manual_seed(25);
  const at::Tensor q = at::randn({2, 3, 11, 8}), k = at::randn({2, 3, 11, 8}), v = at::randn({2, 3, 11, 8});
  const at::Tensor place = at::arange(11), back = place.unsqueeze(1) - place;
  const auto attention = [&](const at::Tensor& seen) {
    const at::Tensor scores = q.matmul(k.mT()) / std::sqrt(8.0);
    return scores.masked_fill(seen.logical_not(), -INFINITY).softmax(-1).matmul(v);
  };
  const auto said_of = [&](const at::Tensor& theirs) {
    const auto [result, sums] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, true);
    ProgramFile file("triangle.h5");
    file.op(kAttention, {ref(file.leaf(q)), ref(file.leaf(k)), ref(file.leaf(v)), 0.0, true}, {result, sums});
    return diagnosis_of(file, theirs);
  };
  const at::Tensor causal = back.ge(0);
  CHECK(said_of(attention(causal.logical_and(back.lt(7)))).starts_with("sliding window (the last 7 keys alone"));
  const at::Tensor strict = back.gt(0).logical_or(causal.logical_and(place.unsqueeze(1).eq(0)));
  CHECK(said_of(attention(strict)).starts_with("mask off by one (diagonal -1"));
}

TEST_CASE("names: padding attended, and a window left out, where the triangle is kept") {
  at::manual_seed(26);
  const at::Tensor q = at::randn({2, 3, 9, 8}), k = at::randn({2, 3, 9, 8}), v = at::randn({2, 3, 9, 8});
  const at::Tensor place = at::arange(9), back = place.unsqueeze(1) - place, causal = back.ge(0).expand({2, 1, 9, 9});
  at::Tensor there = at::ones({2, 1, 1, 9}, at::kBool);
  there[1].slice(-1, 0, 3).fill_(false);
  const auto attention = [&](const at::Tensor& seen) {
    const at::Tensor added =
        at::zeros({2, 1, 9, 9}).masked_fill(seen.logical_not(), std::numeric_limits<float>::lowest());
    return std::pair(added, at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, false, added));
  };
  const auto said_of = [&](const at::Tensor& right, const at::Tensor& wrong) {
    const auto [added, results] = attention(right);
    ProgramFile file("hidden.h5");
    file.op(kAttention, {ref(file.leaf(q)), ref(file.leaf(k)), ref(file.leaf(v)), 0.0, false},
            {std::get<0>(results), std::get<1>(results)}, {{"attn_mask", ref(file.leaf(added))}});
    return diagnosis_of(file, std::get<0>(attention(wrong).second));
  };
  const at::Tensor all = at::ones({2, 1, 9, 9}, at::kBool);
  CHECK(said_of(causal.logical_and(there), causal).starts_with("padding mask missing (causal alone"));
  CHECK(said_of(all.logical_and(there), all).starts_with("padding mask missing (padding is attended"));
  CHECK(said_of(causal.logical_and(back.lt(4)), causal).starts_with("sliding window (left out"));
  CHECK(said_of(causal, all).starts_with("causal mask missing"));
  CHECK(said_of(all, causal).starts_with("causal mask (causal where it is not"));
}

TEST_CASE("names: places of queries from one feed the mask alone") {
  const at::Tensor place = at::arange(7), seen = place.le(place.unsqueeze(1));
  at::manual_seed(27);
  const at::Tensor scores = at::randn({7, 7}), x = at::randn({7, 5});
  const auto hidden = [&](const at::Tensor& flags) { return at::where(flags, scores, at::full({}, -1e30)); };
  ProgramFile file("places_of_mask.h5");
  const int64_t keys = file.op("aten::arange", {7}, {place}, {}, kHidden);
  const int64_t places = file.op("aten::arange", {7}, {place}, {}, kHidden);
  const int64_t queries = file.op("aten::unsqueeze", {ref(places), 1}, {place.unsqueeze(1)}, {}, kView);
  const int64_t flags = file.op("aten::le.Tensor", {ref(keys), ref(queries)}, {seen}, {}, kHidden);
  const int64_t masked =
      file.op("aten::where.self", {ref(flags), ref(file.leaf(scores)), ref(file.leaf(at::full({}, -1e30)))},
              {hidden(seen)}, {}, kHidden);
  const int64_t weights = file.op("aten::_softmax", {ref(masked), -1, false}, {hidden(seen).softmax(-1)}, {}, kHidden);
  file.op("aten::mm", {ref(weights), ref(file.leaf(x))}, {hidden(seen).softmax(-1).mm(x)});
  const std::string said = diagnosis_of(file, hidden(place.le(place.unsqueeze(1) + 1)).softmax(-1).mm(x));
  CHECK_MESSAGE(said.starts_with("mask off by one"), said);
}

TEST_CASE("names: rows of learned positions looked up one too early") {
  at::manual_seed(28);
  const at::Tensor table = at::randn({20, 12}), rows = at::arange(9) + 2, x = at::randn({9, 12});
  ProgramFile file("rows.h5");
  const int64_t place = file.op("aten::arange", {9}, {at::arange(9)}, {}, kHidden);
  const int64_t later = file.op("aten::add.Tensor", {ref(place), 2}, {rows}, {}, kHidden);
  const int64_t found = file.op("aten::embedding", {ref(file.leaf(table, {"weights/positions.weight"})), ref(later)},
                                {table.index_select(0, rows)}, {}, kHidden);
  file.op("aten::add.Tensor", {ref(file.leaf(x)), ref(found)}, {x + table.index_select(0, rows)});
  CHECK(diagnosis_of(file, x + table.index_select(0, rows - 1)).starts_with("position off by one (rows shifted by -1"));
}

TEST_CASE("names: a base of any size, and one a hundred times smaller, where angles are laid side by side") {
  const at::Tensor places = at::arange(11, at::kFloat).unsqueeze(1);
  const auto tables = [&](double base) {
    const at::Tensor angles = places * (at::arange(6, at::kDouble) * (-std::log(base) / 6)).exp().to(at::kFloat);
    return at::cat({angles, angles}, 1);
  };
  const auto said_of = [&](double base) {
    const at::Tensor both = tables(1e4), own = both.narrow(1, 0, 6);
    ProgramFile file("bases.h5");
    const int64_t made = file.op(
        "aten::mul.Tensor", {ref(file.leaf(places)), ref(file.leaf(own.narrow(0, 1, 1).clone()))}, {own}, {}, kHidden);
    const int64_t twice = file.op("aten::cat", {json{ref(made), ref(made)}, 1}, {both}, {}, kHidden);
    file.op("aten::cos", {ref(twice)}, {both.cos()});
    return diagnosis_of(file, tables(base).cos());
  };
  CHECK(said_of(1e5).starts_with("RoPE theta (base 100000"));
  CHECK(said_of(1e2).starts_with("RoPE theta (base x 0.01 at"));
  const std::string near = said_of(9e3);
  CHECK_MESSAGE(near.starts_with("RoPE theta (base differs"), near);
}

TEST_CASE("names: constants of activations that are a little off") {
  at::manual_seed(29);
  const at::Tensor x = at::randn({16, 24}) * 2;
  SUBCASE("a factor before a sigmoid") {
    ProgramFile file("quick.h5");
    const int64_t in = file.leaf(x), scaled = file.op("aten::mul.Tensor", {ref(in), 1.702}, {x * 1.702}, {}, kHidden);
    const int64_t gate = file.op("aten::sigmoid", {ref(scaled)}, {(x * 1.702).sigmoid()}, {}, kHidden);
    file.op("aten::mul.Tensor", {ref(in), ref(gate)}, {x * (x * 1.702).sigmoid()});
    CHECK(diagnosis_of(file, x * (x * 1.7).sigmoid()).starts_with("activation (constant 1.702 differs"));
  }
  SUBCASE("the cubic term of one kernel's GELU") {
    ProgramFile file("cubic.h5");
    file.op("aten::gelu", {ref(file.leaf(x))}, {at::gelu(x, "tanh")}, {{"approximate", "tanh"}});
    const at::Tensor wide = x.to(at::kDouble), inner = (wide + wide.pow(3) * .0447) * std::sqrt(2 / M_PI);
    CHECK(diagnosis_of(file, (wide / 2 * (inner.tanh() + 1)).to(at::kFloat))
              .starts_with("activation (constant 0.044715"));
  }
  SUBCASE("a ReLU that leaks") {
    ProgramFile file("leaks.h5");
    file.op("aten::relu", {ref(file.leaf(x))}, {x.relu()});
    CHECK(diagnosis_of(file, at::leaky_relu(x, .1)).starts_with("activation (not flat below zero"));
  }
}

TEST_CASE("names: an image resized otherwise") {
  at::manual_seed(30);
  const at::Tensor x = at::randn({1, 3, 5, 6});
  const std::vector<int64_t> size{10, 13};
  const auto said_of = [&](const at::Tensor& theirs) {
    ProgramFile file("resized.h5");
    file.op("aten::upsample_bilinear2d", {ref(file.leaf(x)), json(size), false},
            {at::upsample_bilinear2d(x, size, false)});
    return diagnosis_of(file, theirs);
  };
  CHECK(said_of(at::upsample_bilinear2d(x, size, true)).starts_with("interpolation (corners aligned"));
  CHECK(said_of(at::upsample_bicubic2d(x, size, false)).starts_with("interpolation (bicubic for bilinear"));
}

TEST_CASE("names: a query's bias that is not scaled with it") {
  at::manual_seed(31);
  const at::Tensor x = at::randn({6, 16}), w = at::randn({16, 12}), b = at::randn({12}) * 3, y = at::addmm(b, x, w);
  ProgramFile file("scaled.h5");
  const int64_t made =
      file.op("aten::addmm", {ref(file.leaf(b)), ref(file.leaf(x)), ref(file.leaf(w))}, {y}, {}, kHidden);
  file.op("aten::mul.Tensor", {ref(made), .25}, {y * .25});
  CHECK(diagnosis_of(file, x.mm(w) * .25 + b).starts_with("attention scale (the bias not scaled"));
}

}  // namespace parity
