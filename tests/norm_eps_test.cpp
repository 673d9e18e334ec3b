// The eps of norms in ports: far below a rounding it is known by the elements that round otherwise.
#include <doctest/doctest.h>

#include <cmath>

#include "program_file.hpp"

namespace parity {
namespace {

using testing::diagnosis_of;
using testing::json;
using testing::judged_result;
using testing::ProgramFile;
using testing::ref;

struct NormCase {
  int64_t rows, width;
  double spread;  // of the input
  at::ScalarType dtype;
};

std::vector<at::Tensor> layer_norm_of(const at::Tensor& x, double eps) {
  const auto [y, mean, root] = at::native_layer_norm(x, {x.size(-1)}, {}, {}, eps);
  return {y, mean, root};
}

std::vector<at::Tensor> group_norm_of(const at::Tensor& x, double eps) {
  const auto [y, mean, root] = at::native_group_norm(x, {}, {}, x.size(0), x.size(1), x.size(2), /*group=*/2, eps);
  return {y, mean, root};
}

OpResult layer_norm_with(const NormCase& c, double recorded, double ported) {
  at::manual_seed(3);
  ProgramFile file("layer-norm-eps.h5");
  const at::Tensor x = (at::randn({c.rows, c.width}) * c.spread).to(c.dtype);
  file.op("aten::native_layer_norm", {ref(file.leaf(x)), json{c.width}, nullptr, nullptr, recorded},
          layer_norm_of(x, recorded));
  return judged_result(file, layer_norm_of(x, ported)[0]);
}

// Over the values: the mean square less the mean's square, or the mean square of what is left.
enum class Passes { one, two };

// (1, channels, height, width), each sum in one fp32 variable, as a plain loop takes it.
at::Tensor group_norm_in_order(const at::Tensor& x, int64_t groups, float eps, Passes passes) {
  const at::Tensor rows = x.reshape({groups, -1}).clone();
  const int64_t n = rows.size(1);
  const auto count = static_cast<float>(n);
  for (int64_t g = 0; g < groups; ++g) {
    float* row = rows[g].data_ptr<float>();
    float sum = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) sum += row[i];
    const float mean = sum / count, about = passes == Passes::two ? mean : 0;
    for (int64_t i = 0; i < n; ++i) squares += (row[i] - about) * (row[i] - about);
    const float variance = squares / count - (mean - about) * (mean - about), scale = 1 / std::sqrt(variance + eps);
    for (int64_t i = 0; i < n; ++i) row[i] = (row[i] - mean) * scale;
  }
  return rows.reshape(x.sizes());
}

constexpr int64_t kGroups = 8;

std::vector<at::Tensor> libtorch(const at::Tensor& x, double eps) {
  const auto [y, mean, root] = at::native_group_norm(x, {}, {}, 1, 32, 256, kGroups, eps);
  return {y, mean, root};
}

// Of a port of a group norm whose eps was recorded as 1e-6.
OpResult judged_group_norm(const at::Tensor& x, const at::Tensor& ported) {
  ProgramFile file("group-norm-eps.h5");
  file.op("aten::native_group_norm", {ref(file.leaf(x)), nullptr, nullptr, 1, 32, 256, kGroups, 1e-6},
          libtorch(x, 1e-6));
  return judged_result(file, ported);
}

at::Tensor image(int seed) {
  at::manual_seed(static_cast<uint64_t>(seed));
  return at::randn({1, 32, 16, 16});
}

// Channels of other sizes and means.
at::Tensor features(int seed) {
  const at::Tensor x = image(seed);
  return x * at::randn({1, 32, 1, 1}).exp() * std::pow(1.01, seed) + at::randn({1, 32, 1, 1});
}

}  // namespace

TEST_CASE("norm eps: sums of a thousand terms in one variable are none, in a group norm") {
  for (int seed = 0; seed < 24; ++seed) {
    CAPTURE(seed);
    const at::Tensor x = image(seed) * (.3 + .2 * seed) + .5;
    const OpResult row = judged_group_norm(x, group_norm_in_order(x, kGroups, 1e-6F, Passes::two));
    CAPTURE(row.diagnosis);
    CHECK(row.verdict == Verdict::pass);
  }
  const at::Tensor x = image(3) * .9 + .5;
  const OpResult row = judged_group_norm(x, group_norm_in_order(x, kGroups, 1e-4F, Passes::two));
  CHECK(row.verdict == Verdict::fail);
  CHECK(row.diagnosis.starts_with("norm eps"));
}

// Eight numbers are off, and counted element by element eight of these 400 norms had another eps, at up to 20 sigma.
TEST_CASE("norm eps: a variance in one pass is none, in a group norm") {
  for (int seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const at::Tensor x = features(seed);
    const OpResult row = judged_group_norm(x, group_norm_in_order(x, kGroups, 1e-6F, Passes::one));
    CAPTURE(row.diagnosis);
    CHECK(row.verdict == Verdict::pass);
  }
}

TEST_CASE("norm eps: one that changes a group norm by as much as such sums is named where they are LibTorch's") {
  for (int seed = 0; seed < 24; ++seed) {
    CAPTURE(seed);
    const at::Tensor x = features(seed);
    const OpResult row = judged_group_norm(x, libtorch(x, 1e-5)[0]);
    CAPTURE(row.diagnosis);
    CHECK(row.diagnosis.starts_with("norm eps (eps 1e-06 -> 1e-05"));
  }
}

