#include "ops/relative_position.hpp"

#include <cmath>

namespace parity {
namespace ops {

at::Tensor relative_position_buckets(int64_t tokens, const BucketForm& form, Precision precision) {
  const int64_t half = form.buckets / 2, exact = half / 2;
  const auto position = at::arange(tokens, at::kLong);
  const auto relative = position.unsqueeze(0) - position.unsqueeze(1), distance = relative.abs();
  // Below `exact` the logarithm is not used; held there, it is never that of zero.
  auto far = distance.clamp_min(exact).to(redirect(at::kFloat, precision)) / static_cast<double>(exact);
  far = far.log() / std::log(static_cast<double>(form.max_distance) / static_cast<double>(exact));
  far = (far * static_cast<double>(half - exact)).to(at::kLong) + exact;
  return (relative > 0).to(at::kLong) * half + at::where(distance < exact, distance, far.clamp_max(half - 1));
}

at::Tensor relative_position_bias(const at::Tensor& table, const at::Tensor& buckets) {
  return at::embedding(table, buckets);
}

at::Tensor padded_bias(const at::Tensor& bias, const at::Tensor& sees, double lowest) {
  return at::where(sees, bias, at::scalar_tensor(lowest, bias.options()));
}

}  // namespace ops

namespace {

constexpr BucketForm kUmt5{32, 128}, kSmall{12, 20};

BucketForm form_of(const OpCase& c) { return c.in[0].size(0) == kUmt5.buckets ? kUmt5 : kSmall; }

// In whole numbers: bucket exact + b holds distances p with (p / exact)^n >= (max / exact)^b, n buckets in all.
int64_t bucket(int64_t relative, const BucketForm& form) {
  const int64_t half = form.buckets / 2, exact = half / 2, n = half - exact;
  const int64_t side = relative > 0 ? half : 0, p = std::min(std::abs(relative), form.max_distance);
  if (p < exact) return side + p;
  const auto power = [](long double base, int64_t times) {
    long double product = 1;
    for (int64_t i = 0; i < times; ++i) product *= base;
    return product;  // below 2^64 here: no digit is lost
  };
  int64_t b = 0;
  while (b + 1 < n && power(p, n) >= power(exact, n - b - 1) * power(form.max_distance, b + 1)) ++b;
  return side + exact + b;
}

// in: table (buckets, heads), any tensor of as many rows as there are tokens.
at::Tensor reference(const OpCase& c) {
  const int64_t tokens = c.in[1].size(0), heads = c.in[0].size(1);
  const auto form = form_of(c);
  auto out = at::empty({tokens, tokens, heads}, at::kDouble);
  auto ys = out.accessor<double, 3>();
  const auto table = c.in[0].accessor<double, 2>();
  for (int64_t i = 0; i < tokens; ++i)
    for (int64_t j = 0; j < tokens; ++j)
      for (int64_t h = 0; h < heads; ++h) ys[i][j][h] = table[bucket(j - i, form)][h];
  return out;
}

at::Tensor run(const OpCase& c) {
  const auto precision = c.in[0].scalar_type() == at::kDouble ? Precision::fp64 : Precision::recorded;
  return ops::relative_position_bias(c.in[0], ops::relative_position_buckets(c.in[1].size(0), form_of(c), precision));
}

// Tokens beyond the greatest distance; every bucket is reached.
std::vector<OpCase> cases() {
  return {{"umt5", {spread({32, 3}, 1), spread({150}, 2)}}, {"small", {spread({12, 2}, 3), spread({27}, 4)}}};
}

}  // namespace

const OpRow& relative_position_row() {
  // Worst measured: exact in every dtype. A bucket beside the right one has another bias.
  static const OpRow row{"relative position bias",
                         reference,
                         run,
                         cases,
                         {{at::kDouble, 0, {}}, {at::kFloat, 0, {}}, {at::kBFloat16, 0, {}}}};
  return row;
}

}  // namespace parity
