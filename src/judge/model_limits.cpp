#include "judge/model_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace parity {
namespace {

constexpr const char* kElementwise = "same kernel, same order: bitwise equal";
constexpr const char* kSum =
    "same LibTorch; another blocking of the sum flips at most 0.03 % of bf16 elements (measured: oneDNN on / off)";

struct NamedLimit {
  std::string_view name;
  Threshold ModelLimits::*threshold;
};

// One list of names for reading and writing.
constexpr NamedLimit kNamed[] = {
    {"logic_rel_l2", &ModelLimits::logic_rel_l2},
    {"kernel_null_factor", &ModelLimits::kernel_null_factor},
    {"share_says_something", &ModelLimits::share_says_something},
    {"own_rounding_factor", &ModelLimits::own_rounding_factor},
    {"own_rounding_z", &ModelLimits::own_rounding_z},
    {"severe_factor", &ModelLimits::severe_factor},
};

constexpr char kShare[] = ".bitwise_equal_share", kError[] = ".rel_l2_in_u";

ModelLimits& in_force() {
  static ModelLimits limits;
  return limits;
}

// Is `name` one of a kind's two numbers? Then that changes.
bool change_kind(ModelLimits& limits, const std::string& name, const Threshold& given) {
  for (KindLimit& kind : limits.kinds) {
    if (name != kind.kind + kShare && name != kind.kind + kError) continue;
    (name.ends_with(kShare) ? kind.min_equal_share : kind.max_rel_l2_in_u) = given.value;
    kind.reason = given.origin;
    return true;
  }
  return false;
}

}  // namespace

// Against the replay on this machine. Where that is not bitwise what was recorded (another CPU, other settings), the
// recorded values are held to the measured null besides (judge/model.cpp, null_limits).
std::vector<KindLimit> kind_limits() {
  return {
      {"copy", 1, 0, kElementwise},
      {"cast", 1, 0, kElementwise},
      {"embedding", 1, 0, kElementwise},
      {"modulation", 1, 0, kElementwise},
      {"residual", 1, 0, kElementwise},
      {"elementwise", 1, 0, kElementwise},
      {"gelu", 1, 0, kElementwise},
      {"silu", 1, 0, kElementwise},
      {"sinusoid", 1, 0, kElementwise},
      {"rope", 1, 0, kElementwise},
      {"layer_norm", 1, 0, kElementwise},
      {"rms_norm", 1, 0, kElementwise},
      {"linear", .999, 1, kSum},
      {"conv", .999, 1, kSum},
      {"attention", .98, 2, "same LibTorch's fused kernel; another tile moves up to 40 % and is another dtype path"},
  };
}

const KindLimit* find_limit(std::string_view kind) {
  const std::vector<KindLimit>& kinds = in_force().kinds;
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const KindLimit& l) { return l.kind == kind; });
  return found == kinds.end() ? nullptr : &*found;
}

const ModelLimits& model_limits() { return in_force(); }

void set_model_limits(ModelLimits limits) { in_force() = std::move(limits); }

ModelLimits read_model_limits(const std::filesystem::path& file) {
  ModelLimits limits;
  for (const auto& [name, given] : read_threshold_file(file, limits.accepted)) {
    const auto found =
        std::find_if(std::begin(kNamed), std::end(kNamed), [&](const auto& n) { return n.name == name; });
    if (name.ends_with(kShare) && given.value > 1)
      throw Error(fmt::format("{}: '{}' is a share and cannot be over 1", file.string(), name));
    if (found != std::end(kNamed))
      limits.*(found->threshold) = given;
    else if (!change_kind(limits, name, given))
      throw Error(
          fmt::format("{}: there is no threshold '{}' of run; thresholds.json in its --out folder has all of "
                      "them (compare has others)",
                      file.string(), name));
  }
  return limits;
}

nlohmann::json to_json(const ModelLimits& limits) {
  nlohmann::json out;
  for (const auto& [name, threshold] : kNamed)
    out[std::string(name)] = {{"value", (limits.*threshold).value}, {"origin", (limits.*threshold).origin}};
  for (const KindLimit& kind : limits.kinds) {
    out[kind.kind + kShare] = {{"value", kind.min_equal_share}, {"origin", kind.reason}};
    out[kind.kind + kError] = {{"value", kind.max_rel_l2_in_u}, {"origin", kind.reason}};
  }
  out["accept_paths"] = limits.accepted;
  return out;
}

}  // namespace parity
