// What names of faults are found: the right numbers in the wrong places, and the same of what an op takes in.
#include <doctest/doctest.h>

#include "measure/reordered.hpp"
#include "program_file.hpp"

namespace parity {
namespace {

using testing::diagnosis_of;
using testing::json;
using testing::ProgramFile;
using testing::ref;

constexpr const char* kAttention = "aten::_scaled_dot_product_flash_attention_for_cpu";

std::string order_of(const at::Tensor& right, const at::Tensor& candidate) {
  const std::optional<Reordered> found = reordered(right, candidate);
  if (found) CHECK(found->value.sizes() == right.sizes());
  return found ? found->detail : "";
}

at::Tensor heads_exchanged(const at::Tensor& t) {
  return at::cat({t.narrow(-1, 8, 8), t.narrow(-1, 0, 8), t.narrow(-1, 16, 16)}, -1);
}

}  // namespace

TEST_CASE("names: what a value's slices are exchanged with is told, whatever the dtype rounds") {
  at::manual_seed(1);
  const at::Tensor x = at::randn({2, 5, 32});
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const auto in = [dtype](const at::Tensor& t) { return t.to(dtype); };
    CHECK(order_of(x, in(heads_exchanged(x))) == "slices of axis 2: 0 to 7 and 8 to 15 exchanged");
    CHECK(order_of(x, in(x.flip({2}))) == "slices of axis 2 in reverse");
    CHECK(order_of(x, in(x.unflatten(2, {4, 8}).flip({2}).flatten(2))) == "slices of axis 2 in reverse, 8 at a time");
    CHECK(order_of(x, in(x.roll({1}, {1}))) == "slices of axis 1 turned by 4");
    CHECK(order_of(x, in(x.flip({0}))) == "slices of axis 0: 0 and 1 exchanged");
    CHECK(order_of(x, in(x.unflatten(2, {4, 8}).transpose(2, 3).flatten(2))) ==
          "slices of axis 2 in another order, 30 of 32 elsewhere");
  }
  const at::Tensor square = at::randn({3, 7, 7});
  CHECK(order_of(square, square.transpose(1, 2)) == "axes 1 and 2 exchanged");
}

TEST_CASE("names: padding stays where it is, and other values are in no order") {
  at::manual_seed(2);
  at::Tensor x = at::randn({2, 6, 16});
  x.narrow(1, 4, 2).zero_();
  CHECK(order_of(x, at::cat({x.narrow(1, 1, 1), x.narrow(1, 0, 1), x.narrow(1, 2, 4)}, 1)) ==
        "slices of axis 1: 0 and 1 exchanged");
  CHECK(order_of(x, x).empty());
  CHECK(order_of(x, x * 1.01).empty());
  CHECK(order_of(x, at::randn({2, 6, 16})).empty());
  CHECK(order_of(at::ones({1}), at::zeros({1})).empty());
  for (const at::ScalarType dtype : {at::kLong, at::kBool, at::kComplexFloat}) {
    const at::Tensor whole = at::arange(12).view({3, 4}).to(dtype);
    CHECK(order_of(whole, whole.flip({1})).empty());
  }
}

TEST_CASE("names: two heads of a projection exchanged are permuted heads, features elsewhere channels") {
  at::manual_seed(3);
  const at::Tensor x = at::randn({6, 32}), w = at::randn({32, 32});
  const at::Tensor y = x.mm(w);
  for (const bool attention : {true, false}) {
    CAPTURE(attention);
    ProgramFile file("projection.h5");
    const int64_t product = file.op("aten::mm", {ref(file.leaf(x)), ref(file.leaf(w))}, {y});
    if (attention) {
      const at::Tensor q = y.view({1, 6, 4, 8}).transpose(1, 2);
      const auto [result, sums] = at::_scaled_dot_product_flash_attention_for_cpu(q, q, q);
      const int64_t view =
          file.op("aten::view", {ref(product), json{1, 6, 4, 8}}, {y.view({1, 6, 4, 8})}, {}, {{"view", true}});
      const int64_t heads = file.op("aten::transpose.int", {ref(view), 1, 2}, {q}, {}, {{"view", true}});
      file.op(kAttention, {ref(heads), ref(heads), ref(heads)}, {result, sums});
    }
    const std::string said = diagnosis_of(file, heads_exchanged(y));
    CHECK(said.starts_with(attention ? "permuted heads (slices of axis 1: 0 to 7 and 8 to 15 exchanged"
                                     : "channel order (slices of axis 1: 0 to 7 and 8 to 15 exchanged"));
  }
}

