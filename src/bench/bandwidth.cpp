#include "bench/bandwidth.hpp"

#include <ATen/Parallel.h>

#include <atomic>
#include <cstring>

#include "bench/timing.hpp"
#include "core/error.hpp"

namespace parity {

void ReadOnly::read() const {
  constexpr int kAbsent = 255;
  constexpr int64_t kShare = 1 << 16;  // bytes that are worth a thread
  std::atomic<int> found = 0;
  const auto* data = bytes_.const_data_ptr<uint8_t>();
  at::parallel_for(0, bytes_.numel(), kShare, [&](int64_t begin, int64_t end) {
    found += std::memchr(data + begin, kAbsent, static_cast<size_t>(end - begin)) != nullptr;
  });
  if (found != 0) throw Error("[bench] memory changed while it was read");
}

double read_bandwidth() {
  constexpr int64_t kBytes = int64_t{512} << 20;
  const ReadOnly memory(kBytes);
  return static_cast<double>(kBytes) / time_runs([&] { memory.read(); }, 5).minimum();
}

}  // namespace parity
