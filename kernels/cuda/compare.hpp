// Statistics of a pair of arrays in the memory of a CUDA device: one pass of sums, and exact ranks of |d|. The same
// functions exist in a build without CUDA (no_cuda.cpp), where there is no device and the rest throws.
#pragma once
#include <cstdint>
#include <memory>
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

/// Measures `pair`, whose arrays lie on one device and stay there unchanged as long as this lives.
class Measurement {
 public:
  /// All sums: the same digits for every grid and every device. Ranks near the `quantiles`, none or kBands numbers in
  /// (0, 1), are kept track of in the same pass. `blocks`: of the grid; 0: as many as keep the device busy. Throws
  /// parity::Error for an empty pair, a device that fails, and in a build without CUDA.
  Measurement(const Pair& pair, int device, const std::vector<double>& quantiles, int blocks = 0);
  ~Measurement();
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  const PairResult& result() const;

  /// The differences |d| of the given ranks (0 = the smallest) among the pairs of which both are finite: at once near
  /// the quantiles, by more passes elsewhere. Throws as above, and for a rank that there is not.
  std::vector<double> ranks(const std::vector<int64_t>& wanted) const;

  /// How many of the ranks so far took passes of their own.
  int64_t ranks_by_passes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads an array on `device`, whole pieces of 16 bytes, and waits: what the passes are held against. Throws as above.
void read(const void* array, int64_t bytes, int device);

}  // namespace parity::kernels::cuda
