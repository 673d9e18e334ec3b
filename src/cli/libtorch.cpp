// What commands ask of LibTorch; apart, because `video` runs without it.
#include <ATen/Parallel.h>

#include "cli/command.hpp"
#include "trace/machine.hpp"

namespace parity::cli {

void set_threads(const Common& common, const Dump* recording) {
  const int recorded = recording ? recording->provenance().value("threads", 0) : 0;
  if (const int threads = common.threads > 0 ? common.threads : recorded; threads > 0) at::set_num_threads(threads);
}

nlohmann::json this_machine_json() {
  const Machine m = this_machine();
  return {{"cpu", m.cpu},
          {"cpu_capability", m.cpu_capability},
          {"cpu_flags", m.cpu_flags},
          {"libtorch", m.libtorch},
          {"threads", m.threads}};
}

}  // namespace parity::cli
