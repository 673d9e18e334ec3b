#include "judge/limits.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <utility>

#include "core/error.hpp"

namespace parity {
namespace {

// One list of names for reading and writing.
template <class T>
std::vector<std::pair<const char*, decltype(&std::declval<T&>().z)>> entries(T& t) {
  return {{"logic_rel_l2", &t.logic_rel_l2},
          {"fp32_null_factor", &t.fp32_null_factor},
          {"fp32_sum_factor", &t.fp32_sum_factor},
          {"half_ratio", &t.half_ratio},
          {"half_attention_ratio", &t.half_attention_ratio},
          {"half_unequal_share", &t.half_unequal_share},
          {"half_null_unequal_factor", &t.half_null_unequal_factor},
          {"z", &t.z},
          {"null_z_factor", &t.null_z_factor},
          {"gain_in_u", &t.gain_in_u},
          {"amplitude_tolerance", &t.amplitude_tolerance},
          {"explained", &t.explained},
          {"whole", &t.whole},
          {"whole_cast", &t.whole_cast}};
}

nlohmann::json parse(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error(fmt::format("{}: cannot read the thresholds file", file.string()));
  try {
    nlohmann::json content = nlohmann::json::parse(stream);
    if (content.is_object()) return content;
  } catch (const nlohmann::json::exception&) {
  }
  throw Error(fmt::format("{}: is no JSON object of thresholds", file.string()));
}

}  // namespace

Thresholds read_thresholds(const std::filesystem::path& file) {
  Thresholds limits;
  for (const auto& [name, given] : parse(file).items()) {
    if (name == "accept_paths") {
      if (!given.is_array()) throw Error(fmt::format("{}: accept_paths must be a list of path globs", file.string()));
      for (const auto& glob : given) limits.accepted.push_back(glob.get<std::string>());
      continue;
    }
    Threshold* found = nullptr;
    for (const auto& [known, threshold] : entries(limits))
      if (name == known) found = threshold;
    if (found == nullptr) throw Error(fmt::format("{}: there is no threshold '{}'", file.string(), name));
    if (!given.is_object() || !given.contains("value") || !given["value"].is_number() || !given.contains("origin") ||
        !given["origin"].is_string() || given["origin"].get<std::string>().empty())
      throw Error(fmt::format("{}: '{}' needs a number 'value' and an 'origin' that says why", file.string(), name));
    const double value = given["value"].get<double>();
    if (!(value > 0) || !std::isfinite(value))
      throw Error(fmt::format("{}: '{}' must be a positive number", file.string(), name));
    *found = {value, given["origin"].get<std::string>()};
  }
  return limits;
}

nlohmann::json to_json(const Thresholds& limits) {
  nlohmann::json out;
  for (const auto& [name, threshold] : entries(limits))
    out[name] = {{"value", threshold->value}, {"origin", threshold->origin}};
  out["accept_paths"] = limits.accepted;
  return out;
}

}  // namespace parity
