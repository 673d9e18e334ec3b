// recordings/NAME.md: everything about one recording. Statistics, plots, rows that are not green in full, all rows with
// their limits, what was not compared. Where that is more than GitHub shows, it goes on in NAME-2.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "report/causes.hpp"
#include "report/environment.hpp"
#include "report/limit_use.hpp"
#include "report/markdown_parts.hpp"
#include "report/markup.hpp"
#include "report/matrix.hpp"
#include "report/sink.hpp"
#include "report/summary.hpp"

namespace parity {
namespace {

constexpr size_t kLargestPage = 400'000;  // bytes; GitHub renders 512 kB

/// Lines that belong together; `before` and `after` are repeated where a page ends among them.
struct PageBlock {
  std::string before, after;
  std::vector<std::string> lines;
};

std::string measured_text(const OpResult& op) {
  if (!op.forced) return "not measured teacher-forced";
  const Stats& s = *op.forced;
  std::string out = fmt::format("rel L2 {}, max |d| {}, p99 |d| {}, bitwise equal {}, max ULP {}", number(s.rel_l2),
                                number(s.max_abs), number(s.p99_abs), share(s.bitwise_equal_share), number(s.max_ulp));
  if (op.oracle) out += fmt::format(", R {}, ρ {}", number(op.oracle->ratio), number(op.oracle->correlation));
  if (!s.worst_index.empty())
    out += fmt::format("; worst at [{}]: reference {:.9g}, candidate {:.9g}", fmt::join(s.worst_index, ", "),
                       s.worst_reference, s.worst_candidate);
  if (s.special_mismatch > 0)
    out += fmt::format("; {} elements differ in being finite ({} non-finite in the reference, {} in the candidate)",
                       s.special_mismatch, s.nan_reference, s.nan_candidate);
  return out;
}

std::string open_row(const OpResult& op) {
  std::string out = fmt::format("### {} {}, gate {}\n\n", verdict_mark(op.verdict), markdown_code(path_name(op)),
                                op.gate == Gate::none ? "none" : markdown(gate_name(op.gate)));
  if (!op.diagnosis.empty()) out += fmt::format("{}\n\n", markdown(op.diagnosis));
  out += fmt::format("- {}, {}, {}", markdown(op.kind), markdown(op.dtype), shape_text(op.shape));
  if (!op.candidate_path.empty() && op.candidate_path != op.path)
    out += fmt::format(", candidate {}", markdown_code(op.candidate_path));
  out += "\n";
  if (const std::string pairing = pairing_text(op); !pairing.empty())
    out += fmt::format("- {}; map rule {}\n", markdown(pairing), markdown_code(op.paired_by->rule));
  if (const std::string lines = source_text(op); !lines.empty()) out += fmt::format("- {}\n", markdown(lines));
  out += fmt::format("- measured: {}\n", markdown(measured_text(op)));
  for (const std::string& line : limit_lines(op)) out += fmt::format("- limit: {}\n", markdown(line));
  if (!op.rerun.empty()) out += fmt::format("- again: {}\n", markdown_code(op.rerun));
  return out + "\n";
}

PageBlock open_rows(const RecordingPage& page) {
  PageBlock out{"## Rows that are not green\n\n", "", {}};
  for (const OpResult* op : page.rows)
    if (op->verdict != Verdict::pass) out.lines.push_back(open_row(*op));
  return out;
}

std::string every_number(const OpResult& op) {
  const Stats none, &s = op.forced ? *op.forced : none;
  const OracleStats o = op.oracle.value_or(OracleStats{});
  return table_row({std::to_string(op.index), markdown_code(path_name(op)), markdown(op.kind), markdown(op.dtype),
                    verdict_mark(op.verdict), number(op.logic.rel_l2), number(s.rel_l2), number(s.normalized_max),
                    share(s.bitwise_equal_share), number(s.max_ulp), number(o.ratio), number(o.correlation),
                    number(op.free ? op.free->rel_l2 : std::nullopt), number(op.predicted_free),
                    number(op.amplification), number(share_of_limits(op)), markdown(limits_text(op))});
}

PageBlock all_rows(const RecordingPage& page) {
  PageBlock out;
  out.before = fmt::format("## All {} comparisons, in execution order\n\n", page.rows.size());
  out.before += table_row({"#", "op", "kind", "dtype", "verdict", "fp64 logic", "rel L2", "max / mean", "equal", "ULP",
                           "R", "ρ", "free rel L2", "predicted", "amplification", "of limit", "limits"});
  out.before += table_row({"--:", "---", "---", "---", "---",
                           "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "---"});
  for (const OpResult* op : page.rows) out.lines.push_back(every_number(*op));
  out.after =
      "\n*max / mean*: largest difference over the reference's mean magnitude. *R*, *ρ*: the candidate's error over "
      "the "
      "reference's, both against fp64, and how alike the two are. *Predicted*: the free-running error that inputs and "
      "own error explain. *Of limit*: the largest share of a limit that is used.\n\n";
  return out;
}

PageBlock origins(const RecordingPage& page) {
  std::map<std::pair<std::string, std::string>, int64_t> counted;
  for (const OpResult* op : page.rows)
    for (const Limit& limit : op->limits) ++counted[{limit.statistic, limit.origin}];
  PageBlock out{"## Where the limits come from\n\n", "\n", {}};
  for (const auto& [key, count] : counted)
    out.lines.push_back(fmt::format("- {}, {} rows: {}\n", markdown(key.first), count, markdown(key.second)));
  return out;
}

PageBlock list(const char* what, const std::vector<std::string>& paths) {
  PageBlock out{fmt::format("<details>\n<summary>{} {}</summary>\n\n", paths.size(), what), "\n</details>\n\n", {}};
  for (const std::string& path : paths) out.lines.push_back(fmt::format("- {}\n", markdown_code(path)));
  return out;
}

std::string top(const Report& report, const RecordingPage& page, const Plots& drawn) {
  std::map<Verdict, int64_t> verdicts;
  for (const OpResult* op : page.rows) ++verdicts[op->verdict];
  std::string out = fmt::format("# {}\n\n{} **{}** · [the whole report](../report.md)\n\n", markdown(page.name),
                                verdict_sign(worst(verdicts)), verdicts_text(verdicts));
  out += provenance_line("reference", side_of_recording(report, page.name));
  if (const Coverage* c = coverage_of_recording(report, page.reference)) {
    out += fmt::format("- Coverage: {}\n", markdown(coverage_line(*c)));
    if (!c->granularity.empty()) out += fmt::format("- Granularity: {}\n", markdown(c->granularity));
  }
  for (const Growth& g : error_growth(report))
    if (g.reference == page.reference) out += fmt::format("- {}\n", markdown(growth_line(g)));
  out += "\n## Statistics\n\n" + markdown_kinds(page.rows);
  for (const Plot& plot : drawn.drawn)
    if (plot.reference == page.reference)
      out += fmt::format("![Error of every op in execution order, {}](../{})\n\n", markdown(plot.title), plot.file);
  return out;
}

std::vector<PageBlock> blocks_of(const Report& report, const RecordingPage& page) {
  std::vector<PageBlock> out{open_rows(page), all_rows(page), origins(page)};
  const Coverage* c = coverage_of_recording(report, page.reference);
  if (c == nullptr) return out;
  out.push_back(list("points of the reference without counterpart", c->uncovered_paths));
  out.push_back(list("tensors of the candidate alone", c->unmatched_candidates));
  out.push_back(list("compared values that show little", c->not_exercised));
  out.push_back(list("values that no output uses", c->unused_paths));
  PageBlock stretches{"## Named changes that were not all run\n\n", "\n", {}};
  for (const VariantCoverage& v : c->variants)
    stretches.lines.push_back(fmt::format("- {}\n", markdown(variants_line(v))));
  out.push_back(std::move(stretches));
  return out;
}

std::vector<std::string> packed(std::string first, const std::vector<PageBlock>& blocks, const std::string& name) {
  std::vector<std::string> pages{std::move(first)};
  for (const PageBlock& block : blocks) {
    if (block.lines.empty()) continue;
    pages.back() += block.before;
    for (const std::string& line : block.lines) {
      if (pages.back().size() + line.size() + block.after.size() > kLargestPage) {
        pages.back() += block.after;
        pages.push_back(fmt::format("# {}, part {}\n\n", markdown(name), pages.size() + 1) + block.before);
      }
      pages.back() += line;
    }
    pages.back() += block.after;
  }
  return pages;
}

}  // namespace

void write_recording(const Report& report, const RecordingPage& page, const Plots& drawn,
                     const std::filesystem::path& folder) {
  const std::vector<std::string> parts = packed(top(report, page, drawn), blocks_of(report, page), page.name);
  const std::string stem = page.file.substr(0, page.file.size() - 3);
  const std::string name = stem.substr(stem.rfind('/') + 1);
  const auto file = [](const std::string& base, size_t part) {
    return part == 0 ? base + ".md" : fmt::format("{}-{}.md", base, part + 1);
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string text = parts[i];
    if (i > 0) text += fmt::format("[Part {}]({}) ", i, file(name, i - 1));
    if (i + 1 < parts.size()) text += fmt::format("[Part {}]({})", i + 2, file(name, i + 1));
    write_file(folder / file(stem, i), text + (parts.size() > 1 ? "\n" : ""));
  }
}

}  // namespace parity
