#include "bench/bandwidth.hpp"

#include <ATen/Parallel.h>

#include <atomic>

#include "bench/timing.hpp"
#include "core/error.hpp"
#include "kernels/cpu/read_streams.hpp"
#include "models/own_pages.hpp"

namespace parity {
namespace {

constexpr int64_t kUnit = 1024;                 // bytes: what the kernels read is whole units
constexpr uint64_t kWord = 0x0101010101010101;  // of memory that is all ones

int64_t units(int64_t bytes) { return (bytes + kUnit - 1) / kUnit; }

}  // namespace

ReadOnly::ReadOnly(int64_t bytes) : ReadOnly(at::empty({units(bytes) * kUnit}, at::kByte)) {}

ReadOnly::ReadOnly(at::Tensor memory) : bytes_(std::move(memory.fill_(1))) {
  constexpr int kTries = 3;
  const double one = time_runs([&] { read(); }, kTries).minimum();
  four_streams_ = true;
  four_streams_ = time_runs([&] { read(); }, kTries).minimum() < one;
}

void ReadOnly::read() const {
  constexpr int64_t kShare = 64;  // units that are worth a thread
  std::atomic<uint64_t> sum = 0;
  const auto* data = bytes_.const_data_ptr<uint8_t>();
  at::parallel_for(0, bytes_.numel() / kUnit, kShare, [&](int64_t begin, int64_t end) {
    const auto n = static_cast<size_t>((end - begin) * kUnit);
    const auto* from = data + begin * kUnit;
    sum += four_streams_ ? kernels::sum_in_four_streams(from, n) : kernels::sum_in_one_stream(from, n);
  });
  if (sum != static_cast<uint64_t>(bytes_.numel()) / sizeof(uint64_t) * kWord)
    throw Error("[bench] memory changed while it was read");
}

double read_bandwidth() {
  constexpr int64_t kBytes = int64_t{512} << 20;
  const ReadOnly memory(empty_in_own_pages({kBytes}, at::kByte));
  return static_cast<double>(kBytes) / time_runs([&] { memory.read(); }, 5).minimum();
}

}  // namespace parity
