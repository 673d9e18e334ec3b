// What machine this is, as far as it changes the bits that kernels compute.
#pragma once
#include <string>

namespace parity {

struct Machine {
  std::string cpu;             // model name
  std::string cpu_capability;  // ATen's dispatch level: DEFAULT, AVX2, AVX512
  std::string cpu_flags;       // instruction sets that change kernels, space separated
  std::string libtorch;        // version
  int threads = 1;             // ATen's intra-op threads
};

/// Reads /proc/cpuinfo and asks LibTorch.
Machine this_machine();

}  // namespace parity
