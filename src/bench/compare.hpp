// Measuring pairs of tensors in memory: how long all statistics take, beside reading both tensors and nothing else.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/timing.hpp"

namespace parity {

struct CompareBenchOptions {
  std::vector<std::string> dtypes = {"fp32", "bf16"};  // of the references
  std::string candidate;                               // dtype of the candidates; empty: as the reference
  std::vector<int64_t> bytes = {1 << 10, 1 << 16, 1 << 22, 1 << 28};  // of each reference
  int repeats = 7;
  at::Device device = at::kCPU;  // where the tensors lie
  ShareDone progress;            // may be null
};

/// One size and dtype. Seconds of one call, the least of the repeats (of small tensors: of as many calls as take a
/// millisecond).
struct CompareBenchRow {
  std::string reference, candidate;  // dtypes
  int64_t elements = 0, bytes = 0;   // bytes: of both sides together
  double reading = 0;      // both sides, nothing else; on a device, copying one onto a third tensor: as many bytes
  double sums = 0;         // everything that needs no order: `measure_sums`
  double statistics = 0;   // with exact percentiles and the worst element: `measure`
  double torch_close = 0;  // LibTorch's isclose(…).all(), the heart of torch.testing.assert_close
};

/// Normal random references (seeded), candidates a thousandth off. Every contestant ends with a number on the host, so
/// that a device has finished. Throws Error for a dtype that is none, or sizes
/// below one element.
std::vector<CompareBenchRow> bench_compare(const CompareBenchOptions& options);

}  // namespace parity
