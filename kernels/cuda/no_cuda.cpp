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

struct Measurement::State {};

Measurement::Measurement(const Pair&, int, const std::vector<double>&, int) { refuse(); }
Measurement::~Measurement() = default;
const PairResult& Measurement::result() const { refuse(); }
std::vector<double> Measurement::ranks(const std::vector<int64_t>&) const { refuse(); }
int64_t Measurement::ranks_by_passes() const { refuse(); }

void read(const void*, int64_t, int) { refuse(); }

}  // namespace parity::kernels::cuda
