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

}  // namespace

RecordedGpuSettings::RecordedGpuSettings(const nlohmann::json& provenance) {
  // PyTorch's default allows TF32 in convolutions; what was recorded on a CPU has none whatever its switches say.
  const auto device = provenance.find("device");
  const bool elsewhere =
      device != provenance.end() && device->is_string() && !device->get<std::string>().starts_with("cuda");
  for (const Switch& one : kSwitches) {
    before_.push_back(one.get(at::globalContext()));
    const auto table = provenance.find(one.table);
    if (table == provenance.end() || !table->is_object()) continue;
    const auto recorded = table->find(one.name);
    if (recorded != table->end() && recorded->is_boolean())
      put(one, recorded->get<bool>() && !(elsewhere && one.table == kTf32));
  }
}

RecordedGpuSettings::~RecordedGpuSettings() {
  for (size_t i = 0; i < kSwitches.size(); ++i) put(kSwitches[i], before_[i]);
}

}  // namespace parity
