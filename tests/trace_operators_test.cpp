// What the dispatcher alone does not do: dtypes redirected, factories without a dtype, operators of other backends,
// stored results.
#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "program_file.hpp"

using namespace parity;
using namespace parity::testing;

namespace {

std::string error_of(ProgramFile& file, Precision precision = Precision::recorded) {
  try {
    replayed(file.dump(), precision);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("trace: arguments of every kind reach the operator") {
  at::manual_seed(3);
  ProgramFile file("kinds.h5");
  const at::Tensor x = at::randn({2, 3, 8, 8}), w = at::randn({4, 3, 3, 3}), index = at::tensor({1, 0}, at::kLong);
  const int64_t a = file.leaf(x), b = file.leaf(w), i = file.leaf(index);
  std::map<std::string, at::Tensor> expected{
      {"~/convolution.0", at::convolution(x, w, {}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1)},
      {"~/cat.0", at::cat({x, x}, 1)},
      {"~/index.0", at::index(x, {std::nullopt, index})},
      {"~/mul.0", x * 0.5},
      {"~/gelu.0", at::gelu(x, "tanh")},
      {"~/clamp.0", at::clamp(x, -std::numeric_limits<double>::infinity(), 0.5)},
      {"~/mean.0", at::mean(x, {-1}, true)},
      {"~/_to_copy.0", x.to(at::kDouble)},
      {"~/full.0", at::full({2}, c10::complex<double>(1, -2), at::kComplexFloat)},
      {"~/constant_pad_nd.0", at::constant_pad_nd(x, {1, 1}, std::numeric_limits<double>::infinity())}};
  file.op("aten::convolution", {ref(a), ref(b), nullptr, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1},
          {expected["~/convolution.0"]});
  file.op("aten::cat", {json::array({ref(a), ref(a)}), 1}, {expected["~/cat.0"]});
  file.op("aten::index.Tensor", {ref(a), json::array({nullptr, ref(i)})}, {expected["~/index.0"]});
  file.op("aten::mul.Tensor", {ref(a), 0.5}, {expected["~/mul.0"]});
  file.op("aten::gelu", {ref(a)}, {expected["~/gelu.0"]}, {{"approximate", "tanh"}});
  file.op("aten::clamp", {ref(a), {{"float", "-inf"}}, 0.5}, {expected["~/clamp.0"]});
  file.op("aten::mean.dim", {ref(a), {-1}, true}, {expected["~/mean.0"]});
  file.op("aten::_to_copy", {ref(a)}, {expected["~/_to_copy.0"]},
          {{"dtype", {{"dtype", "float64"}}},
           {"device", {{"device", "cuda:0"}}},
           {"layout", {{"layout", "strided"}}},
           {"pin_memory", true}});
  file.op("aten::full", {{2}, {{"complex", {1, -2}}}}, {expected["~/full.0"]}, {{"dtype", {{"dtype", "complex64"}}}});
  file.op("aten::constant_pad_nd", {ref(a), {1, 1}, {{"float", "inf"}}}, {expected["~/constant_pad_nd.0"]});
  auto values = replayed(file.dump());
  for (const auto& [path, value] : expected) {
    CAPTURE(path);
    CHECK(same_bits(values.at(path), value));
  }
}

TEST_CASE("trace: casts, factories and integer divisions follow the precision") {
  ProgramFile file("casts.h5");
  const int64_t n = file.leaf(at::tensor({1, 2, 4}, at::kLong));
  const int64_t x = file.leaf(at::tensor({1.0 / 3, 2.0 / 3, 0.1}).to(at::kBFloat16));
  const at::Tensor third = at::tensor({1.0f / 3, 2.0f / 3, 4.0f / 3});
  file.op("aten::div.Tensor", {ref(n), 3}, {third});
  file.op("aten::full", {{2}, 0.1}, {at::full({2}, 0.1)});     // the process's default dtype
  file.op("aten::arange", {3}, {at::arange(3, at::kDouble)});  // recorded under set_default_dtype: not ATen's int64
  file.op("aten::_softmax", {ref(x), 0, true},
          {at::softmax(at::tensor({1.0 / 3, 2.0 / 3, 0.1}).to(at::kBFloat16).to(at::kFloat), 0)});
  const Dump dump = file.dump();
  for (const auto& [precision, real] :
       {std::pair{Precision::recorded, "float32"}, {Precision::fp32, "float32"}, {Precision::fp64, "float64"}}) {
    auto values = replayed(dump, precision);
    CHECK(dtype_name(values.at("~/div.0").scalar_type()) == real);
    CHECK(dtype_name(values.at("~/full.0").scalar_type()) == real);
    CHECK(dtype_name(values.at("~/arange.0").scalar_type()) == "float64");
    CHECK(dtype_name(values.at("~/_softmax.0").scalar_type()) == real);
  }
  CHECK(replayed(dump, Precision::fp64).at("~/div.0")[0].item<double>() == 1.0 / 3);
}

TEST_CASE("trace: attention kernels of other backends replay as their definition") {
  at::manual_seed(5);
  const at::Tensor q = at::randn({2, 4, 9, 8}), k = at::randn({2, 4, 9, 8}), v = at::randn({2, 4, 9, 8}),
                   bias = at::randn({2, 4, 9, 9});
  const auto math = [&](bool causal, const std::optional<at::Tensor>& mask) {
    return at::_scaled_dot_product_attention_math(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble),
                                                  mask ? std::optional(mask->to(at::kDouble)) : std::nullopt, 0,
                                                  causal);
  };
  ProgramFile file("attention.h5");
  const int64_t a = file.leaf(q), b = file.leaf(k), c = file.leaf(v), d = file.leaf(bias);
  const int64_t al = file.leaf(q.transpose(1, 2)), bl = file.leaf(k.transpose(1, 2)), cl = file.leaf(v.transpose(1, 2));
  const at::Tensor like = q, lse = at::zeros({2, 4, 9});
  file.op("aten::_scaled_dot_product_flash_attention", {ref(a), ref(b), ref(c), 0.0, true, false},
          {like, lse, {}, {}, {}, {}, {}, {}, {}});
  file.op("aten::_scaled_dot_product_efficient_attention", {ref(a), ref(b), ref(c), ref(d), false}, {like, {}, {}, {}});
  file.op("aten::_flash_attention_forward", {ref(al), ref(bl), ref(cl), nullptr, nullptr, 9, 9, 0.0, false, false},
          {like.transpose(1, 2), {}, {}, {}, {}});
  file.op("aten::_scaled_dot_product_flash_attention_for_cpu", {ref(a), ref(b), ref(c), 0.0, true}, {like, lse});
  const Dump dump = file.dump();
  const auto distance = [](const at::Tensor& x, const at::Tensor& y) {
    return (x.to(at::kDouble) - y).abs().max().item<double>();
  };
  for (const auto& [precision, limit] : {std::pair{Precision::recorded, 2e-6}, {Precision::fp64, 1e-14}}) {
    ReplayReport report;
    auto values = replayed(dump, precision, &report);
    CHECK(distance(values.at("~/_scaled_dot_product_flash_attention.0"), std::get<0>(math(true, {}))) < limit);
    CHECK(distance(values.at("~/_scaled_dot_product_efficient_attention.0"), std::get<0>(math(false, bias))) < limit);
    CHECK(distance(values.at("~/_flash_attention_forward.0"), std::get<0>(math(false, {})).transpose(1, 2)) < limit);
    CHECK(distance(values.at("~/_scaled_dot_product_flash_attention_for_cpu.0"), std::get<0>(math(true, {}))) < limit);
    CHECK(report.lowered.empty());
  }
}

TEST_CASE("trace: grouped-query heads, masks that hide everything, and the memory of long scores") {
  at::manual_seed(6);
  const at::Tensor q = at::randn({1, 4, 6, 8}, at::kDouble), kv = at::randn({1, 2, 6, 8}, at::kDouble);
  at::Tensor mask = at::ones({6, 6}, at::kBool).tril();
  mask[2].zero_();
  ProgramFile file("masks.h5");
  const int64_t a = file.leaf(q), b = file.leaf(kv), m = file.leaf(mask);
  file.op("aten::_scaled_dot_product_cudnn_attention", {ref(a), ref(b), ref(b), ref(m), false},
          {q, {}, {}, {}, {}, {}, {}, {}, {}});
  const at::Tensor out = replayed(file.dump()).at("~/_scaled_dot_product_cudnn_attention.0");
  const at::Tensor wide = kv.repeat_interleave(2, 1);
  const at::Tensor expected = std::get<0>(at::_scaled_dot_product_attention_math(
      q, wide, wide, at::zeros({6, 6}, at::kDouble).masked_fill(mask.logical_not(), -INFINITY)));
  CHECK(out.select(2, 2).abs().max().item<double>() == 0);
  CHECK((out - expected.nan_to_num(0)).abs().max().item<double>() < 1e-14);
}

TEST_CASE("trace: where no fp64 kernel exists, a definition serves, or the result is raised and reported") {
  at::manual_seed(8);
  const at::Tensor x = at::randn({6, 16}).to(at::kBFloat16), w = at::randn({2, 16, 16}).to(at::kBFloat16),
                   ends = at::tensor({2, 6}, at::kInt);
  const at::Tensor bits = at::tensor({1.0f, -2.5f}).to(at::kBFloat16);
  ProgramFile file("lowered.h5");
  const int64_t a = file.leaf(x), b = file.leaf(w), e = file.leaf(ends), c = file.leaf(bits);
  file.op("aten::_grouped_mm", {ref(a), ref(b), ref(e)}, {at::zeros({6, 16}, at::kBFloat16)});
  const int64_t i = file.op("aten::view.dtype", {ref(c), {{"dtype", "int16"}}}, {bits.view(at::kShort)}, json::object(),
                            {{"view", true}});
  file.op("aten::add.Tensor", {ref(i), 1}, {bits.view(at::kShort) + 1});
  const Dump dump = file.dump();
  ReplayReport report;
  auto values = replayed(dump, Precision::fp64, &report);
  const at::Tensor xd = x.to(at::kDouble), wd = w.to(at::kDouble);
  CHECK((values.at("~/_grouped_mm.0") - at::cat({xd.narrow(0, 0, 2).mm(wd[0]), xd.narrow(0, 2, 4).mm(wd[1])}))
            .abs()
            .max()
            .item<double>() < 1e-12);
  CHECK(report.lowered.empty());
  CHECK(same_bits(values.at("~/add.0"), bits.view(at::kShort) + 1));  // the bits of the deployed dtype, not of fp64
}

TEST_CASE("trace: opaque ops hand out what was stored, in place where they wrote in place, and are reported") {
  ProgramFile file("opaque.h5");
  const at::Tensor x = at::arange(4, at::kFloat), noise = at::tensor({5.0f, 6.0f, 7.0f, 8.0f});
  const int64_t a = file.leaf(x);
  const int64_t view = file.op("aten::view", {ref(a), {2, 2}}, {x.view({2, 2})}, json::object(), {{"view", true}});
  file.op("aten::uniform_", {ref(a)}, {noise}, json::object(), {{"ids", {a}}, {"opaque", "random"}});
  file.op("aten::mul.Tensor", {ref(view), 2}, {noise.view({2, 2}) * 2});
  file.op("my_ext::fancy", {ref(a), "any"}, {noise + 1}, json::object(), {{"opaque", "custom"}});
  file.op("aten::empty.memory_format", {{3}}, {at::zeros({3})}, json::object(),
          {{"opaque", "uninitialised"}, {"store", false}});
  ReplayReport report;
  const Dump dump = file.dump();
  auto values = replayed(dump, Precision::fp64, &report);
  CHECK(same_bits(values.at("~/mul.0"), (noise.view({2, 2}) * 2).to(at::kDouble)));
  CHECK(same_bits(values.at("~/fancy.0"), (noise + 1).to(at::kDouble)));
  CHECK(report.opaque ==
        std::vector<std::string>{"~/uniform_.0 (aten::uniform_): random", "~/fancy.0 (my_ext::fancy): custom"});
  const Program program = load_program(dump);
  CHECK_FALSE(program.boundaries[*program.find("~/empty.0")].comparable);
  CHECK(program.boundaries[*program.find("~/mul.0")].comparable);
}

TEST_CASE("trace: memory that two leaves share is shared in the replay") {
  const at::Tensor cache = at::zeros({3, 2});
  ProgramFile file("alias.h5");
  const int64_t base = file.leaf(cache);
  json row = value_json(90, cache[1]);
  row.update({{"e", "leaf"},
              {"k", nullptr},
              {"names", json::array()},
              {"alias", {{"v", base}, {"stride", {1}}, {"offset", 2}}}});
  file.event(row);
  file.op("aten::add_.Tensor", {ref(90), 4}, {cache[1] + 4}, json::object(), {{"ids", {90}}});
  file.op("aten::sum", {ref(base)}, {at::scalar_tensor(8.0)});
  const Dump dump = file.dump();
  CHECK(replayed(dump).at("~/sum.0").item<float>() == 8);
  const Program program = load_program(dump);
  CHECK(program.marked_ancestors({true, true})[1] == std::vector<size_t>{0});
}

TEST_CASE("trace: what does not fit is an error that names the op, the event and the reason") {
  const at::Tensor x = at::ones({2, 2});
  const auto failing = [&](const char* op, json args, std::vector<at::Tensor> results, json kwargs = json::object(),
                           json extra = json::object()) {
    ProgramFile file("error.h5");
    file.leaf(x);
    file.op(op, std::move(args), results, std::move(kwargs), std::move(extra));
    return error_of(file);
  };
  CHECK(contains(failing("aten::no_such", {ref(0)}, {x}),
                 "event 2, ~/no_such.0 (aten::no_such): this LibTorch has no such operator"));
  CHECK(contains(failing("aten::sum.dim_IntList", {ref(0), "x"}, {x}), "argument 'dim': \"x\" does not fit type"));
  CHECK(contains(failing("aten::mm", {ref(0)}, {x}), "argument 'mat2' is missing"));
  CHECK(contains(failing("aten::mm", {ref(0), ref(0), 3}, {x}), "3 arguments are given, the operator takes 2"));
  CHECK(contains(failing("aten::mm", {ref(0), ref(0)}, {x}, {{"colour", 1}}), "no argument 'colour'"));
  CHECK(contains(failing("aten::mm", {ref(0), 3}, {x}), "~/mm.0"));
  CHECK(contains(failing("aten::mm", {ref(0), ref(0)}, {at::ones({3})}), "gives shape [2, 2] where [3] was recorded"));
  CHECK(contains(failing("aten::mm", {ref(0), ref(0)}, {x.to(at::kDouble)}),
                 "output 0 is float32 where float64 was expected"));
  CHECK(contains(failing("aten::transpose.int", {ref(0), 0, 7}, {x}), "Dimension out of range"));
  CHECK(
      contains(failing("aten::_to_copy", {ref(0)}, {x}, {{"dtype", {{"dtype", "float7"}}}}), "unknown dtype 'float7'"));
  CHECK(contains(failing("aten::bernoulli", {ref(0)}, {x}, json::object(), {{"opaque", "random"}, {"store", false}}),
                 "is opaque (random)"));
  CHECK(contains(failing("aten::mm", {ref(0), ref(7)}, {x}), "event 2: value 7 is used before anything defines it"));
}

TEST_CASE("trace: events that do not fit together are errors that name the event") {
  const auto loading = [](const std::vector<json>& events) -> std::string {
    const TemporaryFile path("events.h5");
    RecordingFile file(path.path());
    for (const json& event : events) file.event(event);
    file.close();
    try {
      load_program(Dump(path.path()));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  json leaf = value_json(0, at::ones({1}), "0");
  leaf.update({{"e", "leaf"}, {"names", json::array()}});
  const json call{
      {"e", "call"}, {"id", 5}, {"path", "m"}, {"call", 0}, {"parent", -1}, {"class", "M"}, {"inputs", json::array()}};
  const json ret{{"e", "ret"}, {"id", 5}, {"outputs", json::array()}};
  CHECK(loading({leaf, call, ret}) == "");
  CHECK(contains(loading({{{"e", "dance"}}}), "event 1: kind 'dance' is unknown"));
  CHECK(contains(loading({leaf, leaf}), "event 2: value 0 is defined twice"));
  CHECK(contains(loading({ret}), "event 1: module call 5 is not running"));
  CHECK(contains(loading({call, call}), "event 2: this call id was used before"));
  CHECK(contains(loading({{{"e", "op"}, {"op", "aten::mm"}, {"in", 3}}}), "event 1: module call 3 has not begun"));
  CHECK(contains(loading({{{"e", "op"}, {"in", -1}}}), "field 'op' is missing"));
  CHECK(contains(loading({{{"e", "leaf"}, {"v", 0}, {"d", "float32"}, {"s", {-1}}}}), "value 0 has no valid shape"));
  CHECK(contains(loading({{{"e", "leaf"}, {"v", 0}, {"d", "float33"}, {"s", {1}}}}), "unknown dtype 'float33'"));
  json cyclic{{"e", "op"},        {"op", "aten::neg"},        {"in", -1},
              {"args", {ref(1)}}, {"kwargs", json::object()}, {"out", {value_json(1, at::ones({1}))}}};
  CHECK(contains(loading({leaf, cyclic}), "event 2: value 1 is used before anything defines it"));
}
