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
#include <tuple>

#include "core/cpu.hpp"
#include "kernels/cuda/compare.hpp"
#include "trace/device.hpp"

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

void describe_gpu(int index, Machine& out) {
  std::string why;
  const auto devices = kernels::cuda::devices(why);
  if (static_cast<size_t>(index) < devices.size()) {
    out.device_name = devices[static_cast<size_t>(index)].name;
    out.compute_capability = devices[static_cast<size_t>(index)].capability;
  }
  const long runtime = at::Context::versionCUDART();  // 13000
  out.cuda = fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10);
  if (at::globalContext().hasCuDNN()) out.cudnn = fmt::format("{}", at::Context::versionCuDNN());
}

// "cuda:0" -> "cuda"; a recording that says nothing was made on a CPU.
std::string device_kind(const std::string& device) {
  return device.empty() ? "cpu" : device.substr(0, device.find(':'));
}

// What a GPU's kernels are chosen by.
std::string other_gpu_kernels(const nlohmann::json& provenance, const Machine& here) {
  const auto text = [](const nlohmann::json& from, const char* key) {
    const auto found = from.find(key);
    if (found == from.end() || found->is_null() || found->is_object()) return std::string();
    return found->is_string() ? found->get<std::string>() : found->dump();
  };
  const auto cudnn = provenance.find("cudnn");
  const std::string version = cudnn != provenance.end() && cudnn->is_object() ? text(*cudnn, "version") : std::string();
  for (const auto& [what, there, ours] :
       {std::tuple{"device_name", text(provenance, "device_name"), here.device_name},
        {"cuda", text(provenance, "cuda"), here.cuda},
        {"cudnn", version, here.cudnn},
        {"torch", before_plus(text(provenance, "torch")), before_plus(here.libtorch)}})
    if (there != ours) return fmt::format("{}: {} there, {} here", what, there, ours.empty() ? "unknown" : ours);
  return "";
}

}  // namespace

Machine this_machine() {
  const Cpu cpu = this_cpu();
  Machine here;
  here.cpu = cpu.model;
  here.cpu_capability = at::get_cpu_capability();
  here.cpu_flags = cpu.flags;
  here.libtorch = TORCH_VERSION;
  here.threads = at::get_num_threads();
  here.device = replay_device().str();
  if (replay_device().is_cuda()) describe_gpu(replay_device().index(), here);
  return here;
}

std::string other_kernels(const nlohmann::json& provenance) {
  const Machine here = this_machine();
  const auto text = [&](const char* key) {
    const auto found = provenance.find(key);
    return found != provenance.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto or_null = [&](const char* key) { return provenance.contains(key) ? provenance[key] : nlohmann::json(); };
  if (device_kind(text("device")) != device_kind(here.device))
    return fmt::format("device: {} there, {} here", text("device"), here.device);
  if (replay_device().is_cuda()) return other_gpu_kernels(provenance, here);
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
