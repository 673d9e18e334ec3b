// Every number that decides where there is no program to replay: whole tensors (plain.cpp) and sketches (sketches.cpp,
// sketch_diagnosis.cpp), each with what it follows from.
#pragma once
#include "core/limit.hpp"

namespace parity {

/// Relative L2 of free-running values, in unit roundoffs of the wider of both dtypes.
struct FreeRunningLimits {
  Constant roundings{2, "unit roundoffs: one rounding on each side is .4 on the average, 1 at most"};
  Constant half_chain{64, "unit roundoffs: deep bf16 models were seen at some ten; above it no chain of roundings"};
  Constant single_chain{1024, "unit roundoffs: deep fp32 models were seen at some hundred"};
};

/// What a sketch's buckets say (measure/sketch.hpp).
struct SketchLimits {
  Constant errors{4, "standard errors between an estimate and what is certain: one in 16000 lies further off"};
  Constant left{.1, "of the difference may be left when it is called a sign, a gain, an offset"};
  Constant filled{.9, "of the buckets may differ when elements are counted: linear counting has 3 % error there"};
  Constant bucket{8, "times the fp64 sums' error in a bucket: smaller ones do not differ"};
  Constant reordered{10, "times the limit: a smaller difference is not called a permutation"};
  Constant sum_moves{4, "norms: a rotation moves the sum by about one, a permutation by nothing"};
  Constant few{.5, "of the elements: where more differ, how many is not worth telling"};
  Constant slice_least{5, "elements: fewer hit buckets of their own by chance"};
  Constant slice_most{3, "times the differing elements: a slice so much larger is not what differs"};
  Constant slice_spare{8, "elements beside that: counts of a few elements are uncertain by as much"};
  Constant slice_share{.9, "of a slice's buckets must differ; the others may cancel"};
  Constant slice_alike{.97, "of the fullest slice's buckets: as full, it is another candidate"};
};

inline constexpr FreeRunningLimits kFreeRunning;
inline constexpr SketchLimits kSketch;

}  // namespace parity
