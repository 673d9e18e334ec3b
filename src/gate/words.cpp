// The sentences that all sinks of the gate share.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gate/sinks.hpp"
#include "report/markup.hpp"

namespace parity {
namespace {

constexpr std::array kSeriousFirst{Change::worse, Change::undecided, Change::vanished, Change::paired,
                                   Change::added, Change::accepted,  Change::better,   Change::same};

std::string plural(int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

/// What keeps a result from being green, in words.
std::string open_points(const GateResult& result) {
  std::vector<std::string> parts;
  if (const int64_t n = count_of(result, Change::undecided)) parts.push_back(fmt::format("{} not decided any more", n));
  if (const int64_t n = count_of(result, Change::vanished)) parts.push_back(fmt::format("{} not in the report", n));
  if (parts.empty()) parts.push_back("new or newly paired rows are not green");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string gate_headline(const GateResult& result) {
  if (!result.compared) return "NOT DECIDED: the baseline has no entry for this machine class; nothing was compared.";
  const int64_t worse = count_of(result, Change::worse),
                all = static_cast<int64_t>(result.rows.size()) - count_of(result, Change::vanished);
  switch (exit_status(result)) {
    case 0:
      return fmt::format("PASS: none of {} is worse than the baseline beyond what rounding explains.",
                         plural(all, "comparison", "comparisons"));
    case 1:
      return fmt::format("WORSE: {} of {} {} worse than the baseline beyond what rounding explains.", worse,
                         plural(all, "comparison", "comparisons"), worse == 1 ? "is" : "are");
    default:
      return fmt::format("NOT DECIDED: none of {} is worse, but {}.", plural(all, "comparison", "comparisons"),
                         open_points(result));
  }
}

std::string gate_totals(const GateResult& result) {
  std::vector<std::string> parts;
  for (const Change change : kSeriousFirst)
    parts.push_back(fmt::format("{} {}", change_name(change), count_of(result, change)));
  return fmt::format("{}", fmt::join(parts, " · "));
}

std::string number_line(const RowChange& row) {
  // Sorted: what is worse stands first, what is better last.
  if (row.numbers.empty()) return "";
  const NumberChange& n = row.numbers.front().worse() ? row.numbers.front() : row.numbers.back();
  if (!n.worse() && !n.better()) return "";
  const auto times = n.times();
  return fmt::format("{} {}, was {} ({})", n.name, number(n.now), number(n.was),
                     n.worse()
                         ? fmt::format("allowed {}{}", number(n.allowed),
                                       times ? fmt::format("; {:+.2g} times the noise", *times) : "; exact before")
                     : times ? fmt::format("{:+.2g} times the noise", *times)
                             : std::string("better"));
}

std::string verdict_line(const RowChange& row) {
  const auto name = [](const std::optional<Verdict>& v) { return v ? verdict_name(*v) : std::string("absent"); };
  return row.was == row.now ? name(row.now) : fmt::format("{} -> {}", name(row.was), name(row.now));
}

std::vector<std::string> baseline_lines(const GateResult& result) {
  std::vector<std::string> out{fmt::format("this report: {}", text_of_class(result.here))};
  for (const std::string& other : result.other_classes) out.push_back(fmt::format("baseline: {}", other));
  if (!result.compared) {
    out.emplace_back(
        "--update --reason TEXT adds an entry for this class; --across-classes compares with the nearest one");
    return out;
  }
  if (!result.date.empty()) out.push_back(fmt::format("baseline of {}: {}", result.date, result.reason));
  if (const auto differing = class_differences(result.there, result.here); !differing.empty())
    out.push_back(fmt::format("another machine class: {}", fmt::join(differing, "; ")));
  return out;
}

}  // namespace parity
