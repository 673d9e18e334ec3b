// The processor, without LibTorch: for programs that do not load it.
#pragma once
#include <string>

namespace parity {

struct Cpu {
  std::string model;  // name
  std::string flags;  // instruction sets that change kernels, space separated
};

/// Reads /proc/cpuinfo.
Cpu this_cpu();

}  // namespace parity
