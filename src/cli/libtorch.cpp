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
  nlohmann::json json{{"cpu", m.cpu},
                      {"cpu_capability", m.cpu_capability},
                      {"cpu_flags", m.cpu_flags},
                      {"libtorch", m.libtorch},
                      {"threads", m.threads}};
  if (m.device == "cpu") return json;  // as in reports and baselines from before there were others
  json["device"] = m.device;
  for (const auto& [key, value] : {std::pair{"device_name", m.device_name},
                                   {"compute_capability", m.compute_capability},
                                   {"cuda", m.cuda},
                                   {"cudnn", m.cudnn}})
    if (!value.empty()) json[key] = value;
  return json;
}

}  // namespace parity::cli
