// A small report with a row for every verdict and gate: input of the golden reports.
#pragma once
#include "core/result.hpp"

namespace parity::test {

/// Hostile names and messages included when `hostile`.
Report sample_report(bool hostile = false);

/// As a real run looks: 300 ops in fp64, fp32 and bf16, most bitwise equal, errors that pile up, and one wrong cast.
Report large_report();

}  // namespace parity::test
