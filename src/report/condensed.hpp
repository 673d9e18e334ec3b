// How it was compared, in few lines however many recordings there are; the lines of each recording stand in its own
// file (recordings/NAME.md).
#pragma once
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// Coverage, references, what fp64 logic shows, growth with depth, granularity, named changes tried, power: a line each
/// at most.
std::vector<std::string> condensed_lines(const Report& report);

/// Warnings, those that differ in the recording alone as one: "wan.bf16 and 3 more: …".
std::vector<std::string> condensed_warnings(const Report& report);

/// "pass 52, fail 2": the verdicts that occur, in the order of totals_text.
std::string occurring_text(const Report& report);

}  // namespace parity
