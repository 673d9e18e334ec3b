#include "trace/machine.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "core/cpu.hpp"

namespace parity {
namespace {

// Those that recorders note (parity_probe/provenance.py) and kernels are chosen by.
constexpr std::array<std::string_view, 12> kFlags{"avx2",     "avx512f",     "avx512bw",    "avx512dq",
                                                  "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16",
                                                  "avx_vnni", "amx_tile",    "amx_bf16",    "amx_int8"};

// ATEN_CPU_CAPABILITY shows in cpu_capability, OMP_NUM_THREADS in threads.
constexpr std::array kSettings{"ONEDNN_MAX_CPU_ISA",         "DNNL_MAX_CPU_ISA",        "ONEDNN_CPU_ISA_HINTS",
                               "ONEDNN_DEFAULT_FPMATH_MODE", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR",
                               "MKL_DEBUG_CPU_TYPE"};

std::string before_plus(const std::string& version) { return version.substr(0, version.find('+')); }

std::string other_flags(const nlohmann::json& recorded, const std::string& here) {
  std::string differing;
  for (const std::string_view flag : kFlags) {
    const bool there = recorded.is_array() && std::find(recorded.begin(), recorded.end(), flag) != recorded.end();
    const bool ours = (" " + here + " ").find(fmt::format(" {} ", flag)) != std::string::npos;
    if (there != ours) differing += fmt::format(" {} {} alone", flag, ours ? "here" : "there");
  }
  return differing;
}

nlohmann::json settings_here() {
  nlohmann::json settings = nlohmann::json::object();
  for (const char* name : kSettings)
    if (const char* value = std::getenv(name)) settings[name] = value;
  return settings;
}

}  // namespace

Machine this_machine() {
  const Cpu cpu = this_cpu();
  return {cpu.model, at::get_cpu_capability(), cpu.flags, TORCH_VERSION, at::get_num_threads()};
}

std::string other_kernels(const nlohmann::json& provenance) {
  const Machine here = this_machine();
  const auto text = [&](const char* key) {
    const auto found = provenance.find(key);
    return found != provenance.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto or_null = [&](const char* key) { return provenance.contains(key) ? provenance[key] : nlohmann::json(); };
  if (const std::string there = text("cpu"); there != here.cpu) return fmt::format("cpu: {} there", there);
  if (const std::string there = text("cpu_capability"); there != here.cpu_capability)
    return fmt::format("cpu_capability: {} there, {} here", there, here.cpu_capability);
  if (const std::string there = text("torch"); before_plus(there) != before_plus(here.libtorch))
    return fmt::format("torch: {} there, {} here", there, here.libtorch);
  if (or_null("threads") != here.threads) return fmt::format("threads: {} there", or_null("threads").dump());
  if (const std::string flags = other_flags(or_null("cpu_flags"), here.cpu_flags); !flags.empty())
    return "cpu_flags:" + flags;
  if (or_null("mkldnn").is_boolean() && or_null("mkldnn") != at::globalContext().userEnabledMkldnn())
    return "mkldnn: on or off";
  const nlohmann::json settings = settings_here(), there = or_null("kernel_settings");
  if (settings != (there.is_object() ? there : nlohmann::json::object()))
    return fmt::format("kernel_settings: {} there, {} here", there.dump(), settings.dump());
  return "";
}

}  // namespace parity
