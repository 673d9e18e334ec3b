// Every number that decides something in src/diagnose, each with what it follows from. They were set by hand while the
// self test was run, so its pairs are their training set; how far each may move was not measured. Constants of formulas
// and of hypotheses: faults/constants.hpp. What a verdict makes of a finding: src/judge/limits.hpp.
#pragma once
#include "core/limit.hpp"

namespace parity {

/// Which values an op works on, where the program does not say it.
struct RecognitionLimits {
  Constant hidden{-1e4, "scores at or below it are masked: libraries use -inf, a dtype's lowest, or -1e4 (BERT)"};
  Constant largest_eps{1e-2, "a number larger than that, added before rsqrt, is no eps: libraries use 1e-12 to 1e-3"};
  Constant largest_wrong_eps{1, "a port's eps of a free size: larger, it would outweigh values of unit variance"};
  Constant slightly{.1, "of an activation's constant: what is further off is another function"};
  Constant table_bound{1.0001, "cosines and sines are at most 1 but for fp32 rounding"};
  Constant equal_frequencies{1e-6, "radians: those repeated for a pair are equal but for acos of one fp32 cosine"};
  Constant listed{.01, "of a base: nearer to a listed one, a factor would try the same again"};
};

/// How findings are fitted (findings.cpp).
struct FittingLimits {
  Constant parts{4, "cast placements named together at most: more explain any difference"};
  Constant whole_part{.35, "of a cast that is there its amplitude is 1 within this: others there and noise bend it"};
  Constant least_gain{.05, "of the squared difference: matching pursuit stops where no placement adds a twentieth"};
  Constant same_rows{.75,
                     "rows_alike of a difference and a cast that is told by its size alone: in half of the rows, where "
                     "the cast is in all, gives .71; another draw of the same roundings over 16 elements a row .97"};
  Constant gross{4, "times the largest distance between valid arithmetics: other weights move a value of fp32 further"};
  Constant worth_a_null{2, "sigma: a direction below is never significant, whatever the valid arithmetics have of it"};
  Constant beside_gain{
      .01,
      "of the squared difference, beside noise, that a gain of all values may leave in fp32: a coefficient of "
      "a sum is nearly one (.02 to .13), and no gain"};
  Constant own_noise{4, "times the largest of valid arithmetics, that the port's own may be"};
  Constant few_elements{3, "that carry the difference: two numbers point in the direction of many a change"};
  Constant certain{.999, "of the difference, explained: two numbers hardly meet that by chance"};
  Constant of_a_statistic{
      4,
      "unit roundoffs: a sum in another order moves a row's mean square as far, and with one or two "
      "rows an eps is whatever does so (two rows of a loop in fp32: 1.7)"};
  Constant worth_rounding{1,
                          "sigma of a change of free size, from which its roundings are looked at element by element"};
};

/// Values written before (stale.cpp).
struct StaleLimits {
  Constant another{.3,
                   "of the norm, by which the right value is missed: a smaller error is a mistake in the computing"};
  Constant same{.03,
                "of that error, by which the older value may be missed; bf16 rounding (1.7e-3 of the norm) is at most "
                ".006 of it"};
  Constant apart{.5, "of that error, by which the older value must differ from the right one"};
  Constant rounding{16,
                    "unit roundoffs of fp32, by which the reference's own values at both places must differ: one row "
                    "through a linear layer of 24 to 4096 inputs, among 1 to 257 rows, moved by 2 to 13 (MKL, Zen 3)"};
};

/// Cast placements shown for one place (cast_path.cpp).
struct PlacementLimits {
  Constant better{1e-9, "of the elements: less than one of a tensor's, so a tie; the recorded placement wins ties"};
};

/// Parts of ranks put together otherwise (shard_faults.cpp).
struct ShardLimits {
  Constant whole{
      .98, "of the squared difference: all but what roundings leave; a bf16 sum's are 1e-4 of a summand's square"};
};

inline constexpr ShardLimits kShards;
inline constexpr RecognitionLimits kRecognition;
inline constexpr FittingLimits kFitting;
inline constexpr StaleLimits kStale;
inline constexpr PlacementLimits kPlacement;

}  // namespace parity
