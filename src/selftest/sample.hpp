// A part of the suite for every change, the whole one for changes of the judge.
#pragma once
#include "selftest/suite.hpp"

namespace parity {

/// What kind of mistake a diagnosis is: "casts" for roundings, "cache" for values of another time, "positions" for
/// masks, rotations and windows, else "formula".
std::string_view diagnosis_class(std::string_view diagnosis);

/// The suite with `faults` of its faults and every benign pair. A systematic sample of a list ordered by family, dtype,
/// class of diagnosis and, within these, by a hash of the file's name: each stratum has its share but for one pair, and
/// the same suite gives the same sample everywhere. As many as there are or more: the whole suite.
SelftestSuite sample_of(SelftestSuite suite, int faults);

}  // namespace parity
