// A test of a port's function against an extract, as C++ text to be pasted into doctest tests.
#pragma once
#include <string>

#include "jobs/repro.hpp"

namespace parity::cli {

/// Loads the extract's inputs and weights, calls `ported` with them in the program's order, and asserts every result of
/// `repro` within its limit.
std::string test_snippet(const Dump& extract, const Program& program, const Repro& repro);

}  // namespace parity::cli
