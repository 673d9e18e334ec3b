// INT8 weights times fp32 rows, in whole numbers: against fp64 sums, and the same bits under every instruction set.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "instruction_sets.hpp"
#include "kernels/cpu/gemv.hpp"

namespace parity {
namespace {

struct Int8Product {
  int64_t rows, inputs, outputs;
  std::vector<float> x, scale;
  std::vector<int8_t> weight;

  Int8Product(int64_t r, int64_t n, int64_t o) : rows(r), inputs(n), outputs(o) {
    std::mt19937 random(static_cast<unsigned>(r + 10 * n + 100 * o));
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < r * n; ++i) x.push_back(normal(random));
    for (int64_t i = 0; i < o; ++i) scale.push_back(std::abs(normal(random)) + .1F);
    for (int64_t i = 0; i < o * n; ++i) weight.push_back(static_cast<int8_t>(static_cast<int>(random() % 255) - 127));
  }

  std::vector<float> computed() const {
    std::vector<float> y(static_cast<size_t>(rows * outputs));
    const kernels::Gemv<float, int8_t> g{x.data(), weight.data(), nullptr, scale.data(),
                                         y.data(), rows,          inputs,  outputs};
    kernels::gemv(g, 0, outputs);
    return y;
  }

  double plain(int64_t row, int64_t output) const {
    double sum = 0;
    for (int64_t i = 0; i < inputs; ++i) sum += static_cast<double>(x[row * inputs + i]) * weight[output * inputs + i];
    return sum * scale[output];
  }

  // Each number of the row off by 2^-30 of the largest at most, the sum rounded once.
  double allowed(int64_t row, int64_t output) const {
    double largest = 0, weights = 0;
    for (int64_t i = 0; i < inputs; ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(x[row * inputs + i])));
      weights += std::abs(static_cast<double>(weight[output * inputs + i]));
    }
    const double roundoff = std::numeric_limits<float>::epsilon() / 2;
    return std::ldexp(largest, -30) * weights * scale[output] + 1.001 * roundoff * std::abs(plain(row, output)) +
           std::numeric_limits<float>::denorm_min();
  }
};

void check_product(const Int8Product& p) {
  const std::vector<float> first = p.computed();
  on_every_instruction_set([&] {
    const std::vector<float> y = p.computed();
    CHECK(std::memcmp(y.data(), first.data(), y.size() * sizeof(float)) == 0);
  });
  int64_t wrong = 0;
  for (int64_t row = 0; row < p.rows; ++row)
    for (int64_t o = 0; o < p.outputs; ++o)
      wrong += !(std::abs(first[row * p.outputs + o] - p.plain(row, o)) <= p.allowed(row, o));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("int8 product: every size gives the fp64 sum, the same bits under every instruction set") {
  for (const int64_t rows : {1, 9})
    for (const int64_t inputs : {1, 5, 64, 65, 768, 4097, 9000})
      for (const int64_t outputs : {1, 7, 130}) {
        CAPTURE(rows);
        CAPTURE(inputs);
        CAPTURE(outputs);
        check_product({rows, inputs, outputs});
      }
}

TEST_CASE("int8 product: sums as large as 32 bits hold, rows of outliers, tiny, huge and zero rows") {
  Int8Product p(6, 8200, 5);
  const auto row = [&](int64_t r) { return p.x.data() + r * p.inputs; };
  std::fill_n(p.weight.data(), p.inputs, int8_t{127});
  std::fill_n(p.weight.data() + p.inputs, p.inputs, int8_t{-128});
  std::fill_n(row(0), p.inputs, -8421504.F), row(0)[70] = 805306368.F;  // the lower digits of 8 bits are all -128
  std::fill_n(row(1), p.inputs, -32768.F), row(1)[8199] = 805306368.F;  // and of 16
  row(2)[3] = std::nextafter(4096.F, 0.F);                              // the largest q
  for (int64_t i = 0; i < p.inputs; ++i) row(3)[i] *= 1e-40F, row(4)[i] *= 1e37F, row(5)[i] = 0;
  for (float& scale : p.scale) scale *= 1e-4F;
  check_product(p);
}

TEST_CASE("int8 product: Inf and NaN of a row are in its outputs, and in no other row's") {
  Int8Product p(4, 100, 9);
  std::fill(p.weight.begin(), p.weight.end(), int8_t{1});
  p.x[1 * 100 + 99] = std::numeric_limits<float>::infinity(), p.x[2 * 100 + 5] = std::nanf("");
  on_every_instruction_set([&] {
    const std::vector<float> y = p.computed();
    for (int64_t o = 0; o < p.outputs; ++o) {
      CHECK(std::abs(y[o] - p.plain(0, o)) <= p.allowed(0, o));
      CHECK(y[1 * p.outputs + o] == std::numeric_limits<float>::infinity());
      CHECK(std::isnan(y[2 * p.outputs + o]));
      CHECK(std::abs(y[3 * p.outputs + o] - p.plain(3, o)) <= p.allowed(3, o));
    }
  });
}

}  // namespace parity
