// Every limit of `compare` in one table, each with where it came from (thresholds.json, --thresholds FILE).
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
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
      "error over the largest of three valid arithmetics (LibTorch's kernels, every op exact, sums reversed); "
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
  Threshold false_alarms{
      1e-4, "expected false alarms of a whole run, over all its projections (Sidak): one run in ten thousand"};
  Threshold z{6, "sigma; compare replaces it by what false_alarms and the run's number of projections ask for"};
  Threshold null_z_factor{3, "times what valid arithmetics have of the same direction"};
  Threshold gain_in_u{1. / 1024, "unit roundoffs; smaller gains are reported only"};
  Threshold amplitude_tolerance{.35,
                                "a fault of fixed size must be there with amplitude 1 within this or amplitude_sigma"};
  Threshold amplitude_sigma{4, "standard deviations of the amplitude: one fit in 16000 lies further off"};
  Threshold explained{.3, "of the squared difference: a change that explains less is a coincidence of directions"};
  Threshold whole{.8, "of the squared difference: explained by one direction, it is that change below 6 sigma, too"};
  Threshold nearer{.9, "of the squared distance from the nearest valid arithmetic: a name must come nearer than that"};
  Threshold much_nearer{
      .4,
      "of the squared distance from the nearest valid arithmetic: nearer than rounding noise alone can "
      "bring an unrounded value (half of it), the amplitude of valid arithmetics no longer counts"};
  Threshold whole_sigma{8, "Fisher's transform of the correlation: a few hundred directions are tried on a tensor"};
  Threshold fitted_sigma{3.5,
                         "a change whose size is chosen by which elements round another way, however much it explains: "
                         "a dozen of one sign "
                         "(2^-12); one or two turn over under any other kernel, and some size of an eps does so, too"};
  Threshold free_amplitude{
      4,
      "a change of free size is named where its amplitude is 1 within this factor; other sizes are other hypotheses"};
  Threshold logic_sum_factor{6, "times sqrt(K) 2^-53 (hipDNN's probabilistic bound, Higham & Mary 2019)"};
  Threshold rounding_floor{.4, "unit roundoffs: mean error of one rounding of smooth data (0.425)"};
  Threshold ratio_margin{.05, "of ln R, beside the sampling error (sampling_sigma / sqrt(N))"};
  Threshold sampling_sigma{2.33, "over sqrt(N): 99 % of the ratios of two rms errors of N elements lie below"};
  Threshold size_factor{3, "a cast placement is named by its size where it changes as much within this factor"};
  Threshold rounding_size{4, "times the null's error: larger ones are not a few roundings"};
  Threshold share_sigma{3, "standard deviations of a share of N elements"};
  Threshold share_elements{2, "elements that may always differ"};
  Threshold truncation_share{.95, "of the differing elements smaller than the reference: truncation (random: 0.5)"};
  Threshold truncation_unequal{.25, "of all elements; truncation changes half"};
  Threshold truncation_ulp{2, "units in the last place; truncation moves by one"};
  Threshold bias_elements{64, "elements below which a bias is not judged"};
  Threshold null_gain_factor{3, "times the gain of valid arithmetics"};
  Threshold fp32_gain_in_u{
      6,
      "unit roundoffs in fp32: below, a table of another library explains it, or tensor cores, which cut off what they "
      "add (an H100's convolution in TF32 is 2.1 too small, its attention in fp32 2.4 to 3.2; "
      "tests/python/test_recorded_on_gpu.py)"};
  Threshold narrower_witnesses{
      16,
      "different values of a candidate in fp32 that is held by bf16 or fp16 whole, where the reference lies an eighth "
      "of a step away and more: by chance one of 2^13 does so, 16 one of 2^208"};
  Threshold elementwise_library{
      2, "unit roundoffs: an rsqrt or exp of another library, the same for a whole row (XLA on CPU: 1e-8 to 5e-8)"};
  Threshold cast_in_null{
      2,
      "times the null's error, in fp32: a cast that changes no more, and few units, is a rounding drawn anew (a term "
      "that softmax does not see, 1.0 of the null, explained 99.8 % of another log's difference: eight numbers, spread "
      "over an image)"};
  Threshold cast_units{64, "unit roundoffs of fp32: a five-hundredth of a cast to bf16, a sixty-fourth of one to TF32"};
  Threshold equally_good{1.3, "times the least unexplained share: findings that explain equally well"};
  Threshold equally_good_noise{2, "times the valid arithmetics' share of the squared difference, beside that"};
  Threshold equally_good_floor{.002, "of the squared difference, beside that"};
  Threshold same_bits{.97, "of the elements: sums of half widths in another order flip under 2 %"};
  Threshold undecided{.1, "relative error: where valid arithmetics alone allow as much, a pass shows nothing"};
  Threshold reproduced_half{
      4, "unit roundoffs by which another machine's kernels move a half-width result (attention: 1.5)"};
  Threshold reproduced_sum{4, "times sqrt(K) u, in fp32 and fp64"};
  Threshold reproduced_exponential{
      6 * 0x1p-20,
      "relative: sums of exponentials that half-width attention hands out in fp32 (LibTorch's exp_u20 keeps 20 bits "
      "where the CPU has AVX-512; found 2.7 * 2^-20 on a Zen 1)"};
  Threshold whole_cast{.5, "the same of a cast placement in half width: benign pairs of the self test reach .05"};
  std::vector<std::string>
      accepted;  // declared roundings: globs of paths whose dtype_path failures pass (--accept-path)
};

/// What a file of thresholds gives, by name; globs of "accept_paths" go into `accepted`. Throws Error for an unreadable
/// file, values that are not numbers above 0 (0 itself where the name ends in _in_u), and a value without origin.
std::map<std::string, Threshold> read_threshold_file(const std::filesystem::path& file,
                                                     std::vector<std::string>& accepted);

/// Defaults changed by a file {"name": {"value": 1, "origin": "why"}, …, "accept_paths": ["blocks.*.norm1"]}.
/// Throws Error for unreadable files, unknown names, values that are not positive numbers, and a change without origin.
Thresholds read_thresholds(const std::filesystem::path& file);

/// The two-sided limit in sigma that keeps the expected false alarms of `tests` independent normal tests at `budget`
/// (Sidak: each at 1 - (1 - budget)^(1 / tests)).
double sigma_limit(double budget, int64_t tests);

/// All of them, as the file has them.
nlohmann::json to_json(const Thresholds& limits);

}  // namespace parity
