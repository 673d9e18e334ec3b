// Every number that decides something in src/gate, each with what it follows from. README.md says how they are used.
#pragma once
#include "core/limit.hpp"

namespace parity {

struct GateLimits {
  Constant share_of_limit{
      .75,
      "of a row's limit: how far a number may move while nothing is wrong. A limit is at least twice what valid "
      "arithmetic was seen to do, and used up to .50 by 18 settings of ISA, MKL and threads on 16 recordings (306 "
      "pairs "
      "of runs, 3690 rows each), to .52 by arithmetics the null was without (judge/model_limits.hpp); by compare in "
      "fp32 to .43 (another attention kernel: 1.7 of 4). Below 1, so that a fault of one limit is worse from anywhere"};
  Constant gain_sigma{
      6,
      "standard deviations that random signs alone give a gain, rel_l2 / sqrt(elements): a gain beyond its "
      "limit is no fault below them (judge/limits.hpp, z)"};
  Constant inherited{4,
                     "times the predicted free-running error: amplification is measured with white noise, and the same "
                     "306 pairs of runs moved up to 1.73 times the larger prediction (a norm after attention, bf16)"};
  Constant wider{
      4,
      "times a limit of the baseline, from where the gate says that it is wider; decides nothing. On one machine "
      "other oneDNN kernels widen a limit up to 3.0 times, MKL's compatible mode up to 42 (set by the "
      "environment alone), a loosened --thresholds by anything"};
  Constant largest_file{256. * 1024 * 1024, "bytes: about 115,000 rows at 2.3 kB each (a report of 273 rows: 622 kB)"};
};

inline constexpr GateLimits kGate;

}  // namespace parity
