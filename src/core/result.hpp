// What was found out about one boundary, and about a whole run: the nouns of parity-report/1. Filled by measuring and
// judging, read by the report sinks.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/logits.hpp"
#include "core/stats.hpp"

namespace parity {

enum class Verdict { pass, fail, inconclusive, missing, shape, untrusted };
enum class Gate { none, structure, logic, dtype_path, propagation };

std::string verdict_name(Verdict verdict);
std::string gate_name(Gate gate);  // "" for none

/// fp64, teacher-forced: is the port's logic right?
struct Logic {
  std::optional<double> rel_l2, limit;
  std::optional<Verdict> verdict;  // absent: not measured
};

/// Where a limit came from, printed with it.
struct Limit {
  std::string statistic;  // "bitwise_equal_share", "rel_l2", …
  double value = 0;       // the limit
  bool at_least = false;  // true: the statistic must be >= value, else <= value
  std::string origin;     // "table: elementwise ops are bitwise equal", "null: replay on this CPU, 3 runs, max 2.1e-3"
  std::optional<double>
      measured{};  // what was held against it, where that is not the statistic of this name in `forced`
};

/// A named change of a program.
struct NamedChange {
  std::string fault;  // the vocabulary of diagnoses: "norm eps", "GELU form", "extra rounding", …
  std::string what;   // "eps 1e-06 -> 1e-05"
  std::string place;  // "blocks.0.norm1/native_layer_norm.0 call 3 and 2 more places"; empty: the row's own

