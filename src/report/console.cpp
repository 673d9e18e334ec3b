// What a person at a terminal sees, in a screen: verdict, what was compared on which machines, causes, recordings.
#include <fmt/format.h>

#include <algorithm>

#include "report/causes.hpp"
#include "report/condensed.hpp"
#include "report/discriminator.hpp"
#include "report/environment.hpp"
#include "report/limit_use.hpp"
#include "report/logits.hpp"
#include "report/markup.hpp"
#include "report/matrix.hpp"
#include "report/next.hpp"
#include "report/since_baseline.hpp"
#include "report/sink.hpp"
#include "report/summary.hpp"
#include "report/video.hpp"
#include "report/whole_program.hpp"

namespace parity {
namespace {

// A screen: the files hold everything.
constexpr size_t kShownCauses = 8, kShownRows = 4, kShownCells = 30, kShownKinds = 16, kShownWarnings = 4,
                 kLongestSentence = 400;

class Paint {
 public:
  explicit Paint(bool colour) : colour_(colour) {}
  std::string bold(const std::string& text) const { return wrap("1", text); }
  std::string dim(const std::string& text) const { return wrap("2", text); }
  std::string verdict(Verdict v, const std::string& text) const {
    return wrap(v == Verdict::pass ? "32" : v == Verdict::fail || v == Verdict::shape ? "1;31" : "33", text);
  }

