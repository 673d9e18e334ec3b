// No op is wrong, and the result still differs by more than was asked: what a person can do about it.
#pragma once
#include <functional>
#include <optional>

#include "core/result.hpp"
#include "dump/dump.hpp"
#include "trace/program.hpp"

namespace parity {

/// nullopt where there is nothing to ask: an op of `rows` fails, the model's result was not compared, or lies within
/// `asked`. Else how far valid arithmetics move the reference's own result when each runs free (Arithmetic,
/// trace/replay.hpp), and which of its roundings matter (diagnose/precision_gain.hpp). Costs some replays and, for each
/// rounding, the ops after it. Throws Error as `replay`.
std::optional<WholeProgram> whole_program(const Dump& dump, const Program& program, const std::vector<OpResult>& rows,
                                          double asked, const std::function<void(double done)>& progress);

/// The row that says so: `fail` where a port could be nearer, `inconclusive` where valid arithmetics lie as far apart.
OpResult whole_program_row(const WholeProgram& whole);

}  // namespace parity