TEST_CASE("names: rows of a sample elsewhere are tokens, those of a convolution channels") {
  at::manual_seed(4);
  const at::Tensor x = at::randn({2, 6, 5}), w = at::randn({7, 6, 3});
  ProgramFile norm("norm.h5"), convolution("convolution.h5");
  norm.op("aten::tanh", {ref(norm.leaf(x))}, {x.tanh()});
  CHECK(diagnosis_of(norm, x.tanh().roll({2}, {1})).starts_with("token order (slices of axis 1 turned by"));
  const at::Tensor y = at::conv1d(x, w);
  convolution.op(
      "aten::convolution",
      {ref(convolution.leaf(x)), ref(convolution.leaf(w)), nullptr, json{1}, json{0}, json{1}, false, json{0}, 1}, {y});
  const std::string said = diagnosis_of(convolution, y.roll({2}, {1}));
  CHECK_MESSAGE(said.starts_with("channel order (slices of axis 1 turned by"), said);
}

TEST_CASE("names: parts of one product for query, key and value stacked otherwise are swapped weights") {
  at::manual_seed(6);
  const at::Tensor x = at::randn({6, 24}), w = at::randn({24, 24}), y = x.mm(w);
  ProgramFile file("stacked.h5");
  file.op("aten::mm", {ref(file.leaf(x)), ref(file.leaf(w))}, {y});
  CHECK(diagnosis_of(file, y.roll({8}, {1})).starts_with("weights swapped (slices of axis 1 turned by 16"));
}

TEST_CASE("names: the result of attention with its heads in reverse, and softmax over the queries") {
  at::manual_seed(4);
  const at::Tensor q = at::randn({2, 4, 6, 8}), k = at::randn({2, 2, 6, 8}), v = at::randn({2, 2, 6, 8});
  const at::Tensor keys = k.repeat_interleave(2, 1), values = v.repeat_interleave(2, 1);
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    const auto [result, sums] = at::_scaled_dot_product_flash_attention_for_cpu(q, keys, values, 0, causal);
    const auto recorded = [&](const std::string& name) {
      auto file = std::make_unique<ProgramFile>(name);
      const json read = {ref(file->leaf(q)), ref(file->leaf(k)), ref(file->leaf(v)), 0.0, causal};
      file->op(kAttention, read, {result, sums});
      return file;
    };
    CHECK(diagnosis_of(*recorded("reverse.h5"), result.flip({1})).starts_with("permuted heads"));
    at::Tensor scores = q.matmul(keys.mT()) / std::sqrt(8.0);
    if (causal) scores = scores.masked_fill(at::ones({6, 6}, at::kBool).tril().logical_not(), -1e30);
    CHECK(
        diagnosis_of(*recorded("queries.h5"), scores.softmax(-2).matmul(values)).starts_with("wrong normalised axis"));
  }
}

TEST_CASE("names: queries that see no key, where another kernel gives them something else") {
  at::manual_seed(7);
  const at::Tensor q = at::randn({2, 4, 6, 8}), k = at::randn({2, 4, 6, 8}), v = at::randn({2, 4, 6, 8});
  const auto said_of = [&](double hidden, const at::Tensor& padding) {
    at::Tensor mask = at::zeros({2, 1, 6, 6});
    mask[1].slice(1, 0, 2).fill_(hidden);  // two rows of padding
    const auto [result, sums] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, false, mask);
    ProgramFile file("empty_rows.h5");
    file.op(kAttention, {ref(file.leaf(q)), ref(file.leaf(k)), ref(file.leaf(v)), 0.0, false},
            {result.nan_to_num(), sums.nan_to_num()}, {{"attn_mask", ref(file.leaf(mask))}});
    at::Tensor theirs = result.nan_to_num().clone();
    theirs[1].slice(1, 0, 2).copy_(padding);
    return diagnosis_of(file, theirs);
  };
  CHECK(said_of(-INFINITY, v[1].mean(1, true)).starts_with("queries that see no key (get the mean of all values"));
  const double lowest = std::numeric_limits<float>::lowest();  // where this kernel gives the mean
  CHECK(said_of(lowest, at::zeros({1})).starts_with("queries that see no key (get zero"));
}

