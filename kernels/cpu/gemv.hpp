// Matrix times vector on the CPU, weights read once and in order: what a token of a language model costs. Vectorised
// with Highway, the instruction set chosen at run time. Threads are the caller's: each takes a range of outputs.
#pragma once
#include <cstdint>

namespace parity::kernels {

/// gelu_new is transformers' tanh form in its eight steps; with 16-bit results each step is rounded to them, as the
/// eight ops round.
enum class Activation : uint8_t { none, gelu_new };

/// y = activation(x weight^T * scale + bias). bf16 is passed as its bits, and summed in fp32.
template <class X, class W>
struct Gemv {
  const X* x = nullptr;          // (rows, inputs)
  const W* weight = nullptr;     // (outputs, inputs)
  const X* bias = nullptr;       // (outputs) or null
  const float* scale = nullptr;  // (outputs), of int8 weights
  X* y = nullptr;                // (rows, outputs)
  int64_t rows = 0, inputs = 0, outputs = 0;
  Activation activation = Activation::none;
};

/// Outputs [begin, end) of every row. The same digits for any way of cutting the range.
void gemv(const Gemv<double, double>& g, int64_t begin, int64_t end);
void gemv(const Gemv<float, float>& g, int64_t begin, int64_t end);
void gemv(const Gemv<uint16_t, uint16_t>& g, int64_t begin, int64_t end);
/// Weights as signed bytes, one scale an output; everything else fp32.
void gemv(const Gemv<float, int8_t>& g, int64_t begin, int64_t end);

}  // namespace parity::kernels
