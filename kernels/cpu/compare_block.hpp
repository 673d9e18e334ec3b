// One block of a comparison on the CPU: sums in fp64 and a look at the bits. Vectorised with Highway, the instruction
// set chosen at run time. Knows nothing of tensors, non-finite values or limits: src/measure does.
#pragma once
#include <cstdint>

#include "kernels/cpu/compare_bits.hpp"

namespace parity::kernels {

/// Elements of a block. 1024 fp32 pairs and their differences (16 KiB) stay in the first-level cache.
inline constexpr int64_t kBlock = 1024;

/// Bytes behind what is read now that are asked for from memory: the next block of fp32.
inline constexpr int64_t kBlockAhead = 4096;

/// Over one block, d = candidate - reference. A NaN or Inf on either side leaves sum_rr or sum_dd not finite.
/// <r,c> and <c,c> follow from these: <r,r> + <d,r> and <r,r> + 2 <d,r> + <d,d>.
struct BlockSums {
  double max_d = 0, sum_d = 0, sum_dd = 0;   // of |d|, |d|, d^2
  double sum_r = 0, sum_rr = 0, sum_dr = 0;  // of |r|, r^2, d r
};

/// So many elements beyond what is found may be written to.
inline constexpr int64_t kBlockSpill = 8;

/// The |d| that a pass over a block hands out, in any order.
struct BlockDifferences {
  double above = -1;      // only those greater than it; below 0: all
  double* out = nullptr;  // room for kBlock + kBlockSpill
  int64_t count = 0;      // set: so many were written
};

struct BlockFigures {
  BlockSums sums;
  BlockBits bits;
};

/// `n` <= kBlock pairs; `differences` may be null. The 16-bit formats are passed as their bits.
BlockFigures compare_block(const double* r, const double* c, int64_t n, BlockDifferences* differences);
BlockFigures compare_block(const float* r, const float* c, int64_t n, BlockDifferences* differences);
BlockFigures compare_block_bf16(const uint16_t* r, const uint16_t* c, int64_t n, BlockDifferences* differences);
BlockFigures compare_block_fp16(const uint16_t* r, const uint16_t* c, int64_t n, BlockDifferences* differences);

/// Inner products of three arrays a, b, c of n <= kBlock.
struct BlockProducts {
  double aa = 0, bb = 0, cc = 0, bc = 0;
};
BlockProducts block_products(const double* a, const double* b, const double* c, int64_t n);

}  // namespace parity::kernels
