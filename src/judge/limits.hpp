// Every limit of `compare` in one table, each with where it came from (thresholds.json, --thresholds FILE).
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace parity {

/// A number and why it is that number.
struct Threshold {
  double value;
  std::string origin;
};

struct Thresholds {
  Threshold logic_rel_l2{1e-12, "fp64: 4500 roundings; the smallest fault seen (LayerNorm eps) is 1.7e-6"};
  Threshold fp32_null_factor{
      4,
      "error over the largest of three right arithmetics (LibTorch's kernels, every op exact, sums reversed); "
      "another fp32 attention kernel was seen at 1.7"};
  Threshold fp32_sum_factor{
      .5, "times sqrt(K) u: a sum of K terms taken one after the other (Higham & Mary 2019, probabilistic bound)"};
  Threshold half_ratio{
      1.35,
      "error over the null's; one extra rounding anywhere gives 1.4 or more (two equal independent roundings: sqrt 2)"};
  Threshold half_attention_ratio{2.5,
                                 "error over the null's, which contains eager attention in the tensor's own dtype"};
  Threshold half_unequal_share{.02, "GEMMs and norms with fp32 sums in another order flip under 2 %"};
  Threshold half_null_unequal_factor{3, "times the null's share of flipped elements"};
  Threshold z{6, "sign-flip null: 200 reorderings gave at most 2.1"};
  Threshold null_z_factor{3, "times what right arithmetics have of the same direction"};
  Threshold gain_in_u{1. / 1024, "unit roundoffs; smaller gains are reported only"};
  Threshold amplitude_tolerance{.35, "a fault of fixed size must be there with amplitude 1 within this and 4 sigma"};
  Threshold explained{.3, "of the squared difference: a change that explains less is a coincidence of directions"};
  Threshold whole{.8, "of the squared difference: explained by one direction, it is that change below 6 sigma, too"};
  Threshold whole_cast{.5, "the same of a cast placement in half width: honest pairs of the self test reach .05"};
  std::vector<std::string>
      accepted;  // declared roundings: globs of paths whose dtype_path failures pass (--accept-path)
};

/// Defaults changed by a file {"name": {"value": 1, "origin": "why"}, …, "accept_paths": ["blocks.*.norm1"]}.
/// Throws Error for unreadable files, unknown names, values that are no positive number, and a change without origin.
Thresholds read_thresholds(const std::filesystem::path& file);

/// All of them, as the file has them.
nlohmann::json to_json(const Thresholds& limits);

}  // namespace parity
