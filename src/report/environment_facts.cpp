#include "report/environment_facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace parity {
namespace {

using nlohmann::json;

// Those that decide which kernels run and how they round; both sides list these names.
constexpr std::array<std::string_view, 7> kFeatures{"avx2",     "avx512f",     "avx512dq",   "avx512bw",
                                                    "avx512vl", "avx512_bf16", "avx512_vnni"};

std::string features(const std::string& all) {
  std::vector<std::string_view> known;
  for (const std::string_view name : kFeatures)
    if ((" " + all + " ").find(fmt::format(" {} ", name)) != std::string::npos) known.push_back(name);
  return known.empty() ? "" : fmt::format("{}", fmt::join(known, " "));
}

}  // namespace

std::string words_of_setting(const json& value, int depth) {
  if (depth > kDeepest) return "…";
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  std::vector<std::string> parts;
  if (value.is_object())
    for (const auto& [key, part] : value.items())
      parts.push_back(fmt::format("{} {}", key, words_of_setting(part, depth + 1)));
  else if (value.is_array())
    for (const json& part : value) parts.push_back(words_of_setting(part, depth + 1));
  else
    return value.dump();
  return fmt::format("{}", fmt::join(parts, value.is_array() ? " " : ", "));
}

std::string fact_of(const json& from, std::string_view key) {
  if (key.empty() || !from.is_object()) return "";
  const size_t dot = key.find('.');
  const auto found = from.find(std::string(key.substr(0, dot)));
  if (found == from.end()) return "";
  if (dot != std::string_view::npos) return fact_of(*found, key.substr(dot + 1));
  const std::string value = words_of_setting(*found);
  if (key == "cpu_flags") return features(value);
  // JAX's "default" is fp32 in full on a CPU, which PyTorch calls "highest" (jax.lax.Precision).
  if (key == "matmul_precision" && value == "default" && fact_of(from, "device") == "cpu") return "highest";
  return value;
}

std::string fact_here(const json& machine, const Fact& fact, bool gpus) {
  const bool on_cpu = gpus && fact_of(machine, "device").empty();
  if (on_cpu && fact.recorded == "device") return "cpu";
  if (on_cpu && fact.recorded == "tf32") return "cudnn off, matmul off";
  return fact_of(machine, fact.here);
}

}  // namespace parity
