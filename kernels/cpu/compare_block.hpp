// One block of a comparison on the CPU: sums in fp64 and a look at the bits. Vectorised with Highway, the instruction
// set chosen at run time. Knows nothing of tensors, non-finite values or limits: src/compare does.
#pragma once
#include <cstdint>

namespace parity::kernels {

/// Elements of a block. 1024 fp32 pairs and their differences (16 KiB) stay in the first-level cache.
inline constexpr int64_t kBlock = 1024;

/// Over one block, d = candidate - reference; every element finite.
struct BlockSums {
  double max_d = 0, sum_d = 0, sum_dd = 0;   // of |d|, |d|, d^2
  double sum_r = 0, sum_rr = 0, sum_cc = 0;  // of |r|, r^2, c^2
  double sum_rc = 0, sum_dr = 0;             // of r c, d r
};

/// `n` <= kBlock pairs; |d| goes to `abs_d` (n). The 16-bit formats are passed as their bits.
BlockSums block_sums_fp32(const float* r, const float* c, int64_t n, double* abs_d);
BlockSums block_sums_bf16(const uint16_t* r, const uint16_t* c, int64_t n, double* abs_d);
BlockSums block_sums_fp16(const uint16_t* r, const uint16_t* c, int64_t n, double* abs_d);
/// Converted before: d (n) is given, because the caller may know it more exactly than c - r.
BlockSums block_sums_fp64(const double* r, const double* c, const double* d, int64_t n, double* abs_d);

/// Floats as sign and magnitude bits.
struct BlockBits {
  uint64_t max_ulp = 0;  // distance of ordered integers; +0 and -0 are 0 apart. Meaningless when `special`
  int64_t equal = 0;     // pairs with equal bits
  int64_t zeros = 0;     // in r, of either sign
  bool special = false;  // some magnitude of r or c >= `infinity`: a NaN or Inf
};

/// `infinity`: the bits of the smallest magnitude that is not a finite number.
BlockBits block_bits(const uint8_t* r, const uint8_t* c, int64_t n, uint8_t infinity);
BlockBits block_bits(const uint16_t* r, const uint16_t* c, int64_t n, uint16_t infinity);
BlockBits block_bits(const uint32_t* r, const uint32_t* c, int64_t n, uint32_t infinity);
BlockBits block_bits(const uint64_t* r, const uint64_t* c, int64_t n, uint64_t infinity);

/// Appends to `out` (room for n + 8) the values of `a` (n) above `low`; returns how many.
int64_t block_collect(const double* a, int64_t n, double low, double* out);

}  // namespace parity::kernels
