// Reading memory and nothing else: the limit that kernels which read are held against. Vectorised with Highway, the
// instruction set chosen at run time.
#pragma once
#include <cstddef>
#include <cstdint>

namespace parity::kernels {

/// The sum, modulo 2^64, of `n` bytes (a multiple of 1024) taken as 64-bit words, read with the widest loads there are
/// in one stream or in four, a quarter of the stretch apart. Which of the two is faster depends on the machine: two
/// cores of an Emerald Rapids read 28 GB/s in one and 34 to 36 in four.
uint64_t sum_in_one_stream(const uint8_t* data, size_t n);
uint64_t sum_in_four_streams(const uint8_t* data, size_t n);

}  // namespace parity::kernels
