#include "judge/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string_view>

#include "core/error.hpp"

namespace parity {
namespace {

struct Entry {
  std::string_view name;
  Threshold Thresholds::*threshold;
};

// One list of names for reading and writing.
constexpr Entry kEntries[] = {
    {"logic_rel_l2", &Thresholds::logic_rel_l2},
    {"fp32_null_factor", &Thresholds::fp32_null_factor},
    {"fp32_sum_factor", &Thresholds::fp32_sum_factor},
    {"half_ratio", &Thresholds::half_ratio},
    {"half_attention_ratio", &Thresholds::half_attention_ratio},
    {"half_unequal_share", &Thresholds::half_unequal_share},
    {"half_null_unequal_factor", &Thresholds::half_null_unequal_factor},
    {"false_alarms", &Thresholds::false_alarms},
    {"z", &Thresholds::z},
    {"null_z_factor", &Thresholds::null_z_factor},
    {"gain_in_u", &Thresholds::gain_in_u},
    {"amplitude_tolerance", &Thresholds::amplitude_tolerance},
    {"amplitude_sigma", &Thresholds::amplitude_sigma},
    {"explained", &Thresholds::explained},
    {"whole", &Thresholds::whole},
    {"nearer", &Thresholds::nearer},
    {"much_nearer", &Thresholds::much_nearer},
    {"whole_sigma", &Thresholds::whole_sigma},
    {"free_amplitude", &Thresholds::free_amplitude},
    {"logic_sum_factor", &Thresholds::logic_sum_factor},
    {"rounding_floor", &Thresholds::rounding_floor},
    {"ratio_margin", &Thresholds::ratio_margin},
    {"sampling_sigma", &Thresholds::sampling_sigma},
    {"size_factor", &Thresholds::size_factor},
    {"rounding_size", &Thresholds::rounding_size},
    {"share_sigma", &Thresholds::share_sigma},
    {"share_elements", &Thresholds::share_elements},
    {"truncation_share", &Thresholds::truncation_share},
    {"truncation_unequal", &Thresholds::truncation_unequal},
    {"truncation_ulp", &Thresholds::truncation_ulp},
    {"bias_elements", &Thresholds::bias_elements},
    {"null_gain_factor", &Thresholds::null_gain_factor},
    {"fp32_gain_in_u", &Thresholds::fp32_gain_in_u},
    {"narrower_witnesses", &Thresholds::narrower_witnesses},
    {"elementwise_library", &Thresholds::elementwise_library},
    {"fitted_sigma", &Thresholds::fitted_sigma},
    {"cast_in_null", &Thresholds::cast_in_null},
    {"cast_units", &Thresholds::cast_units},
    {"equally_good", &Thresholds::equally_good},
    {"equally_good_noise", &Thresholds::equally_good_noise},
    {"equally_good_floor", &Thresholds::equally_good_floor},
    {"same_bits", &Thresholds::same_bits},
    {"undecided", &Thresholds::undecided},
    {"reproduced_half", &Thresholds::reproduced_half},
    {"reproduced_sum", &Thresholds::reproduced_sum},
    {"reproduced_exponential", &Thresholds::reproduced_exponential},
    {"whole_cast", &Thresholds::whole_cast},
};

nlohmann::json parse(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error(fmt::format("{}: cannot read the thresholds file", file.string()));
  try {
    nlohmann::json content = nlohmann::json::parse(stream);
    if (content.is_object()) return content;
  } catch (const nlohmann::json::exception&) {
  }
  throw Error(fmt::format("{}: is not a JSON object of thresholds", file.string()));
}

}  // namespace

std::map<std::string, Threshold> read_threshold_file(const std::filesystem::path& file,
                                                     std::vector<std::string>& accepted) {
  std::map<std::string, Threshold> found;
  const nlohmann::json content = parse(file);  // outlives the loop over its items
  for (const auto& [name, given] : content.items()) {
    if (name == "accept_paths") {
      if (!given.is_array() || !std::all_of(given.begin(), given.end(), [](const auto& g) { return g.is_string(); }))
        throw Error(fmt::format("{}: accept_paths must be a list of path globs", file.string()));
      for (const auto& glob : given) accepted.push_back(glob.get<std::string>());
      continue;
    }
    if (!given.is_object() || !given.contains("value") || !given["value"].is_number() || !given.contains("origin") ||
        !given["origin"].is_string() || given["origin"].get<std::string>().empty())
      throw Error(fmt::format("{}: '{}' needs a number 'value' and an 'origin' that says why", file.string(), name));
    const double value = given["value"].get<double>();
    const bool zero_allowed = name.ends_with("_in_u");
    if (!(value > 0 || (zero_allowed && value == 0)) || !std::isfinite(value))
      throw Error(fmt::format("{}: '{}' must be a positive number", file.string(), name));
    found.emplace(name, Threshold{value, given["origin"].get<std::string>()});
  }
  return found;
}

Thresholds read_thresholds(const std::filesystem::path& file) {
  Thresholds limits;
  for (const auto& [name, given] : read_threshold_file(file, limits.accepted)) {
    const auto known =
        std::find_if(std::begin(kEntries), std::end(kEntries), [&](const Entry& e) { return e.name == name; });
    if (known == std::end(kEntries)) throw Error(fmt::format("{}: there is no threshold '{}'", file.string(), name));
    limits.*(known->threshold) = given;
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
  for (const auto& [name, threshold] : kEntries)
    out[std::string(name)] = {{"value", (limits.*threshold).value}, {"origin", (limits.*threshold).origin}};
  out["accept_paths"] = limits.accepted;
  return out;
}

}  // namespace parity
