#include "core/cpu.hpp"

#include <fstream>
#include <sstream>

namespace parity {
namespace {

std::string after_colon(const std::string& line) {
  const size_t at = line.find(": ");
  return at == std::string::npos ? "" : line.substr(at + 2);
}

}  // namespace

Cpu this_cpu() {
  Cpu cpu;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (cpu.model.empty() && line.starts_with("model name")) cpu.model = after_colon(line);
    if (!line.starts_with("flags")) continue;
    std::istringstream flags(after_colon(line));
    for (std::string flag; flags >> flag;)
      if (flag == "avx2" || flag == "avx_vnni" || flag.starts_with("avx512") || flag.starts_with("amx"))
        cpu.flags += (cpu.flags.empty() ? "" : " ") + flag;
    break;
  }
  return cpu;
}

}  // namespace parity
