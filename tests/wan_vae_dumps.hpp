// The embedded recordings of Wan2.1's autoencoder and the main job on them.
#pragma once
#include <ATen/Parallel.h>

#include <map>
#include <string>
#include <vector>

#include "command.hpp"
#include "jobs/model_job.hpp"
#include "models/wan_vae/model.hpp"
#include "models/wan_vae/names.hpp"
#include "models/wan_vae/ported.hpp"

namespace parity::test {

constexpr const char* kVaeDumps[] = {"diffusers-wan-vae-decode.bf16.h5", "diffusers-wan-vae-decode.fp32.h5",
                                     "diffusers-wan-vae-encode.bf16.h5", "diffusers-wan-vae-encode.fp32.h5"};

/// `forced_alone`: every op on the recorded values, nothing else.
inline Report vae_report(const WanVaeOps& ops, const std::string& dump_name, const std::vector<std::string>& dtypes,
                         bool forced_alone = false) {
  const Dump dump(reference_dump(dump_name));
  at::set_num_threads(dump.provenance().value("threads", 1));
  MainJobOptions options;
  options.dtypes = dtypes;
  if (forced_alone) options.free = false, options.layer = "*";  // "all" has the pairs of optimised and baseline too
  const auto make = [&](const Dump& d, Precision precision) { return port_wan_vae(d, precision, ops); };
  Report report;
  report.ops = run_main_job(dump, load_program(dump), make, options).rows;
  return report;
}

/// In the recorded dtypes. The dump must outlive the call alone.
inline WanVaeModel vae_model(const Dump& dump) {
  return {wan_vae_config(dump.provenance().at("config")), Precision::recorded,
          weights_of(dump, [](const std::string& name) { return name; })};
}

}  // namespace parity::test