TEST_CASE("names: a mask that hides keys not wholly is no cast, however small what it lets through") {
  at::manual_seed(9);
  const at::Tensor q = at::randn({2, 4, 24, 16}), k = at::randn({2, 4, 24, 16}), v = at::randn({2, 4, 24, 16});
  at::Tensor mask = at::zeros({2, 1, 24, 24});
  mask[1].slice(2, 18).fill_(-INFINITY);  // padding of the second sample
  const auto [result, sums] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, false, mask);
  ProgramFile file("mask.h5");
  file.op(kAttention, {ref(file.leaf(q)), ref(file.leaf(k)), ref(file.leaf(v)), 0.0, false}, {result, sums},
          {{"attn_mask", ref(file.leaf(mask))}});
  for (const double hidden : {-7, -8, -9, -10, -11}) {
    const at::Tensor theirs = std::get<0>(
        at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, false, mask.masked_fill(mask.isinf(), hidden)));
    CHECK(diagnosis_of(file, theirs).find("by its size") == std::string::npos);
  }
}

TEST_CASE("names: norms of channels without gain or bias, with other groups or another mean") {
  at::manual_seed(8);
  const at::Tensor x = at::randn({2, 8, 6, 6}) + 1, w = at::rand({8}) + .5, b = at::randn({8});
  const at::Tensor mean = at::randn({8}), variance = at::rand({8}) + .5;
  const auto [grouped, means, roots] = at::native_group_norm(x, w, b, 2, 8, 36, 4, 1e-5);
  const at::Tensor running = std::get<0>(at::native_batch_norm(x, w, b, mean, variance, false, .1, 1e-5)), none;
  const auto said_of = [&](bool groups, const at::Tensor& theirs) {
    ProgramFile file("channels.h5");
    json read = {ref(file.leaf(x)), ref(file.leaf(w)), ref(file.leaf(b))};
    if (groups) {
      for (const int64_t number : {2, 8, 36, 4}) read.push_back(number);
      read.push_back(1e-5);
      file.op("aten::native_group_norm", read, {grouped, means, roots});
    } else {
      read.insert(read.end(), {ref(file.leaf(mean)), ref(file.leaf(variance)), false, .1, 1e-5});
      file.op("aten::native_batch_norm", read, {running, at::empty({0}), at::empty({0})});
    }
    return diagnosis_of(file, theirs);
  };
  const auto group_norm = [&](const at::Tensor& gain, const at::Tensor& bias, int64_t groups) {
    return std::get<0>(at::native_group_norm(x, gain, bias, 2, 8, 36, groups, 1e-5));
  };
  const auto batch_norm = [&](const at::Tensor& gain, const at::Tensor& bias, bool training) {
    return std::get<0>(at::native_batch_norm(x, gain, bias, mean.clone(), variance.clone(), training, .1, 1e-5));
  };
  CHECK(said_of(true, group_norm(none, b, 4)).starts_with("missing norm gain"));
  CHECK(said_of(true, group_norm(w, none, 4)).starts_with("missing bias"));
  CHECK(said_of(true, group_norm(w, b, 2)).starts_with("wrong groups (2 groups"));
  const at::Tensor shift = b.view({1, 8, 1, 1}), unbiased = (grouped - shift) * std::sqrt(71. / 72) + shift;
  CHECK(said_of(true, unbiased).starts_with("unbiased variance"));
  const at::Tensor parts = x.view({2, 4, 72}), rms = parts * (parts.square().mean(-1, true) + 1e-5).rsqrt();
  CHECK(said_of(true, rms.view_as(x) * w.view({1, 8, 1, 1}) + shift).starts_with("norm without mean"));
  CHECK(said_of(false, batch_norm(none, b, false)).starts_with("missing norm gain"));
  CHECK(said_of(false, batch_norm(w, none, false)).starts_with("missing bias"));
  CHECK(said_of(false, batch_norm(w, b, true)).starts_with("statistics of the batch"));
}

TEST_CASE("names: the batch's statistics are tried without changing the running ones") {
  at::manual_seed(10);
  const auto half = [](const at::Tensor& t) { return t.to(at::kBFloat16); };
  const at::Tensor x = half(at::randn({4, 8, 12, 12})), w = half(at::rand({8}) + .5), b = half(at::randn({8}));
  const at::Tensor mean = half(at::randn({8})), variance = half(at::rand({8}) + .1);
  const auto normed = [&](double eps) {
    return std::get<0>(at::native_batch_norm(x, w, b, mean, variance, false, .1, eps));
  };
  ProgramFile file("running.h5");
  json read;
  for (const at::Tensor& t : {x, w, b, mean, variance}) read.push_back(ref(file.leaf(t)));
  read.insert(read.end(), {false, .1, 1e-3});
  file.op("aten::native_batch_norm", read, {normed(1e-3), at::empty({0}), at::empty({0})});
  const std::string said = diagnosis_of(file, normed(1e-2));
  CHECK(said.starts_with("norm eps"));
  const bool wholly = said.find("explains 99") != std::string::npos || said.find("explains 100 %") != std::string::npos;
  CHECK_MESSAGE(wholly, said);  // 82 % where the statistics had been written
}