  /// "eps 1e-06 -> 1e-05 at blocks.0.norm1/native_layer_norm.0".
  std::string detail() const;
};

/// Of two that hold one, in whatever they hold beside it.
inline bool same_change(const NamedChange& a, const NamedChange& b) {
  return a.fault == b.fault && a.what == b.what && a.place == b.place;
}

/// A named change of the reference's program that the difference was projected on.
struct Explanation {
  NamedChange change;
  Gate gate = Gate::logic;
  double amplitude = 0, z = 0;  // 1 when the difference is that change and noise; significance
  double explained = 0;         // share of the squared difference
  double rest = 1;              // squared distance from this change, over that from the nearest valid arithmetic
  double null_amplitude = 0;    // largest amplitude of a valid arithmetic in the same direction
  double detectable = 0;        // the smallest amplitude that would have been significant
};

/// One element of a pair of tensors.
struct Element {
  std::vector<int64_t> index;  // empty for a scalar
  double reference = 0, candidate = 0;
};

/// How the differences d = candidate - reference of one pair are spread: counts[i] elements with
/// 2^(lowest + i) <= |d| / rms(reference) < 2^(lowest + i + 1); without elements of other finiteness.
struct Histogram {
  int64_t equal = 0;  // elements with d = 0
  int lowest = 0;
  std::vector<int64_t> counts;
};

/// Why a candidate tensor stands for a reference value.
struct PairedBy {
  std::string witnesses;   // "path", "map line 3", "content 0.9998, order, name 0.75"
  double confidence = 1;   // about the probability that it is right; 1: both sides, or a map, say so
  std::string rule;        // as a map file says it: "h.0.attn = kqv_out-0 view(24,4,16) perm(1,0,2)"
  std::string steps = {};  // the rule's last part: "view(24,4,16) perm(1,0,2)"
  int call = 0;            // the candidate's
};

struct OpResult {
  int64_t index = 0;      // in the reference's execution order
  std::string reference;  // short name of the reference dump ("" when there is only one)
  std::string path, candidate_path;
  std::optional<PairedBy> paired_by;
  int call = 0;
  std::string kind;   // op kind in the field's words: "linear", "layer_norm", "attention", "rope", "modulation", …
  std::string dtype;  // "bf16", "fp32", "fp64": the run this row belongs to
  std::string tensor_dtype;  // of the reference's tensor in that run: "fp32" inside a bf16 run, say
  std::vector<int64_t> shape;
  Verdict verdict = Verdict::missing;  // until something proves otherwise
  Gate gate = Gate::none;              // the first gate that failed
  std::string diagnosis;
  Logic logic;
  std::optional<Stats> forced, free;
  std::optional<OracleStats> oracle;  // R and rho of the forced comparison
  std::optional<OracleStats>
      free_oracle;  // candidate_error: the free value against the op in fp64 on the candidate's own values before it;
                    // reference_error: the largest of the reference's program run free in other arithmetic
  std::vector<Limit> limits;            // those that were applied; a row without one is never pass
  std::optional<double> amplification;  // output's over inputs' relative perturbation, the largest of several draws
  std::optional<double>
      predicted_free;  // rel_l2 expected from the inputs' free error, the amplification and both sides' own rounding
  std::optional<double> blame;
  std::string not_exercised;              // why agreement here shows little ("constant", …); listed under coverage
  std::vector<Explanation> explanations;  // the best ones first
  std::vector<Element> worst;            // of a row that is not green: the elements with the largest |d|, largest first
  std::optional<Histogram> histogram;    // of the forced comparison; of the free one where there is no other
  std::string source, candidate_source;  // "modeling_llama.py:312 in forward", of each side's code; "" if not recorded
  std::string rerun;                     // command line that computes this row again
  std::string read_as;                   // verdict shape: the steps of a map rule that would fit, "perm(0,2,1)"; or ""
  std::optional<std::string> declared;   // pass: the rule (--accept-path) by which it does, not by its limits
  std::string declarable;  // fail: what a rule would declare it by, where an honest port may show it; or ""
};

/// A row about a whole recording, not an op: what was compared may be right, and something else is not to be trusted.
OpResult untrusted_row(std::string path, std::string kind, std::string why);
/// That of a reference whose recording was interrupted: what it does not hold was compared with nothing.
OpResult interrupted_reference();

/// How the named changes of a stretch of program were tried that is too long to run each of them.
struct VariantCoverage {
  std::string from, to;                         // compared values, or "the inputs"
  int64_t named = 0;                            // changes in the catalogue
  int64_t estimated = 0, run = 0, untried = 0;  // put against the difference to first order; run; neither
  std::string why;                              // they were not tried
};

struct Coverage {
  int64_t paired = 0, covered = 0,
          uncovered = 0;  // ops of the reference: compared; inside a later compared one; neither
  int64_t unused = 0;     // no output of the model is computed from them: nothing to get wrong
  std::vector<std::string> uncovered_paths, unused_paths, unmatched_candidates, opaque;
  std::vector<std::string> not_exercised;  // compared and equal, but constant, zero or empty: "path (why)"
  std::string granularity;                // how far a verdict reaches, in words; "" when every compared point is one op
  int64_t directions = 0;                 // named changes that differences were projected on, over all rows
  double sigma = 0, false_alarms = 0;     // asked of each of them, so that the whole run has so many false alarms
  std::vector<VariantCoverage> variants;  // stretches whose named changes were not all run
};

struct Side {  // reference or candidate
  std::string path, sha256, model, producer;
  nlohmann::json details = nlohmann::json::object();
  bool weights = false;  // does the recording hold the model's parameters? A set of tensors may be anything
};

/// Cast placements tried at one place, and how well each reproduces a side bit by bit.
struct CastPlacement {
  std::string name;  // "as recorded", "extra rounding: …"
  double bitwise_equal_share = 0, rel_l2 = 0;
};
struct DtypePath {
  std::string path, side, sentence;       // side: "reference" or "candidate"
  std::vector<CastPlacement> candidates;  // the best first
};

/// One op of the recorded program kept in higher precision, besides those of the steps before it.
struct PrecisionStep {
  std::string path, kind, source;
  double share = 0;                // of the squared error of the result that its rounding accounts for
  double amplification = 0;        // of its own relative error on the way to the result
  double predicted = 0;            // relative L2 of the result against fp64 without the roundings so far
  std::optional<double> replayed;  // the same, computed
};

/// The program as a whole, when every op is right and the result still lies further off than was asked.
struct WholeProgram {
  double asked = 0;        // largest relative L2 of the free-running result
  double error = 0;        // what it is
  double valid_error = 0;  // the furthest that the reference's own program lies from its result in other valid
                           // arithmetics, free-running
  double precision = 0;    // the recorded program's result against the same program in fp64
  double explained = 0;    // share of that, squared, that single roundings explain
  int64_t roundings = 0;   // ops that round
  std::vector<PrecisionStep> steps;
};

/// What changed since a baseline was frozen (src/gate); shown in every report file, and no part of the verdict: that is
/// for `gate` to give.
struct BaselineChange {
  std::string change, path, kind, dtype;  // change: "worse", "better", …; path: the row's name, with recording and call
  std::string was, now;                   // verdicts; "" where the row is not there
  std::string number, note;               // "rel_l2 0.0024, was 0.0011 (…)"; the diagnosis, what is missing
};
struct SinceBaseline {
  std::string file, headline, totals;
  Verdict verdict = Verdict::inconclusive;  // pass: nothing worse; inconclusive: not everything decided
  std::vector<std::string> about, notes;    // which baseline, of which machine class; what else is to be known
  std::vector<BaselineChange> rows;         // the most serious first, those without a change left out
};

struct VideoReport;  // report/video.hpp

struct Report {
  std::string command, date;
  double seconds = 0;
  nlohmann::json machine;
  Side reference, candidate;
  std::vector<OpResult> ops;
  std::map<std::string, Coverage> coverage;  // by reference name
  std::vector<std::string> warnings;
  std::vector<DtypePath> dtype_paths;
  std::vector<LogitPair> logits;
  std::optional<WholeProgram> whole;
  std::shared_ptr<const VideoReport> video;  // two clips of the same run; null: none
  std::vector<Verdict> video_checks;         // what was asked of them; each counts like a row
  std::optional<SinceBaseline> since_baseline;
  std::string repro_file, repro_test;  // the first divergence alone: extract beside the report, C++ test of it
};

/// Counts of every verdict, all keys present; of rows and of what was asked of the clips.
std::map<std::string, int64_t> count_verdicts(const Report& report);
/// fail if any fail or shape; else inconclusive if any of the rest; else pass. A report without ops is inconclusive.
Verdict overall(const Report& report);
/// 0 pass, 1 fail, 3 inconclusive (design: exit status); the worst of ops and clips.
int exit_status(const Report& report);
/// The first op in the reference's execution order whose own gate (structure, logic, dtype_path) fails; null when there
/// is none. Rows that fail only by propagation never count.
const OpResult* first_divergence(const Report& report);

}  // namespace parity
