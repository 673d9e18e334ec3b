#include "judge/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
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
          {"false_alarms", &t.false_alarms},
          {"z", &t.z},
          {"null_z_factor", &t.null_z_factor},
          {"gain_in_u", &t.gain_in_u},
          {"amplitude_tolerance", &t.amplitude_tolerance},
          {"explained", &t.explained},
          {"whole", &t.whole},
          {"nearer", &t.nearer},
          {"much_nearer", &t.much_nearer},
          {"whole_sigma", &t.whole_sigma},
          {"free_amplitude", &t.free_amplitude},
          {"logic_sum_factor", &t.logic_sum_factor},
          {"rounding_floor", &t.rounding_floor},
          {"ratio_margin", &t.ratio_margin},
          {"size_factor", &t.size_factor},
          {"rounding_size", &t.rounding_size},
          {"share_sigma", &t.share_sigma},
          {"share_elements", &t.share_elements},
          {"truncation_share", &t.truncation_share},
          {"truncation_unequal", &t.truncation_unequal},
          {"truncation_ulp", &t.truncation_ulp},
          {"bias_elements", &t.bias_elements},
          {"null_gain_factor", &t.null_gain_factor},
          {"fp32_gain_in_u", &t.fp32_gain_in_u},
          {"elementwise_library", &t.elementwise_library},
          {"equally_good", &t.equally_good},
          {"equally_good_floor", &t.equally_good_floor},
          {"undecided", &t.undecided},
          {"reproduced_half", &t.reproduced_half},
          {"reproduced_sum", &t.reproduced_sum},
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
  const nlohmann::json content = parse(file);  // outlives the loop over its items
  for (const auto& [name, given] : content.items()) {
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

double sigma_limit(double budget, int64_t tests) {
  const double each = -std::expm1(std::log1p(-budget) / static_cast<double>(std::max<int64_t>(1, tests)));
  double low = 0, high = 40;
  for (int i = 0; i < 200; ++i) {  // bisection: erfc falls
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.)) > each ? low : high) = middle;
  }
  return high;
}

nlohmann::json to_json(const Thresholds& limits) {
  nlohmann::json out;
  for (const auto& [name, threshold] : entries(limits))
    out[name] = {{"value", threshold->value}, {"origin", threshold->origin}};
  out["accept_paths"] = limits.accepted;
  return out;
}

}  // namespace parity
