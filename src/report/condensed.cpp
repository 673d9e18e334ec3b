#include "report/condensed.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "report/summary.hpp"

namespace parity {
namespace {

Coverage summed(const Report& report) {
  Coverage sum;
  for (const auto& [name, c] : report.coverage) {
    sum.paired += c.paired, sum.covered += c.covered, sum.uncovered += c.uncovered, sum.unused += c.unused;
    const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(sum.unmatched_candidates, c.unmatched_candidates);
    append(sum.not_exercised, c.not_exercised);
    for (const std::string& op : c.opaque)
      if (std::find(sum.opaque.begin(), sum.opaque.end(), op) == sum.opaque.end()) sum.opaque.push_back(op);
    sum.directions += c.directions;
    sum.sigma = std::max(sum.sigma, c.sigma);
    sum.false_alarms += c.false_alarms;
    sum.variants.insert(sum.variants.end(), c.variants.begin(), c.variants.end());
  }
  return sum;
}

std::string variants_together(const std::vector<VariantCoverage>& all) {
  if (all.empty()) return "";
  if (all.size() == 1) return variants_line(all.front());
  int64_t named = 0, estimated = 0, run = 0, untried = 0;
  std::set<std::string> why;
  for (const VariantCoverage& v : all) {
    named += v.named, estimated += v.estimated, run += v.run, untried += v.untried;
    if (v.untried > 0) why.insert(v.why);
  }
  std::string line = fmt::format("Named changes in {} long stretches: {} known", all.size(), named);
  if (estimated > 0) line += fmt::format(", {} put against the difference to first order", estimated);
  line += fmt::format(", {} run", run);
  return untried > 0 ? line + fmt::format("; {} not tried: {}", untried, fmt::join(why, ", ")) : line;
}

std::string growth_together(const std::vector<Growth>& all) {
  if (all.empty()) return "";
  if (all.size() == 1) return growth_line(all.front());
  const auto [low, high] = std::minmax_element(
      all.begin(), all.end(), [](const Growth& a, const Growth& b) { return a.exponent < b.exponent; });
  return fmt::format(
      "Free-running error grows as depth^p, p {:.2f} to {:.2f} over {} runs (independent roundings .5, a bias 1); most "
      "in {} of {}",
      low->exponent, high->exponent, all.size(), high->dtype, high->reference.empty() ? "it" : high->reference);
}

std::string granularity_together(const Report& report) {
  std::vector<std::string> lines;
  for (const auto& [name, c] : report.coverage)
    if (!c.granularity.empty()) lines.push_back(c.granularity);
  if (lines.empty()) return "";
  return "Granularity: " + (lines.size() == 1
                                ? lines.front()
                                : fmt::format("in {} recordings a verdict covers several ops; their files "
                                              "say how many",
                                              lines.size()));
}

}  // namespace

std::vector<std::string> condensed_lines(const Report& report) {
  const Coverage sum = summed(report);
  std::vector<std::string> out;
  const auto add = [&](std::string line) {
    if (!line.empty()) out.push_back(std::move(line));
  };
  if (!report.coverage.empty()) add("Coverage: " + coverage_line(sum));
  add(granularity_together(report));
  add(wrapper_line(report));
  add(growth_together(error_growth(report)));
  add(variants_together(sum.variants));
  if (sum.directions > 0)
    add(fmt::format(
        "{} named changes projected on, each believed from {:.1f} sigma on: {:g} false alarms expected in the whole "
        "run (Sidak)",
        sum.directions, sum.sigma, sum.false_alarms));
  add(power_line(report));
  return out;
}

std::vector<std::string> condensed_warnings(const Report& report) {
  struct Group {
    std::string text, recording;
    int64_t count = 0;
  };
  std::vector<Group> groups;
  for (const std::string& warning : report.warnings) {
    Group g{warning, "", 1};
    for (const auto& [name, c] : report.coverage)
      if (!name.empty() && warning.starts_with(name + ": ")) g = {warning.substr(name.size() + 2), name, 1};
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const Group& other) { return other.text == g.text; });
    if (found == groups.end())
      groups.push_back(std::move(g));
    else
      ++found->count;
  }
  std::vector<std::string> out;
  for (const Group& g : groups) {
    std::string where = g.recording;
    if (g.count > 1)
      where += where.empty() ? fmt::format("{} times", g.count) : fmt::format(" and {} more", g.count - 1);
    out.push_back(where.empty() ? g.text : fmt::format("{}: {}", where, g.text));
  }
  return out;
}

std::string occurring_text(const Report& report) {
  std::vector<std::string> parts;
  const auto counts = count_verdicts(report);
  for (auto v = kWorstFirst.rbegin(); v != kWorstFirst.rend(); ++v)
    if (const int64_t n = counts.at(verdict_name(*v)); n > 0)
      parts.push_back(fmt::format("{} {}", verdict_name(*v), n));
  return fmt::format("{}", fmt::join(parts, " · "));
}

}  // namespace parity