TEST_CASE("norm eps: one that turns one element in two hundred over is named, in bf16 and in fp32") {
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat}) {
    CAPTURE(dtype);
    const OpResult row = layer_norm_with({64, 104, 1, dtype}, 1e-5, 1e-4);
    CHECK(row.verdict == Verdict::fail);
    CHECK(row.diagnosis.starts_with("norm eps"));
    CHECK(layer_norm_with({64, 104, 1, dtype}, 1e-5, 1e-5).verdict == Verdict::pass);
  }
}

TEST_CASE("norm eps: two or three elements that round another way are no eps, though some size of it explains them") {
  const OpResult row = layer_norm_with({64, 104, 1, at::kBFloat16}, 1e-5, 1.2e-5);
  REQUIRE(row.forced);
  const double differ = (1 - row.forced->bitwise_equal_share.value_or(1)) * 64 * 104;
  CHECK(differ > .5);
  CHECK(differ < 4.5);
  CHECK(row.verdict == Verdict::pass);
}

TEST_CASE("norm eps: what another library's reciprocal root does as well is not named in half width") {
  const OpResult row = layer_norm_with({4096, 256, 9, at::kBFloat16}, 1e-5, 1e-6);  // 5.6e-8 of every row
  REQUIRE(row.forced);
  CHECK(row.forced->bitwise_equal_share.value_or(1) < 1);
  CHECK(row.verdict == Verdict::pass);
}

TEST_CASE("norm eps: one that is added in place, as LibTorch's own steps of an RMS norm have it") {
  at::manual_seed(5);
  const at::Tensor x = at::randn({64, 104}) * .1, squares = x.pow(2), mean = squares.mean({-1}, true);
  ProgramFile file("in-place-eps.h5");
  const int64_t in = file.leaf(x), square = file.op("aten::pow.Tensor_Scalar", {ref(in), 2}, {squares});
  const int64_t sum = file.op("aten::mean.dim", {ref(square), json{-1}, true}, {mean}, {}, {{"store", false}});
  file.op("aten::add_.Scalar", {ref(sum), 1e-5}, {mean + 1e-5}, {}, {{"ids", {sum}}, {"store", false}});
  const int64_t root = file.op("aten::rsqrt", {ref(sum)}, {(mean + 1e-5).rsqrt()}, {}, {{"store", false}});
  file.op("aten::mul.Tensor", {ref(in), ref(root)}, {x * (mean + 1e-5).rsqrt()});
  const std::string said = diagnosis_of(file, x * (mean + 1e-4).rsqrt());
  CAPTURE(said);
  CHECK(said.starts_with("norm eps"));
}

TEST_CASE("norm eps: a group norm's has its name") {
  at::manual_seed(4);
  ProgramFile file("group-norm-eps.h5");
  const at::Tensor x = at::randn({2, 8, 60}) * .1;
  file.op("aten::native_group_norm", {ref(file.leaf(x)), nullptr, nullptr, 2, 8, 60, 2, 1e-5}, group_norm_of(x, 1e-5));
  CHECK(judged_result(file, group_norm_of(x, 1e-6)[0]).diagnosis.starts_with("norm eps"));
}

TEST_CASE("norm eps: of a norm over channels written out, divided by its root") {
  at::manual_seed(4);
  const at::Tensor x = at::randn({2, 12, 40}), variance = x.var({1}, /*unbiased=*/false, /*keepdim=*/true);
  ProgramFile file("written-out-eps.h5");
  const int64_t from = file.leaf(x), spread = file.leaf(variance);
  const int64_t sum = file.op("aten::add.Tensor", {ref(spread), 1e-5}, {variance + 1e-5}, {}, {{"store", false}});
  const at::Tensor root = (variance + 1e-5).sqrt();
  const int64_t rooted = file.op("aten::sqrt", {ref(sum)}, {root}, {}, {{"store", false}});
  file.op("aten::div.Tensor", {ref(from), ref(rooted)}, {x / root});
  CHECK(diagnosis_of(file, x / (variance + 1e-4).sqrt()).starts_with("norm eps (eps 1e-05 -> 0.0001"));
}

TEST_CASE("norm eps: a mean square that a loop sums in another order is no other eps, of a row or two") {
  at::manual_seed(11);
  const at::Tensor x = at::randn({2, 48}) * 2.2, mean = x.square().mean(-1, true), sum = mean + 1e-6,
                   root = sum.rsqrt();
  const json hidden = {{"store", false}};
  const auto said_of = [&](const at::Tensor& other) {
    ProgramFile file("loop.h5");
    const int64_t in = file.leaf(x);
    const int64_t squares = file.op("aten::pow.Tensor_Scalar", {ref(in), 2}, {x.square()}, {}, hidden);
    const int64_t means = file.op("aten::mean.dim", {ref(squares), json::array({-1}), true}, {mean}, {}, hidden);
    const int64_t sums = file.op("aten::add.Tensor", {ref(means), 1e-6}, {sum}, {}, hidden);
    const int64_t roots = file.op("aten::rsqrt", {ref(sums)}, {root}, {}, hidden);
    file.op("aten::mul.Tensor", {ref(in), ref(roots)}, {x * root});
    return judged_result(file, x * other);
  };
  const OpResult off_by_a_bit = said_of((mean * (1 - 1.2e-7f) + 1e-6f).rsqrt()),
                 other_eps = said_of((mean + 1e-3).rsqrt());
  CHECK_MESSAGE(off_by_a_bit.verdict == Verdict::pass, off_by_a_bit.diagnosis);
  CHECK(other_eps.verdict == Verdict::fail);
}

}  // namespace parity
