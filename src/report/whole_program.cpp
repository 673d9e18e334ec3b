#include "report/whole_program.hpp"

#include <fmt/format.h>

#include "report/markdown_parts.hpp"
#include "report/markup.hpp"

namespace parity {
namespace {

std::string where_from(const WholeProgram& whole) {
  return fmt::format(
      "The recorded program itself lies {:.2g} from its result in fp64; {} ops round, and their roundings, each "
      "carried to the result alone, account for {:.0f} % of that",
      whole.precision, whole.roundings, 100 * whole.explained);
}

}  // namespace

std::vector<std::string> whole_program_lines(const WholeProgram& whole) {
  std::vector<std::string> out{where_from(whole)};
  if (whole.steps.empty()) return out;
  const PrecisionStep &first = whole.steps.front(), &last = whole.steps.back();
  const auto reached = [](const PrecisionStep& step) {
    return step.replayed ? fmt::format("{:.2g} (predicted {:.2g})", *step.replayed, step.predicted)
                         : fmt::format("{:.2g} predicted", step.predicted);
  };
  out.push_back(fmt::format("{} kept wide: {}", first.path, reached(first)));
  if (whole.steps.size() > 1)
    out.push_back(fmt::format("with {} more, down to {}: {}", whole.steps.size() - 1, last.path, reached(last)));
  return out;
}

std::string markdown_whole_program(const Report& report) {
  if (!report.whole) return "";
  const WholeProgram& whole = *report.whole;
  std::string out = "## No op is wrong\n\n";
  out += fmt::format("| | relative L2 of the result |\n| --- | --: |\n| candidate | {:.2g} |\n| asked | {:.2g} |\n",
                     whole.error, whole.asked);
  out +=
      fmt::format("| the reference's program in other valid arithmetics, the furthest | {:.2g} |\n", whole.valid_error);
  out += fmt::format("| the recorded program against fp64 | {:.2g} |\n\n{}.\n\n", whole.precision, where_from(whole));
  if (whole.steps.empty()) return out;
  out += "What higher precision would bring, op by op, each besides those above it:\n\n";
  out += table_row({"kept wide", "kind", "share of the squared error", "amplification", "error then, predicted",
                    "replayed", "source"});
  out += table_row({"---", "---", "--:", "--:", "--:", "--:", "---"});
  for (const PrecisionStep& step : whole.steps)
    out += table_row({markdown_code(step.path), markdown(step.kind), fmt::format("{:.1f} %", 100 * step.share),
                      fmt::format("{:.2g}", step.amplification), fmt::format("{:.3g}", step.predicted),
                      number(step.replayed), markdown(step.source)});
  return out +
         "\n*Amplification*: what the op's own relative error becomes at the result. *Replayed*: the recorded "
         "program with exactly these results kept in fp64.\n\n";
}

}  // namespace parity
