// The bits of one block of a pair of tensors: how many are equal, how far apart they are. Vectorised with Highway, the
// instruction set chosen at run time.
#pragma once
#include <cstdint>

namespace parity::kernels {

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

}  // namespace parity::kernels
