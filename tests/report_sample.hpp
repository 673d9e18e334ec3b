// A small report with a row for every verdict and gate: input of the golden reports.
#pragma once
#include "compare/result.hpp"

namespace parity::test {

/// Hostile names and messages included when `hostile`.
Report sample_report(bool hostile = false);

}  // namespace parity::test
