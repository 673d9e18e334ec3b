// A product's outputs shared among the threads. Private to src/ops.
#pragma once
#include <ATen/Parallel.h>

#include <algorithm>

#include "kernels/cpu/gemv.hpp"

namespace parity::ops {

/// `after(begin, end)` follows each share of the outputs. At least 64 Ki weights a thread: less is faster done than
/// handed over.
template <class X, class W, class After>
void over_outputs(const kernels::Gemv<X, W>& g, const After& after) {
  constexpr int64_t kShare = 65536, kOutputs = 32;
  const int64_t grain = std::max(kOutputs, kShare / std::max<int64_t>(g.inputs, 1));
  at::parallel_for(0, g.outputs, grain, [&](int64_t begin, int64_t end) {
    kernels::gemv(g, begin, end);
    after(begin, end);
  });
}
template <class X, class W>
void over_outputs(const kernels::Gemv<X, W>& g) {
  over_outputs(g, [](int64_t, int64_t) {});
}

}  // namespace parity::ops
