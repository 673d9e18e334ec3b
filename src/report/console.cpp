// What a person at a terminal sees: verdict, failures in full, everything else per kind.
#include <fmt/format.h>

#include "report/markup.hpp"
#include "report/sink.hpp"
#include "report/summary.hpp"

namespace parity {
namespace {

constexpr size_t kShownFailures = 20, kShownUndecided = 10;  // a screen or two; the files hold them all

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

std::string kind_table(const Report& report, const Paint& paint) {
  const auto rows = by_kind(report);
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
  return out;
}

std::string failure_text(const OpResult& op, const Paint& paint) {
  std::string out = fmt::format("{}  {}\n", paint.verdict(op.verdict, pad_right(verdict_name(op.verdict), 5)),
                                paint.bold(plain(row_name(op))));
  out += fmt::format("       {} {} {}, gate {}", plain(op.kind), plain(op.dtype), shape_text(op.shape),
                     op.gate == Gate::none ? "none" : gate_name(op.gate));
  if (!op.candidate_path.empty() && op.candidate_path != op.path)
    out += fmt::format(", candidate {}", plain(op.candidate_path));
  out += "\n";
  if (!op.diagnosis.empty()) out += fmt::format("       {}\n", plain(op.diagnosis));
  for (const std::string& line : limit_lines(op)) out += fmt::format("       {}\n", plain(line));
  if (!op.rerun.empty()) out += paint.dim(fmt::format("       again: {}", plain(op.rerun))) + "\n";
  return out;
}

std::string failures_text(const Report& report, const Paint& paint) {
  const auto bad = failures(report);
  std::string out;
  for (size_t i = 0; i < std::min(bad.size(), kShownFailures); ++i) out += failure_text(*bad[i], paint);
  if (bad.size() > kShownFailures)
    out += fmt::format("… and {} more failures: the report files list them all\n", bad.size() - kShownFailures);
  if (!out.empty()) out += "\n";
  return out;
}

std::string undecided_text(const Report& report, const Paint& paint) {
  const auto open = undecided(report);
  std::string out;
  for (size_t i = 0; i < std::min(open.size(), kShownUndecided); ++i)
    out +=
        fmt::format("{}  {} ({} {}): {}\n", paint.verdict(open[i]->verdict, verdict_name(open[i]->verdict)),
                    plain(row_name(*open[i])), plain(open[i]->kind), plain(open[i]->dtype), plain(open[i]->diagnosis));
  if (open.size() > kShownUndecided)
    out += fmt::format("… and {} more undecided: the report files list them all\n", open.size() - kShownUndecided);
  if (!out.empty()) out += "\n";
  return out;
}

}  // namespace

std::string console_summary(const Report& report, bool colour) {
  const Paint paint(colour);
  std::string out = paint.verdict(overall(report), headline(report)) + "\n";
  if (const std::string first = divergence_sentence(report); !first.empty()) out += plain(first) + "\n";
  out += "\n";
  out += failures_text(report, paint);
  out += undecided_text(report, paint);
  if (!report.ops.empty()) out += kind_table(report, paint) + "\n";
  for (const std::string& line : coverage_lines(report)) out += fmt::format("{}\n", plain(line));
  for (const std::string& line : method_lines(report)) out += fmt::format("{}\n", plain(line));
  for (const std::string& warning : report.warnings)
    out += paint.verdict(Verdict::inconclusive, "warning: ") + plain(warning) + "\n";
  return out + totals_text(report) + "\n";
}

}  // namespace parity
