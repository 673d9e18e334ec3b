// Matrix times vector over weights in MXFP4, four bits read a weight. Vectorised with Highway, the instruction set
// chosen at run time. Threads are the caller's: each takes a range of outputs.
#pragma once
#include <cstdint>

namespace parity::kernels {

/// y = x weight^T + bias. bf16 is passed as its bits, and summed in fp32.
template <class X>
struct Mxfp4Gemv {
  const X* x = nullptr;             // (rows, inputs), inputs a multiple of 32
  const uint8_t* values = nullptr;  // (outputs, inputs / 2): two values of e2m1 a byte, the low four bits first
  const uint8_t* scales = nullptr;  // (outputs, inputs / 32): exponent + 127
  const X* bias = nullptr;          // (outputs) or null
  X* y = nullptr;                   // (rows, outputs)
  int64_t rows = 0, inputs = 0, outputs = 0;
};

/// Outputs [begin, end) of every row. The same digits for any way of cutting the range.
void mxfp4_gemv(const Mxfp4Gemv<double>& g, int64_t begin, int64_t end);
void mxfp4_gemv(const Mxfp4Gemv<float>& g, int64_t begin, int64_t end);
void mxfp4_gemv(const Mxfp4Gemv<uint16_t>& g, int64_t begin, int64_t end);

}  // namespace parity::kernels
