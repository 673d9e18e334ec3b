#include "cli/first_divergence.hpp"

#include <fmt/format.h>

#include "cli/snippet.hpp"
#include "core/error.hpp"
#include "jobs/repro.hpp"

namespace parity::cli {

void attach_repro(Report& report, const Sides& sides, const std::filesystem::path& folder) {
  const OpResult* op = first_divergence(report);
  if (op == nullptr || !sides.replayable()) return;
  const std::filesystem::path file = folder / "first_divergence.h5";
  try {
    if (sides.rewritten)  // the recording has all of them
      extract(*sides.reference.dump, load_program(*sides.reference.dump), {op->path, op->call, nullptr}, file);
    else
      extract(*sides.reference.dump, sides.reference.program, {op->path, op->call, port_values(sides)}, file);
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
