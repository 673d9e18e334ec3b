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
  Constant inherited{4,
                     "times the predicted free-running error: amplification is measured with white noise, and the same "
                     "306 pairs of runs moved up to 1.73 times the larger prediction (a norm after attention, bf16)"};
  Constant wider{4,
                 "times a limit of the baseline: valid kernels of one machine class move a null less (2.0 in the same "
                 "runs); a limit wider than that was loosened, and the gate says so"};
  Constant largest_file{256. * 1024 * 1024, "bytes: 90,000 rows, 24 times the main job's report (3690 rows, 10 MB)"};
};

inline constexpr GateLimits kGate;

}  // namespace parity
