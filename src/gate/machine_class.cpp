#include "gate/machine_class.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <set>
#include <sstream>

namespace parity {
namespace {

using nlohmann::json;

// Instruction sets that change kernels (trace/machine.cpp compares the same ones).
constexpr std::array<std::string_view, 12> kInstructions{"avx2",     "avx512f",     "avx512bw",    "avx512dq",
                                                         "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16",
                                                         "avx_vnni", "amx_tile",    "amx_bf16",    "amx_int8"};

// Of the recorder's provenance (probes/FORMAT.md) and of a report's machine.
constexpr std::array kPlainFields{"cpu_capability", "threads", "device",           "device_name", "mkldnn",
                                  "deterministic",  "x64",     "matmul_precision", "xla_flags",   "jit_disabled"};
constexpr std::array kVersions{"libtorch", "torch", "cuda", "jax", "jaxlib"};
constexpr std::array kTables{"kernel_settings", "tf32"};  // objects of plain values
// Of what was computed on a GPU alone: elsewhere they choose nothing.
constexpr std::array kGpuFields{"compute_capability", "cudnn"};
constexpr std::array kGpuTables{"cudnn", "fp32_precision", "reduced_precision_reduction", "sdpa", "gpu_settings"};

std::string text_of_value(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  return value.is_number() ? value.dump() : "";
}

/// "Intel(R) Xeon(R) Platinum" -> "Intel"; a name without a maker stays.
std::string maker_of(const std::string& cpu) {
  for (const char* maker : {"AMD", "Intel", "Apple", "ARM", "Ampere", "Neoverse"})
    if (cpu.find(maker) != std::string::npos) return maker;
  return cpu;
}

std::string instructions_of(const json& flags) {
  std::set<std::string> there;
  if (flags.is_array())
    for (const json& flag : flags) there.insert(text_of_value(flag));
  std::istringstream words(text_of_value(flags));
  for (std::string word; words >> word;) there.insert(word);
  std::vector<std::string_view> kept;
  for (const std::string_view name : kInstructions)
    if (there.contains(std::string(name))) kept.push_back(name);
  return fmt::format("{}", fmt::join(kept, " "));
}

void add_fields(const json& from, const std::string& prefix, MachineClass& out) {
  if (!from.is_object()) return;
  const auto put = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) out[prefix + name] = value;
  };
  const auto of = [&](const char* key) { return from.contains(key) ? text_of_value(from[key]) : std::string(); };
  put("cpu", maker_of(of("cpu")));
  if (from.contains("cpu_flags")) put("instructions", instructions_of(from["cpu_flags"]));
  for (const char* key : kPlainFields) put(key, of(key));
  for (const char* key : kVersions) put(key, of(key).substr(0, of(key).find('+')));
  const auto put_table = [&](const char* key) {
    if (from.contains(key) && from[key].is_object())
      for (const auto& [name, value] : from[key].items()) put(fmt::format("{}.{}", key, name), text_of_value(value));
  };
  for (const char* key : kTables) put_table(key);
  if (!of("device").starts_with("cuda")) return;
  for (const char* key : kGpuFields) put(key, of(key));
  for (const char* key : kGpuTables) put_table(key);
}

}  // namespace

MachineClass machine_class(const Report& report) {
  MachineClass out;
  add_fields(report.machine, "", out);
  add_fields(report.candidate.details, "candidate.", out);
  return out;
}

std::string text_of_class(const MachineClass& machine) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : machine) {
    if (name == "cpu" || name == "cpu_capability")
      parts.push_back(value);
    else if (name == "threads")
      parts.push_back(fmt::format("{} thread{}", value, value == "1" ? "" : "s"));
    else if (name.find("instructions") == std::string::npos)  // the capability says most of it
      parts.push_back(fmt::format("{} {}", name, value));
  }
  return parts.empty() ? "a machine that the report does not describe" : fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> class_differences(const MachineClass& there, const MachineClass& here) {
  std::set<std::string> names;
  for (const auto& [name, value] : there) names.insert(name);
  for (const auto& [name, value] : here) names.insert(name);
  const auto of = [](const MachineClass& machine, const std::string& name) {
    const auto found = machine.find(name);
    return found == machine.end() ? std::string("not stated") : found->second;
  };
  std::vector<std::string> out;
  for (const std::string& name : names)
    if (of(there, name) != of(here, name))
      out.push_back(fmt::format("{}: {} there, {} here", name, of(there, name), of(here, name)));
  return out;
}

}  // namespace parity
