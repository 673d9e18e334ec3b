// What is recorded: every kind of number, statistics, sketches, strides.
#pragma once
#include <complex>
#include <cstring>
#include <string>
#include <vector>

#include "model.hpp"

namespace {

void statistics(const char* file) {
  Options options;
  options.statistics_only = true;
  Writer w(file, options);
  Model().forward(numbers(kTokens * kDim, 9, 1), w);
  const float odd[] = {1, -2, 0, INFINITY, NAN, -INFINITY, NAN};
  w.write("odd", odd, {7});
  w.write("empty", odd, {0, 3});
  const std::uint16_t half[] = {0x3c00, 0xc000, 0x0001, 0x7c00, 0x7e01};  // 1, -2, 2^-24, inf, nan
  w.write("half", half, {5}, parity::probe::f16);
  const std::uint8_t eight[] = {0x38, 0xc0, 0x01, 0x7f, 0x7e};  // 1, -2, 2^-9, nan, 448
  w.write("e4m3", eight, {5}, parity::probe::f8_e4m3);
  const std::int8_t whole[] = {-3, 4};
  w.write("whole", whole, {2});
  const std::complex<float> complex[] = {{3, 4}, {0, 0}};
  w.write("complex", complex, {2});
}

void every_kind(Writer& w) {
  using namespace parity::probe;
  constexpr int kCount = 6000;
  const Floats x = numbers(kCount, 3, 2);
  std::vector<std::uint16_t> brain(kCount), half(kCount);
  std::vector<unsigned char> bytes(kCount);
  std::vector<double> wide(x.begin(), x.end());
  std::vector<std::int32_t> whole(kCount);
  std::vector<std::complex<float>> complex(kCount);
  for (int i = 0; i < kCount; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, &x[i], sizeof bits);
    brain[i] = static_cast<std::uint16_t>(bits >> 16);
    half[i] = static_cast<std::uint16_t>(7 * i);  // NaN and infinities among them
    bytes[i] = static_cast<unsigned char>(i);
    whole[i] = i - 5 * (i % 1000);
    complex[i] = {x[i], static_cast<float>(i)};
  }
  wide[17] = INFINITY;
  w.write("f32", x.data(), {20, 30, 10});
  w.write("turned", x.data(), {10, 30, 20}, Role::output, {1, 10, 300});
  w.write("bf16", brain.data(), {60, 100}, bf16);
  w.write("f16", half.data(), {60, 100}, f16);
  w.write("e4m3", bytes.data(), {kCount}, f8_e4m3);
  w.write("e5m2", bytes.data(), {kCount}, f8_e5m2);
  w.write("u8", bytes.data(), {kCount});
  w.write("f64", wide.data(), {2, 3, 10, 100});
  w.write("i32", whole.data(), {kCount});
  w.write("c64", complex.data(), {60, 100});
  w.write("long", Floats(600 * 2000, 1.5F).data(), {600, 2000});  // more buckets
  w.write("small", x.data(), {5, 5});
  w.write("weight", x.data(), {100}, Role::weight);
}

// Every tensor as a sketch, in FILE.full as it is, and tensor f32 in four parts in FILE.rank0 …
void sketches(const char* file) {
  const std::string name = file;
  Options options;
  options.sketches = true;
  Writer sketched(name, options), full(name + ".full");
  every_kind(sketched);
  every_kind(full);
  const Floats x = numbers(6000, 3, 2);
  for (int rank = 0; rank < 4; ++rank) {
    Writer w(name + ".rank" + std::to_string(rank), options);
    w.write("f32", x.data() + 5 * (rank % 2) + 3000 * (rank / 2), {10, 30, 5}, Role::output, {300, 10, 1},
            {{0, 10 * (rank / 2), 20}, {2, 5 * (rank % 2), 10}});
  }
}

void dtypes(const char* file) {
  using namespace parity::probe;
  Writer w(file);
  std::vector<unsigned char> bytes(16 * 24);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(37 * i + 11);
  for (const Dtype& dtype : {f64, f32, f16, bf16, f8_e4m3, f8_e5m2, i64, i32, i16, i8, u64, u32, u16, u8, c64, c128})
    w.write(dtype.name, bytes.data(), {2, 3, 4}, dtype);
  const bool truths[] = {true, false, true};
  w.write("bool", truths, {3});
  const double one = 1;
  w.write("scalar", &one, {});
  w.write("empty", &one, {0, 4});
  w.write("a/b", &one, {1}, Role::weight);
  w.write(".", &one, {1}, Role::weight);
  const std::vector<long> from_vector(6, 7);
  const std::vector<std::int64_t> shape{2, 3};
  w.write("vector", from_vector.data(), shape);
}

void strides(const char* file) {
  Writer w(file);
  const Floats x = numbers(2 * 3 * 4, 0, 1);
  w.write("plain", x.data(), {2, 3, 4});
  w.write("turned", x.data(), {4, 3, 2}, Role::output, {1, 4, 12});
  w.write("part", x.data() + 1, {2, 3, 2}, Role::output, {12, 4, 2});
  w.write("wide", x.data(), {5, 4}, Role::output, {0, 1});
  w.write("backwards", x.data() + 23, {24}, Role::output, {-1});
  w.write("ones", x.data(), {1, 4, 1}, Role::output, {77, 1, 99});
}

}  // namespace
