// A report in few lines: what the console and the Markdown report say first. Counts and extremes of what was measured,
// no new numbers.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "report/growth.hpp"

namespace parity {

/// Rows of one kind in one dtype run.
struct KindRow {
  std::string dtype, kind;
  int64_t count = 0;
  std::map<Verdict, int64_t> verdicts;
  std::optional<double> worst_logic, worst_rel_l2, min_equal_share, max_ulp,
      worst_free;  // over the rows that have the number
};

/// By dtype in order of appearance, kinds by name.
std::vector<KindRow> by_kind(const Report& report);
std::vector<KindRow> by_kind(const std::vector<const OpResult*>& rows);

/// "pass 12", "fail 1, pass 11": worst first.
std::string verdicts_text(const std::map<Verdict, int64_t>& verdicts);

/// The first of kWorstFirst that occurs.
Verdict worst(const std::map<Verdict, int64_t>& verdicts);

/// fail or shape; these are shown in full.
std::vector<const OpResult*> failures(const Report& report);
/// Neither pass nor failure.
std::vector<const OpResult*> undecided(const Report& report);

/// "FAIL: 1 of 412 comparisons fails."
std::string headline(const Report& report);
/// The first divergence in a sentence, "" when there is none.
std::string divergence_sentence(const Report& report);
/// All six verdicts with their counts.
std::string totals_text(const Report& report);
/// One sentence for each reference.
std::vector<std::string> coverage_lines(const Report& report);
/// A recording that was compared with, and whose code it ran ("diffusers' code").
struct ReferenceRow {
  std::string name, model, code;
};
std::vector<ReferenceRow> reference_rows(const Report& report);
/// How the error grows, what the references are, what the fp64 gate shows, how far a verdict reaches (the candidate's
/// granularity), and how many named changes were tried against chance.
std::vector<std::string> method_lines(const Report& report);

/// The parts of those lines, for reports that say them elsewhere or shorter.
std::string coverage_line(const Coverage& coverage);
std::string variants_line(const VariantCoverage& variants);
std::string growth_line(const Growth& growth);
std::string power_line(const Report& report);  // "" without limits on the size of an error
std::string wrapper_line(
    const Report& report);  // what fp64 logic shows where both sides run ATen's kernels; "" elsewhere

/// fail or shape.
inline bool is_failure(const OpResult& op) { return op.verdict == Verdict::fail || op.verdict == Verdict::shape; }

/// "blocks.0.attn2", with its call where that tells rows apart.
std::string path_name(const OpResult& op);
/// That with the reference, where there are several.
std::string row_name(const OpResult& op);
/// "bitwise_equal_share 0.83 (must be >= 0.999; origin)" for each limit that `forced` was held against, the logic
/// gate's included.
std::vector<std::string> limit_lines(const OpResult& op);

/// The highest dtype-independent order in which verdicts are listed: failures first.
inline constexpr std::array kWorstFirst{Verdict::shape,        Verdict::fail,      Verdict::missing,
                                        Verdict::inconclusive, Verdict::untrusted, Verdict::pass};

}  // namespace parity
