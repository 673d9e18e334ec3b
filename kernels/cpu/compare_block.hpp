// One block of a comparison on the CPU: sums in fp64 and a look at the bits. Vectorised with Highway, the instruction
// set chosen at run time. Knows nothing of tensors, non-finite values or limits: src/compare does.
#pragma once
#include <cstdint>

namespace parity::kernels {

/// Elements of a block. 1024 fp32 pairs and their differences (16 KiB) stay in the first-level cache.
inline constexpr int64_t kBlock = 1024;

/// Over one block, d = candidate - reference. A NaN or Inf on either side leaves sum_rr or sum_dd not finite.
/// <r,c> and <c,c> follow from these: <r,r> + <d,r> and <r,r> + 2 <d,r> + <d,d>.
struct BlockSums {
  double max_d = 0, sum_d = 0, sum_dd = 0;   // of |d|, |d|, d^2
  double sum_r = 0, sum_rr = 0, sum_dr = 0;  // of |r|, r^2, d r
};

/// `n` <= kBlock pairs; |d| goes to `abs_d` (n). The 16-bit formats are passed as their bits.
BlockSums block_sums_fp64(const double* r, const double* c, int64_t n, double* abs_d);
BlockSums block_sums_fp32(const float* r, const float* c, int64_t n, double* abs_d);
BlockSums block_sums_bf16(const uint16_t* r, const uint16_t* c, int64_t n, double* abs_d);
BlockSums block_sums_fp16(const uint16_t* r, const uint16_t* c, int64_t n, double* abs_d);

/// Floats as sign and magnitude bits.
struct BlockBits {
  uint64_t max_ulp =
      0;  // distance of ordered integers; +0 and -0 are 0 apart. Means nothing when a NaN or Inf is among them
  int64_t equal = 0;  // pairs with equal bits
  int64_t zeros = 0;  // in r, of either sign
};

BlockBits block_bits(const uint8_t* r, const uint8_t* c, int64_t n);
BlockBits block_bits(const uint16_t* r, const uint16_t* c, int64_t n);
BlockBits block_bits(const uint32_t* r, const uint32_t* c, int64_t n);
BlockBits block_bits(const uint64_t* r, const uint64_t* c, int64_t n);

/// Inner products of three arrays a, b, c of n <= kBlock.
struct BlockProducts {
  double aa = 0, bb = 0, cc = 0, bc = 0;
};
BlockProducts block_products(const double* a, const double* b, const double* c, int64_t n);

/// So many elements beyond what they find may the next two write.
inline constexpr int64_t kBlockSpill = 4;

/// Writes to `out` (room for n + kBlockSpill) the values of `a` (n) that are greater than `low`, in their order, and
/// returns how many they are.
int64_t block_above(const double* a, int64_t n, double low, double* out);

/// An open interval of numbers and one value `tie` inside that is only counted (NaN: none).
struct BlockInterval {
  double low = 0, high = 0, tie = 0;
};
struct BlockFound {
  int64_t above = 0, tied = 0, inside = 0;  // how many are > low; equal tie; were written
};
/// Writes to `inside` (room for n + kBlockSpill) the values of `a` (n) in the interval that are not its tie.
BlockFound block_between(const double* a, int64_t n, const BlockInterval& interval, double* inside);

}  // namespace parity::kernels
