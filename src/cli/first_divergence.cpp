#include "cli/first_divergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cli/snippet.hpp"
#include "core/error.hpp"
#include "jobs/repro.hpp"

namespace parity::cli {
namespace {

// What can be cut out: the row's module or op; for a point, which is a name for a value, the op that made it.
std::pair<std::string, int> cut_at(const Program& program, const OpResult& row) {
  const auto named_so = [&](const auto& of) { return of.path == row.path; };
  const auto point = program.find(row.path, row.call);
  if (!point || std::ranges::any_of(program.calls, named_so) || std::ranges::any_of(program.ops, named_so))
    return {row.path, row.call};
  const auto makes_it = [id = program.boundaries[*point].value.id](const Op& op) {
    return std::ranges::any_of(op.outputs, [id](const auto& output) { return output && output->id == id; });
  };
  const auto op = std::ranges::find_if(program.ops, makes_it);
  return op == program.ops.end() ? std::pair(row.path, row.call) : std::pair(op->path, op->call);
}

}  // namespace

void attach_repro(Report& report, const Sides& sides, const std::filesystem::path& folder) {
  const OpResult* op = first_divergence(report);
  if (op == nullptr || !sides.replayable()) return;
  const std::filesystem::path file = folder / "first_divergence.h5";
  try {
    // Of a program that was rewritten, as it was recorded: all of its values are there, and not the port's.
    const Program recorded = sides.rewritten ? load_program(*sides.reference.dump) : sides.reference.program;
    const auto [path, call] = cut_at(recorded, *op);
    extract(*sides.reference.dump, recorded, {path, call, sides.rewritten ? nullptr : port_values(sides)}, file);
    const Dump cut(file);
    const Program program = load_program(cut);
    report.repro_test = test_snippet(cut, program, run_again(cut, program, Precision::recorded));
    report.repro_file = file.filename().string();
  } catch (const std::exception& error) {  // LibTorch's own among them: the comparison is done, and stands
    const std::string what = error.what();
    report.warnings.push_back(fmt::format("no extract of the first divergence: {}", what.substr(0, what.find('\n'))));
  }
}

}  // namespace parity::cli
