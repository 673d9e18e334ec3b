// What is said when no op is wrong and the result still lies further off than was asked.
#pragma once
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// Sentences for a terminal; none when there is nothing to say.
std::vector<std::string> whole_program_lines(const WholeProgram& whole);
/// A section of report.md with the table of steps; "" without `report.whole`.
std::string markdown_whole_program(const Report& report);

}  // namespace parity