TEST_CASE("names: another layer's weight and bias, however the bias is added") {
  at::manual_seed(9);
  const at::Tensor x = at::randn({2, 5, 24}), w = at::randn({12, 24}), b = at::randn({12}) * 4;
  const at::Tensor other_w = at::randn({12, 24}), other_b = at::randn({12}) * 4, rows = x.view({10, 24});
  for (const bool fused : {true, false}) {
    CAPTURE(fused);
    ProgramFile file("layers.h5");
    file.leaf(other_w, json::array({"weights/layers.0.to_qk.weight"}));
    file.leaf(other_b, json::array({"weights/layers.0.to_qk.bias"}));
    const json read = ref(file.leaf(rows)), bias = ref(file.leaf(b, json::array({"weights/layers.1.to_qk.bias"})));
    const json weight = ref(file.leaf(w, json::array({"weights/layers.1.to_qk.weight"})));
    const json turned = ref(file.op("aten::t", {weight}, {w.t()}, {}, {{"view", true}}));
    if (fused) {
      file.op("aten::addmm", {bias, read, turned}, {at::addmm(b, rows, w.t())});
    } else {
      const at::Tensor product = rows.mm(w.t());
      const json made = ref(file.op("aten::mm", {read, turned}, {product}, {}, {{"store", false}}));
      const json seen =
          ref(file.op("aten::_unsafe_view", {made, json{2, 5, 12}}, {product.view({2, 5, 12})}, {}, {{"view", true}}));
      file.op("aten::add.Tensor", {seen, bias}, {product.view({2, 5, 12}) + b});
    }
    const at::Tensor theirs = at::addmm(other_b, rows, other_w.t());
    const std::string said = diagnosis_of(file, fused ? theirs : theirs.view({2, 5, 12}));
    CHECK(said.starts_with("wrong layer's weights (layers.0.to_qk.weight instead of layers.1.to_qk.weight with its"));
    CHECK(said.find("explains 100 %") != std::string::npos);
  }
}

TEST_CASE("names: an image whose colours are in reverse") {
  at::manual_seed(5);
  const at::Tensor image = at::randn({1, 3, 9, 9}), w = at::randn({5, 3, 3, 3});
  ProgramFile file("colours.h5");
  const json ones = {1, 1}, none = {0, 0};
  file.op("aten::convolution", {ref(file.leaf(image)), ref(file.leaf(w)), nullptr, ones, none, ones, false, none, 1},
          {at::conv2d(image, w)});
  CHECK(
      diagnosis_of(file, at::conv2d(image.flip({1}), w)).starts_with("channel order (colours of the input in reverse"));
}

TEST_CASE("names: a convolution whose input has its channels in reverse") {
  at::manual_seed(5);
  const at::Tensor signal = at::randn({1, 6, 19}), w = at::randn({5, 6, 3});
  ProgramFile file("channels.h5");
  const json one = {1}, none = {0};
  file.op("aten::convolution", {ref(file.leaf(signal)), ref(file.leaf(w)), nullptr, one, none, one, false, none, 1},
          {at::conv1d(signal, w)});
  CHECK(diagnosis_of(file, at::conv1d(signal.flip({1}), w))
            .starts_with("channel order (channels of the input in reverse"));
}

TEST_CASE("names: another activation where the value is written over") {
  at::manual_seed(7);
  const at::Tensor x = at::randn({6, 24}), w = at::randn({24, 24}), y = x.mm(w);
  ProgramFile file("in_place.h5");
  const int64_t product = file.op("aten::mm", {ref(file.leaf(x)), ref(file.leaf(w))}, {y}, {}, {{"store", false}});
  file.op("aten::relu_", {ref(product)}, {y.relu()}, {}, {{"ids", {product}}});
  CHECK(diagnosis_of(file, at::gelu(y)).starts_with("activation (GELU for ReLU"));
}

}  // namespace parity