 private:
  std::string wrap(const char* code, const std::string& text) const {
    return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }
  bool colour_;
};

std::string sides_text(const Report& report, const Paint& paint) {
  if (report.ops.empty()) return "";
  const Environment machines = environment(report);
  std::string out;
  const std::string what[] = {reference_text(report), candidate_text(report), ""};
  for (size_t i = 0; i < machines.columns.size(); ++i) {
    std::string line = i < 2 ? what[i] : "";
    if (const std::string machine = machine_text(machines, i); !machine.empty())
      line += fmt::format("{}{}", line.empty() ? "" : "; ", machine);
    if (!line.empty())
      out += fmt::format("{}  {}\n", pad_right(i < 2 ? (i == 0 ? "reference" : "candidate") : "judged on", 9),
                         plain(line));
  }
  if (const std::string differs = differing_text(machines); !differs.empty())
    out += paint.verdict(Verdict::inconclusive, fmt::format("differs    {}", plain(differs))) + "\n";
  return "\n" + out + "\n";
}

std::string rows_of_cause(const Cause& cause) {
  std::string out;
  for (size_t i = 0; i < std::min(cause.rows.size(), kShownRows); ++i)
    out += (i == 0 ? "" : ", ") + plain(row_name(*cause.rows[i]));
  return cause.rows.size() > kShownRows ? fmt::format("{} and {} more", out, cause.rows.size() - kShownRows) : out;
}

std::string after_comma(const std::string& text) { return text.empty() ? "" : ", " + text; }

std::string cause_text(const Cause& cause, const Paint& paint) {
  const OpResult& first = *cause.rows.front();
  std::string out = fmt::format("{}  {}\n", paint.verdict(cause.verdict, verdict_name(cause.verdict)),
                                paint.bold(plain(cause_title(cause))));
  out += fmt::format("      {}\n", rows_of_cause(cause));
  if (!first.candidate_path.empty() && first.candidate_path != first.path)
    out += fmt::format("      candidate {}{}\n", plain(first.candidate_path), plain(after_comma(pairing_text(first))));
  if (!first.diagnosis.empty())
    out += fmt::format("      {}\n", plain(shortened_text(first.diagnosis, kLongestSentence)));
  if (const std::string lines = source_text(first); !lines.empty()) out += fmt::format("      {}\n", plain(lines));
  for (const std::string& line : broken_limit_lines(first)) out += fmt::format("      {}\n", plain(line));
  return out;
}

std::string causes_text(const Report& report, const Paint& paint) {
  const std::vector<Cause> all = causes(report);
  std::string out;
  for (size_t i = 0; i < std::min(all.size(), kShownCauses); ++i) out += cause_text(all[i], paint);
  if (all.size() > kShownCauses)
    out += fmt::format("… and {} more causes: the report files list them all\n", all.size() - kShownCauses);
  if (const auto common = discriminate(report)) out += fmt::format("In common: {}\n", plain(common->sentence()));
  return out.empty() ? out : out + "\n";
}

std::string cells_text(const Report& report, const Paint& paint) {
  std::vector<Cell> cells = matrix(report);
  if (cells.size() > kShownCells) cells = matrix_by_recording(report);
  // Those that are not green first, when not all can be shown.
  if (cells.size() > kShownCells)
    std::stable_partition(cells.begin(), cells.end(), [](const Cell& c) { return worst(c.verdicts) != Verdict::pass; });
  size_t name = 9, dtype = 5;
  for (const Cell& c : cells) name = std::max(name, plain(c.recording).size()), dtype = std::max(dtype, c.dtype.size());
  std::string out = paint.bold(fmt::format("{}  {}   ops  bitwise equal  output, free rel L2  verdict",
                                           pad_right("recording", name), pad_right("dtype", dtype))) +
                    "\n";
  for (size_t i = 0; i < std::min(cells.size(), kShownCells); ++i) {
    const Cell& c = cells[i];
    std::string line = fmt::format("{}  {} {} {} {}  ", pad_right(plain(c.recording), name),
                                   pad_right(plain(c.dtype), dtype), pad_left(std::to_string(c.count), 5),
                                   pad_left(share(c.equal_share), 14), pad_left(number(c.free_output), 19));
    line += paint.verdict(worst(c.verdicts), verdicts_text(c.verdicts));
    if (c.worst != nullptr && c.of_limit.value_or(0) > 0)
      line += fmt::format("; worst {}: {}", plain(path_name(*c.worst)), of_limit_text(c));
    out += line + "\n";
  }
  if (cells.size() > kShownCells) out += fmt::format("… and {} more recordings\n", cells.size() - kShownCells);
  return out + "\n";
}

std::string kind_table(const Report& report, const Paint& paint) {
  const auto rows = by_kind(report);
  if (rows.size() > kShownKinds) return "";  // in report.md
  size_t width = 4;
  for (const KindRow& row : rows) width = std::max(width, plain(row.kind).size());
  std::string out =
      paint.bold(fmt::format("{}  dtype   ops  fp64 logic  rel L2     equal     max ULP    free rel L2  verdict",
                             pad_right("kind", width))) +
      "\n";
  for (const KindRow& row : rows) {
    out += fmt::format("{}  {} {}  {}  {}  {} {}  {}  {}\n", pad_right(plain(row.kind), width),
                       pad_right(plain(row.dtype), 6), pad_left(std::to_string(row.count), 4),
                       pad_right(number(row.worst_logic), 10), pad_right(number(row.worst_rel_l2), 9),
                       pad_left(share(row.min_equal_share), 9), pad_left(number(row.max_ulp), 9),
                       pad_left(number(row.worst_free), 12),
                       paint.verdict(worst(row.verdicts), verdicts_text(row.verdicts)));
  }
  return out + "\n";
}

std::string attached_text(const Report& report, const Paint& paint, bool colour) {
  std::string out;
  if (report.video) out += paint.bold("Video") + "\n" + video_console(*report.video, colour) + "\n";
  if (!report.since_baseline) return out;
  const std::vector<std::string> lines = since_baseline_lines(*report.since_baseline);
  for (size_t i = 0; i < lines.size(); ++i)
    out += (i == 0 ? paint.verdict(report.since_baseline->verdict, plain(lines[i])) : plain(lines[i])) + "\n";
  return out + "\n";
}

std::string notes_text(const Report& report, const Paint& paint) {
  std::string out;
  if (report.whole)
    for (const std::string& line : whole_program_lines(*report.whole)) out += fmt::format("{}\n", plain(line));
  for (const std::string& line : logit_lines(report)) out += fmt::format("{}\n", plain(line));
  for (const std::string& line : condensed_lines(report)) out += fmt::format("{}\n", plain(line));
  const std::vector<std::string> warnings = condensed_warnings(report);
  for (size_t i = 0; i < std::min(warnings.size(), kShownWarnings); ++i)
    out += paint.verdict(Verdict::inconclusive, "warning: ") + plain(warnings[i]) + "\n";
  if (warnings.size() > kShownWarnings)
    out += fmt::format("… and {} more warnings: the report files list them all\n", warnings.size() - kShownWarnings);
  for (const NextStep& step : next_steps(report))
    out += fmt::format("next: {}\n      {}\n", paint.bold(plain(step.command)), plain(step.why));
  return out;
}

}  // namespace

std::string console_summary(const Report& report, bool colour) {
  const Paint paint(colour);
  std::string out = paint.verdict(overall(report), headline(report)) + "\n";
  if (const std::string first = divergence_sentence(report); !first.empty()) out += plain(first) + "\n";
  out += sides_text(report, paint) + causes_text(report, paint);
  if (!report.ops.empty()) out += cells_text(report, paint) + kind_table(report, paint);
  return out + attached_text(report, paint, colour) + notes_text(report, paint) + totals_text(report) + "\n";
}

}  // namespace parity
