#include "core/machine.hpp"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <fstream>
#include <sstream>

namespace parity {
namespace {

std::string after_colon(const std::string& line) {
  const size_t at = line.find(": ");
  return at == std::string::npos ? "" : line.substr(at + 2);
}

}  // namespace

Machine this_machine() {
  Machine m;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (m.cpu.empty() && line.starts_with("model name")) m.cpu = after_colon(line);
    if (!line.starts_with("flags")) continue;
    std::istringstream flags(after_colon(line));
    for (std::string flag; flags >> flag;)
      if (flag == "avx2" || flag.starts_with("avx512") || flag.starts_with("amx"))
        m.cpu_flags += (m.cpu_flags.empty() ? "" : " ") + flag;
    break;
  }
  m.cpu_capability = at::get_cpu_capability();
  m.libtorch = TORCH_VERSION;
  m.threads = at::get_num_threads();
  return m;
}

}  // namespace parity
