// One row a switch. Only what LibTorch has had since 2.4; newer names of the same switches are recorded, too
// (provenance: fp32_precision), and shown.
#include <array>
#include <string_view>

#include "trace/settings.hpp"

namespace parity {
namespace {

struct Switch {
  const char *table, *name;  // in a recording's provenance
  bool (*get)(const at::Context&);
  void (*set)(at::Context&, bool);
};

constexpr std::string_view kTf32 = "tf32";
constexpr std::array kSwitches{
    Switch{"tf32", "matmul", [](const at::Context& c) { return c.allowTF32CuBLAS(); },
           [](at::Context& c, bool on) { c.setAllowTF32CuBLAS(on); }},
    Switch{"tf32", "cudnn", [](const at::Context& c) { return c.allowTF32CuDNN(); },
           [](at::Context& c, bool on) { c.setAllowTF32CuDNN(on); }},
    Switch{"cudnn", "enabled", [](const at::Context& c) { return c.userEnabledCuDNN(); },
           [](at::Context& c, bool on) { c.setUserEnabledCuDNN(on); }},
    Switch{"cudnn", "benchmark", [](const at::Context& c) { return c.benchmarkCuDNN(); },
           [](at::Context& c, bool on) { c.setBenchmarkCuDNN(on); }},
    Switch{"cudnn", "deterministic", [](const at::Context& c) { return c.deterministicCuDNN(); },
           [](at::Context& c, bool on) { c.setDeterministicCuDNN(on); }},
    Switch{"sdpa", "flash", [](const at::Context& c) { return c.userEnabledFlashSDP(); },
           [](at::Context& c, bool on) { c.setSDPUseFlash(on); }},
    Switch{"sdpa", "mem_efficient", [](const at::Context& c) { return c.userEnabledMemEfficientSDP(); },
           [](at::Context& c, bool on) { c.setSDPUseMemEfficient(on); }},
    Switch{"sdpa", "math", [](const at::Context& c) { return c.userEnabledMathSDP(); },
           [](at::Context& c, bool on) { c.setSDPUseMath(on); }},
    Switch{"sdpa", "cudnn", [](const at::Context& c) { return c.userEnabledCuDNNSDP(); },
           [](at::Context& c, bool on) { c.setSDPUseCuDNN(on); }},
};

// LibTorch warns about its older names each time: call them only for a change.
void put(const Switch& one, bool on) {
  if (one.get(at::globalContext()) != on) one.set(at::globalContext(), on);
}

std::optional<bool> recorded_switch(const nlohmann::json& provenance, const char* table, const char* name) {
  const auto switches = provenance.find(table);
  if (switches == provenance.end() || !switches->is_object()) return std::nullopt;
  const auto recorded = switches->find(name);
  return recorded == switches->end() || !recorded->is_boolean() ? std::nullopt : std::optional(recorded->get<bool>());
}

enum class Maker { unknown, gpu, other };
Maker maker_of(const nlohmann::json& provenance) {
  const auto device = provenance.find("device");
  if (device == provenance.end() || !device->is_string()) return Maker::unknown;
  return device->get<std::string>().starts_with("cuda") ? Maker::gpu : Maker::other;
}

}  // namespace

std::string tf32_of(const nlohmann::json& provenance) {
  if (maker_of(provenance) != Maker::gpu) return "";
  const bool products = recorded_switch(provenance, "tf32", "matmul").value_or(false),
             convolutions = recorded_switch(provenance, "tf32", "cudnn").value_or(false);
  return products && convolutions ? "products and convolutions"
         : products               ? "products"
         : convolutions           ? "convolutions"
                                  : "";
}

RecordedGpuSettings::RecordedGpuSettings(const nlohmann::json& provenance) {
  // PyTorch's default allows TF32 in convolutions; what was recorded on a CPU has none whatever its switches say.
  const bool elsewhere = maker_of(provenance) == Maker::other;
  for (const Switch& one : kSwitches) {
    before_.push_back(one.get(at::globalContext()));
    if (const auto on = recorded_switch(provenance, one.table, one.name))
      put(one, *on && !(elsewhere && one.table == kTf32));
  }
}

RecordedGpuSettings::~RecordedGpuSettings() {
  for (size_t i = 0; i < kSwitches.size(); ++i) put(kSwitches[i], before_[i]);
}

}  // namespace parity
