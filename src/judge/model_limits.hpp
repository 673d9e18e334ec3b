// Every number that decides a verdict of the main job (`run`), each with where it came from.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "judge/limits.hpp"

namespace parity {

/// What is promised of an op kind when both sides run it teacher-forced, in the same dtypes, on the same kernels.
struct KindLimit {
  std::string kind;
  double min_equal_share;  // of bitwise equal elements
  double max_rel_l2_in_u;  // relative L2 in unit roundoffs of the output's dtype
  std::string reason;
};

/// One row a kind.
std::vector<KindLimit> kind_limits();
/// The limit of a kind, or nullptr: a row without a limit is never green.
const KindLimit* find_limit(std::string_view kind);

struct ModelLimits {
  Threshold logic_rel_l2{1e-12,
                         "fp64: both sides compute the same formula, perhaps in another order; 4500 roundings of fp64, "
                         "and the smallest fault seen (LayerNorm eps 1e-5 for 1e-6) is 1.7e-6"};
  Threshold kernel_null_factor{
      2,
      "times what the reference's own program differs from the recorded values on this machine: two right kernels lie "
      "on either side of the truth, each as far from it as the null's runs"};
  Threshold share_says_something{
      .5,
      "of the elements: one rounding placed elsewhere flips 16 to 53 % of them (measured on bf16 casts of this model), "
      "so a limit that lets half of them differ would let it pass; the norm alone decides then"};
  Threshold own_rounding_factor{
      2,
      "times the op's rounding as measured in the forced run and by the null (judge/propagation.cpp); used up to .52 "
      "of "
      "the limit by the reference's program in each arithmetic that the null was then without "
      "(tests/propagation_test.cpp), up to .50 under 18 settings of ISA, MKL and threads (scripts/any_cpu)"};
  Threshold own_rounding_z{
      5,
      "sigma, widens the factor for tensors of few elements, exp(z / sqrt(n)): the log of the ratio of two independent "
      "rms errors of n elements is normal with variance 1 / n; 5 sigma is one row in 3.5 million, 1e-3 for a run of "
      "3690 rows"};
  Threshold severe_factor{5,
                          "times the limit: beyond it no rounding is left to blame and the row fails; between the two "
                          "it is inconclusive"};
  std::vector<KindLimit> kinds = kind_limits();
  std::vector<std::string> accepted;  // declared roundings: globs of paths whose dtype_path failures pass
};

/// Those in force: the defaults until others are set, before anything is judged.
const ModelLimits& model_limits();
void set_model_limits(ModelLimits limits);

/// Defaults changed by a file {"name": {"value": 1, "origin": "why"}, …, "accept_paths": ["blocks.*.norm1"]}; those of
/// a kind are "linear.bitwise_equal_share" and "linear.rel_l2_in_u". Throws Error as read_thresholds does.
ModelLimits read_model_limits(const std::filesystem::path& file);

/// All of them, as the file has them.
nlohmann::json to_json(const ModelLimits& limits);

/// How many perturbed runs the amplification is the largest of.
inline constexpr int kPerturbedRuns = 4;

}  // namespace parity
