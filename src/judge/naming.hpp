// When a named change is the name of a difference. Touches no tensor.
#pragma once
#include <string>
#include <vector>

#include "core/segment.hpp"
#include "diagnose/finding.hpp"
#include "judge/limits.hpp"
#include "measure/evidence.hpp"

namespace parity {

/// The finding that explains the difference best, or nullptr when none is significant.
const Finding* best_finding(const std::vector<Finding>& findings, const Thresholds& limits);

/// Of arithmetic below the cast, what explains the difference as well as `best` and gives as many of the candidate's
/// very bits: names that these numbers cannot tell from it (TF32 and fp16 keep the same 11 bits). One a name.
std::vector<const Finding*> equally_good_names(const Finding& best, const std::vector<Finding>& findings,
                                               const Thresholds& limits);

/// Is the finding the name of a difference that is beyond a limit of size? A change of free size is fitted: of
/// unrelated differences some size of it always explains a part. Where roundings are small beside it and one module's
/// ops lie before the value, it must be most of the difference: wrong names of 200 faults of five ports had 30 to 58 %,
/// right ones of a fault that all experts have 61 %. Where several modules do, one of them may have a part of the
/// fault.
bool explains_enough(const Finding& finding, const Segment& segment, const Thresholds& limits);

/// Do valid arithmetics go as far the same way?
bool is_within_null(const Finding& finding, const Thresholds& limits);

/// How large the change is: "factor 0.9" of a scaling, else "amplitude 1.00", of the change as it was tried.
std::string size_text(const Finding& finding);

/// In a wide tensor of a mixed run: the cast placement whose change is as large as the candidate's error, within a
/// factor of `size_factor`, or nullptr, as for an error that no few roundings to half width make. Roundings of other
/// intermediate values (another formula's) hit other elements and are of that size. `error`: over the oracle's norm.
const Finding* cast_of_this_size(const std::vector<Finding>& findings, double error, const Thresholds& limits);

/// Is an error, where the dtype differs, larger than all known casts of the stretch together would make, or, where none
/// was tried, than a rounding of each of its ops?
bool beyond_casts(const std::vector<Finding>& findings, const Evidence& e, const Segment& segment,
                  const Thresholds& limits);

/// "extra rounding: " where the candidate has more error than the reference's own, "missing rounding: " where it has
/// less, "" where neither stands out of what so many elements scatter or the values are truncated.
std::string rounding_by_error(const Evidence& evidence, const Thresholds& limits);

/// Smallest amplitude of a direction that would have been significant here.
double detectable_amplitude(const Finding& finding, const Thresholds& limits);

/// Is the finding enough for a failure where every limit of size holds? It must come nearer to the candidate than any
/// valid arithmetic, and then be most of the difference in one direction (valid arithmetics differ from each other at
/// random), or a part of it that chance does not give and that has the change's own size.
bool explains_the_difference(const Finding& finding, bool half_width, const Thresholds& limits);

/// In half width: do so few elements differ that other valid arithmetic has them by chance? It brings an element next
/// to a tie to its other side, and to the one that the change brings it to, in one case of four.
bool flips_by_chance(const Finding& finding, double differing, const Thresholds& limits);

}  // namespace parity
