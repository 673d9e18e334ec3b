#include "cli/device.hpp"

#include <ATen/Context.h>

#include "core/error.hpp"

namespace parity::cli {

void add_device(CLI::App& command, std::string& device) {
  command.add_option("--device", device, "Where the ops run: cpu; cuda is refused until there are kernels for it")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
}

void check_device(const std::string& device) {
  if (device != "cuda") return;
  if (!at::hasCUDA())
    throw Error(
        "--device cuda: this LibTorch is the CPU build; configure with CMAKE_PREFIX_PATH at one with CUDA, or leave "
        "--device out");
  throw Error("--device cuda: this version runs the ops on the CPU alone; leave --device out");
}

}  // namespace parity::cli
