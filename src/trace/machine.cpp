#include "trace/machine.hpp"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include "core/cpu.hpp"

namespace parity {

Machine this_machine() {
  const Cpu cpu = this_cpu();
  return {cpu.model, at::get_cpu_capability(), cpu.flags, TORCH_VERSION, at::get_num_threads()};
}

}  // namespace parity
