// The kernel of read_streams.hpp. Highway compiles this file once per instruction set.
#include "kernels/cpu/read_streams.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/read_streams.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kAtOnce = 256 / sizeof(uint64_t);  // words of a stream between two looks at another
constexpr size_t kAhead = 2048 / sizeof(uint64_t);  // words that are asked for ahead of those being read
constexpr size_t kLine = 64 / sizeof(uint64_t);

template <size_t kStreams>
uint64_t sum(const uint8_t* data, size_t n) {
  const hn::ScalableTag<uint64_t> u;
  const size_t lanes = hn::Lanes(u), stride = n / sizeof(uint64_t) / kStreams;
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  auto a = hn::Zero(u), b = a;
  for (size_t i = 0; i < stride; i += kAtOnce)
    for (size_t s = 0; s < kStreams; ++s) {
      const uint64_t* from = words + s * stride + i;
      for (size_t k = 0; k < kAtOnce; k += kLine) hwy::Prefetch(from + kAhead + k);
      for (size_t k = 0; k < kAtOnce; k += 2 * lanes) {
        a = hn::Add(a, hn::LoadU(u, from + k));
        b = hn::Add(b, hn::LoadU(u, from + k + lanes));
      }
    }
  HWY_ALIGN uint64_t each[HWY_MAX_BYTES / sizeof(uint64_t)];
  hn::Store(hn::Add(a, b), u, each);
  uint64_t all = 0;  // may wrap; GCC 12's sum of an AVX-512 vector is one of signed numbers, which may not
  for (size_t i = 0; i < lanes; ++i) all += each[i];
  return all;
}

uint64_t one_stream(const uint8_t* data, size_t n) { return sum<1>(data, n); }
uint64_t four_streams(const uint8_t* data, size_t n) { return sum<4>(data, n); }

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(one_stream);
HWY_EXPORT(four_streams);

uint64_t sum_in_one_stream(const uint8_t* data, size_t n) { return HWY_DYNAMIC_DISPATCH(one_stream)(data, n); }
uint64_t sum_in_four_streams(const uint8_t* data, size_t n) { return HWY_DYNAMIC_DISPATCH(four_streams)(data, n); }

}  // namespace parity::kernels
#endif
