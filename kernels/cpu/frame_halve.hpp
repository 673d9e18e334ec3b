// Images at half size, exact: each sample is the sum of four. Four halvings of 8-bit samples fit 16 bits.
#pragma once
#include <cstdint>

namespace parity::kernels {

/// in: (height, width, channels), channels 1 or 3; out: (height / 2, width / 2, channels), an odd last row or column is
/// left out. 8-bit samples are centred: sums of v - 128.
void halve(const uint8_t* in, int width, int height, int channels, int16_t* out);
/// Sums as they are; they must fit.
void halve(const int16_t* in, int width, int height, int channels, int16_t* out);

}  // namespace parity::kernels
