// A plain C++ model that records itself through probes/cpp/parity_probe.hpp.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

namespace {

// With PORT_CHANGES=N the process dies before its Nth change to bytes that the file already has, as by kill -9.
ssize_t write_or_die(int file, const void* data, std::size_t size, off_t address) {
  static const char* limit = std::getenv("PORT_CHANGES");
  static long left = limit == nullptr ? -1 : std::atol(limit);
  struct stat status {};
  if (limit != nullptr && fstat(file, &status) == 0 && address < status.st_size && left-- == 0) _exit(9);
  return pwrite(file, data, size, address);
}

}  // namespace
#define pwrite write_or_die
#include "parity_probe.hpp"
#undef pwrite

using parity::probe::Options;
using parity::probe::Role;
using parity::probe::Writer;
using Floats = std::vector<float>;

namespace {

constexpr int kTokens = 5, kDim = 8;

Floats numbers(int count, int seed, float scale) {
  Floats all(count);
  for (int i = 0; i < count; ++i) all[i] = scale * static_cast<float>(std::sin(0.7 * i + seed));
  return all;
}

// One transformer feed-forward block: norm, linear, GELU, linear, residual; every step is a named point.
struct Model {
  Floats gain = numbers(kDim, 1, 1), bias = numbers(kDim, 2, 0.1F), up = numbers(4 * kDim * kDim, 3, 0.3F),
         down = numbers(4 * kDim * kDim, 4, 0.2F);  // (out, in)

  Floats forward(const Floats& x, Writer& w) const {
    w.write("block.x", x.data(), {kTokens, kDim}, Role::input);
    Floats y = norm(x);
    w.write("block.norm", y.data(), {kTokens, kDim});
    y = linear(y, up, kDim, 4 * kDim);
    w.write("block.up", y.data(), {kTokens, 4 * kDim});
    for (float& v : y) v = 0.5F * v * (1 + std::erf(v / std::sqrt(2.0F)));
    w.write("block.gelu", y.data(), {kTokens, 4 * kDim});
    y = linear(y, down, 4 * kDim, kDim);
    w.write("block.down", y.data(), {kTokens, kDim});
    for (int i = 0; i < kTokens * kDim; ++i) y[i] += x[i];
    w.write("block", y.data(), {kTokens, kDim});
    return y;
  }

  Floats norm(const Floats& x) const {
    Floats y(x.size());
    for (int t = 0; t < kTokens; ++t) {
      const float* row = &x[t * kDim];
      float mean = 0, variance = 0;
      for (int i = 0; i < kDim; ++i) mean += row[i] / kDim;
      for (int i = 0; i < kDim; ++i) variance += (row[i] - mean) * (row[i] - mean) / kDim;
      for (int i = 0; i < kDim; ++i)
        y[t * kDim + i] = (row[i] - mean) / std::sqrt(variance + 1e-5F) * gain[i] + bias[i];
    }
    return y;
  }

  static Floats linear(const Floats& x, const Floats& weight, int in, int out) {
    Floats y(static_cast<std::size_t>(kTokens) * out);
    for (int t = 0; t < kTokens; ++t)
      for (int o = 0; o < out; ++o)
        for (int i = 0; i < in; ++i) y[t * out + o] += x[t * in + i] * weight[o * in + i];
    return y;
  }

  void write_weights(Writer& w) const {
    w.write("block.norm.weight", gain.data(), {kDim}, Role::weight);
    w.write("block.norm.bias", bias.data(), {kDim}, Role::weight);
    w.write("block.up.weight", up.data(), {4 * kDim, kDim}, Role::weight);
    w.write("block.down.weight", down.data(), {kDim, 4 * kDim}, Role::weight);
  }
};

}  // namespace
