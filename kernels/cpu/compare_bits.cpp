// The kernels of compare_bits.hpp. Highway compiles this file once per instruction set (foreach_target.h includes it
// again).
#include "kernels/cpu/compare_bits.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/compare_bits.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/highway.h>

#include "kernels/cpu/compare_bits-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
BlockBits bits8(const uint8_t* r, const uint8_t* c, int64_t n) { return bits_of_pairs(r, c, n); }
BlockBits bits16(const uint16_t* r, const uint16_t* c, int64_t n) { return bits_of_pairs(r, c, n); }
BlockBits bits32(const uint32_t* r, const uint32_t* c, int64_t n) { return bits_of_pairs(r, c, n); }
BlockBits bits64(const uint64_t* r, const uint64_t* c, int64_t n) { return bits_of_pairs(r, c, n); }

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(bits8);
HWY_EXPORT(bits16);
HWY_EXPORT(bits32);
HWY_EXPORT(bits64);

BlockBits block_bits(const uint8_t* r, const uint8_t* c, int64_t n) { return HWY_DYNAMIC_DISPATCH(bits8)(r, c, n); }
BlockBits block_bits(const uint16_t* r, const uint16_t* c, int64_t n) { return HWY_DYNAMIC_DISPATCH(bits16)(r, c, n); }
BlockBits block_bits(const uint32_t* r, const uint32_t* c, int64_t n) { return HWY_DYNAMIC_DISPATCH(bits32)(r, c, n); }
BlockBits block_bits(const uint64_t* r, const uint64_t* c, int64_t n) { return HWY_DYNAMIC_DISPATCH(bits64)(r, c, n); }

}  // namespace parity::kernels
#endif
