// What lies between a transformer's matrix products, each in one pass over a row: every number is read once and written
// once, and stays in registers or the first cache in between. Vectorised with Highway; threads and rows are the
// caller's. bf16 is passed as its bits, computed in fp32, and rounded where it is written.
#pragma once
#include <cstdint>
#include <type_traits>

namespace parity::kernels {

/// What a stored type is computed in.
template <class T>
using RowNumber = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// y = (x - mean) / sqrt(variance + eps) * gain + shift (Ba et al. 2016; adaptive: Peebles & Xie 2023, gain 1 + scale).
template <class T>
struct NormAffine {
  const T* x = nullptr;  // (dim)
  T* y = nullptr;        // (dim); may be x
  int64_t dim = 0;
  const RowNumber<T>*gain = nullptr, *shift = nullptr;  // (dim)
  double eps = 0;
};

/// y = x / sqrt(mean square + eps) * weight, rounded to T, then each pair of neighbours of each head turned by its
/// angle (Zhang & Sennrich 2019; Su et al. 2021), rounded again: as diffusers' Wan does both.
template <class T>
struct NormTurn {
  const T* x = nullptr;  // (dim)
  T* y = nullptr;        // (dim); may be x
  int64_t dim = 0;
  const RowNumber<T>* weight = nullptr;  // (dim)
  double eps = 0;
  const RowNumber<T>*cos = nullptr, *sin = nullptr;  // (head), each twice; null: not turned
  int64_t head = 0;                                  // even, divides dim
};

/// out = x + y * gate.
template <class T>
struct GateAdd {
  const T *x = nullptr, *y = nullptr;  // (dim)
  T* out = nullptr;                    // (dim); may be x or y
  int64_t dim = 0;
  const RowNumber<T>* gate = nullptr;  // (dim)
};

/// y = x Phi(x) by the tanh approximation, as x / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3))): nothing cancels.
template <class T>
struct GeluTanh {
  const T* x = nullptr;
  T* y = nullptr;  // may be x
  int64_t n = 0;
};

/// transformers' tanh form in its eight steps, each rounded to T, as eight ops round.
template <class T>
struct GeluNew {
  const T* x = nullptr;
  T* y = nullptr;  // may be x
  int64_t n = 0;
};

#define PARITY_ROW_PASSES(T)             \
  void row_pass(const NormAffine<T>& r); \
  void row_pass(const NormTurn<T>& r);   \
  void row_pass(const GateAdd<T>& r);    \
  void row_pass(const GeluTanh<T>& r);   \
  void row_pass(const GeluNew<T>& r);
PARITY_ROW_PASSES(double)
PARITY_ROW_PASSES(float)
PARITY_ROW_PASSES(uint16_t)
#undef PARITY_ROW_PASSES

}  // namespace parity::kernels
