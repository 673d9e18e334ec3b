// The functions of compare.hpp in a build without CUDA.
#include "core/error.hpp"
#include "kernels/cuda/compare.hpp"

namespace parity::kernels::cuda {
namespace {

[[noreturn]] void refuse() {
  throw Error(
      "this program was built without its CUDA kernels; configure with the preset cuda (or -DPARITY_CUDA=ON), which "
      "needs nvcc");
}

}  // namespace

std::string architectures() { return ""; }

std::vector<Device> devices(std::string& why) {
  why = "not looked for: built without CUDA kernels (cmake --preset cuda)";
  return {};
}

PairTotals pair_totals(const Pair&, int, int) { refuse(); }

std::vector<double> ranks(const Pair&, int64_t, const std::vector<int64_t>&, int) { refuse(); }

}  // namespace parity::kernels::cuda
