#include "cli/device.hpp"

namespace parity::cli {

void add_device(CLI::App& command, std::string& device) {
  command
      .add_option(
          "--device", device,
          "Where the reference's program is run: cpu, cuda or cuda:N. What was recorded on a GPU is reproduced by "
          "its kernels there; cuda needs a LibTorch with CUDA")
      ->capture_default_str()
      ->type_name("DEVICE");
}

}  // namespace parity::cli
