// Statistics of a pair of arrays in the memory of a CUDA device: one pass of sums, and exact ranks of |d|. The same
// functions exist in a build without CUDA (no_cuda.cpp), where there is no device and the rest throws.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/pair_step.hpp"

namespace parity::kernels::cuda {

/// "80 90 100", the compute capabilities that the kernels were compiled for; "" in a build without CUDA.
std::string architectures();

struct Device {
  std::string name;        // "NVIDIA H100 80GB HBM3"
  std::string capability;  // "9.0"
  int64_t bytes = 0;       // of memory
};
/// The devices that this process can use, by their index. Where there are none, `why` says "none: …".
std::vector<Device> devices(std::string& why);

/// All sums over `pair`, whose arrays lie on device `device`. The same digits for every grid and every device.
/// `blocks`: of the grid; 0: as many as keep the device busy. Throws parity::Error for an empty pair, a device that
/// fails, and in a build without CUDA.
PairTotals pair_totals(const Pair& pair, int device, int blocks = 0);

/// The differences |d| of the given ranks (0 = the smallest) among the `finite` > 0 pairs of which both are finite.
/// Throws as `pair_totals`, and for a rank that there is not.
std::vector<double> ranks(const Pair& pair, int64_t finite, const std::vector<int64_t>& wanted, int device);

}  // namespace parity::kernels::cuda
