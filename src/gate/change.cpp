#include "gate/change.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/plain.hpp"
#include "gate/date.hpp"
#include "report/markup.hpp"

namespace parity {
namespace {

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

void check_request(const AcceptRequest& request, const std::string& today) {
  if (is_blank(request.reason)) throw Error("--accept needs --reason TEXT: why may this be worse?");
  if (request.until.empty()) throw Error("--accept needs --until DATE: the last day, such as 2026-12-31");
  if (!is_day(request.until))
    throw Error(fmt::format("--until '{}' is no day; write it as 2026-12-31", plain(request.until)));
  if (request.until < today) throw Error(fmt::format("--until {} has passed; today is {}", request.until, today));
}

bool is_called(const RowKey& key, const std::string& path) {
  const std::string name = name_of(key);
  return key.path == path || name == path || fmt::format("{} ({})", name, key.dtype) == path;
}

Acceptance acceptance_for(const RowChange& row, const AcceptRequest& request, const std::string& today) {
  Acceptance a{row.key, *row.now, {}, request.reason, today, request.until};
  for (const NumberChange& n : row.numbers)
    if (n.worse()) a.numbers[n.name] = n.now;
  return a;
}

}  // namespace

void update_baseline(Baseline& baseline, const Report& report, const std::string& reason, const std::string& today) {
  if (is_blank(reason)) throw Error("--update needs --reason TEXT: why is this the new baseline?");
  ClassBaseline entry = frozen(report, reason, today);
  if (ClassBaseline* before = find_class(baseline, entry.machine))
    *before = std::move(entry);
  else
    baseline.classes.push_back(std::move(entry));
}

std::vector<std::string> accept_worse(Baseline& baseline, const Report& report, const AcceptRequest& request,
                                      const std::string& today) {
  check_request(request, today);
  ClassBaseline* entry = find_class(baseline, machine_class(report));
  if (entry == nullptr)
    throw Error(fmt::format("the baseline has no entry for {}: nothing to loosen; freeze one with --update --reason",
                            plain(text_of_class(machine_class(report)))));
  ClassBaseline bare = *entry;
  bare.accepted.clear();
  bool known = false;
  std::vector<std::string> names;
  for (const RowChange& row : compare_with(bare, report, today).rows) {
    if (!is_called(row.key, request.path)) continue;
    known = true;
    if (row.change != Change::worse && row.change != Change::undecided) continue;
    std::erase_if(entry->accepted, [&](const Acceptance& a) { return a.key == row.key; });
    entry->accepted.push_back(acceptance_for(row, request, today));
    names.push_back(fmt::format("{} ({})", name_of(row.key), row.key.dtype));
  }
  if (!known) throw Error(fmt::format("--accept '{}' is the path of no row", plain(request.path)));
  if (names.empty())
    throw Error(fmt::format("--accept '{}': nothing to loosen, it is within what rounding explains of the baseline",
                            plain(request.path)));
  return names;
}

std::vector<std::string> tightening(const GateResult& result) {
  std::vector<std::string> out;
  for (const RowChange& row : result.rows) {
    if (row.change != Change::better) continue;
    std::string text = fmt::format("{} ({}):", name_of(row.key), row.key.dtype);
    if (row.was != row.now) text += fmt::format(" {} where it was {}", verdict_name(*row.now), verdict_name(*row.was));
    for (const NumberChange& n : row.numbers)
      if (n.better())
        text += fmt::format("{} {} {} where it was {}", text.ends_with(':') ? "" : ",", n.name, number(n.now),
                            number(n.was));
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace parity
