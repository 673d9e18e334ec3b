// One rule, one function: it looks at the report and adds a step or none. kRules is their order.
#include "report/next.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "core/shell.hpp"
#include "report/matrix.hpp"
#include "report/summary.hpp"

namespace parity {
namespace {

constexpr size_t kSteps = 3;
constexpr double kMuchUnpaired = .1;               // of the points that no compared one covers
constexpr double kRounding[] = {0x1p-8, 0x1p-24};  // bf16 and narrower; fp32: an output further off asks for a reason

using Steps = std::vector<NextStep>;

// A port that was watched left none.
bool two_files(const Report& report) {
  const std::string& candidate = report.candidate.path;
  return !candidate.empty() && !candidate.starts_with("parity://") && !report.reference.path.empty();
}

std::string pair_command(const Report& report, const char* what) {
  return fmt::format("parity-check {} {} {}{}", what, shell_word(report.reference.path),
                     shell_word(report.candidate.path),
                     options_in(report.command, {"--map", "--thresholds", "--accept-path"}));
}

bool holds_program(const Report& report) {  // rows replayed on the candidate's values carry an oracle's numbers
  return std::any_of(report.ops.begin(), report.ops.end(), [](const OpResult& op) { return op.oracle.has_value(); });
}

void first_alone(const Report& report, Steps& steps) {
  const OpResult* op = first_divergence(report);
  if (op != nullptr && !op->rerun.empty())
    steps.push_back({op->rerun, fmt::format("the first divergence alone: {}", row_name(*op))});
}

std::string last_of(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// The steps that a row's shape asks for, as a rule has them; rows of one shape after `reshape` need a rule without.
std::string steps_of(const OpResult& op) { return op.read_as.starts_with("reshape") ? "" : " " + op.read_as; }

bool needs(const OpResult& op, const std::string& steps) {
  return op.verdict == Verdict::shape && !op.read_as.empty() && op.path == op.candidate_path && steps_of(op) == steps;
}

/// A rule for all names, where most rows need it; else for each last word of the rows that do ("*.group_norm"), if only
/// these have it. Empty: some word is of both.
std::vector<std::string> rules_for(const Report& report, const std::string& steps) {
  std::multiset<std::string> words, others;
  for (const OpResult& op : report.ops)
    if (needs(op, steps))
      words.insert(last_of(op.path));
    else if (op.verdict == Verdict::pass && op.path == op.candidate_path && op.shape.size() > 1)
      others.insert(last_of(op.path));
  if (words.size() > others.size()) return {"* = *" + steps};
  std::vector<std::string> rules;
  for (const std::string& word : std::set<std::string>(words.begin(), words.end())) {
    if (others.contains(word)) return {};
    rules.push_back(fmt::format("*.{0} = *.{0}{1}", word, steps));
  }
  return rules;
}

/// Many tensors of another shape that one rule reads: a port with its tokens first, or padded, or with batch and tokens
/// as one axis, which a rule without steps reads.
void layouts(const Report& report, Steps& steps) {
  if (!two_files(report) || !report.command.starts_with("parity-check compare ") ||
      !options_in(report.command, {"--map"}).empty())
    return;
  std::map<std::string, int> rows;
  for (const OpResult& op : report.ops)
    if (needs(op, steps_of(op))) ++rows[steps_of(op)];
  const auto most = std::max_element(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.second < b.second; });
  if (most == rows.end() || most->second < 2) return;
  std::vector<std::string> rules = rules_for(report, most->first);
  if (rules.empty()) return;
  const bool one = rules.size() == 1;
  for (std::string& rule : rules) rule = shell_word(rule);
  steps.push_back({fmt::format("{} {} >layout.map && {} --map layout.map", one ? "echo" : "printf '%s\\n'",
                               fmt::join(rules, " "), pair_command(report, "compare")),
                   fmt::format("{} tensors have shapes that {} read{}, if their layout is what differs", most->second,
                               one ? "this rule" : "these rules", one ? "s" : "")});
}

/// A value that is another, where all that follows is right: the port's weights are made for it, or it is never read.
void declarable(const Report& report, Steps& steps) {
  const OpResult* op = first_divergence(report);
  if (op == nullptr || op->declarable.empty() || !two_files(report)) return;
  steps.push_back(
      {fmt::format("{} --accept-path {}", pair_command(report, "compare"), shell_word(op->declarable)),
       fmt::format("if the weights behind {} are made for it (a scale in q's, a norm's in the product behind "
                   "it): the same with that declared",
                   row_name(*op))});
}

void unpaired(const Report& report, Steps& steps) {
  int64_t loose = 0, all = 0;
  std::string example;
  for (const auto& [name, c] : report.coverage) {
    loose += c.uncovered, all += c.paired + c.uncovered;
    if (example.empty() && !c.uncovered_paths.empty()) example = c.uncovered_paths.front();
  }
  if (!two_files(report) || static_cast<double>(loose) <= kMuchUnpaired * static_cast<double>(all)) return;
  const std::string first = example.empty() ? "" : fmt::format(", the first {}", example);
  if (!report.command.starts_with("parity-check compare ")) {
    steps.push_back(
        {fmt::format("parity-check inspect {}", shell_word(report.reference.path)),
         fmt::format("{} of {} points of the reference have no counterpart{}: its names", loose, all, first)});
    return;
  }
  // A map that was given is not to be written over.
  const char* file = options_in(report.command, {"--map"}).empty() ? "pairs.map" : "more_pairs.map";
  steps.push_back(
      {fmt::format("{} --save-map {}", pair_command(report, "compare"), file),
       fmt::format("{} of {} points of the reference have no counterpart{}: the pairs as a map file, and in "
                   "it, to be filled in for compare --map, these points and the candidate's other tensors",
                   loose, all, first)});
}

void casts(const Report& report, Steps& steps) {
  const OpResult* op = first_divergence(report);
  if (op == nullptr || op->gate != Gate::dtype_path || !two_files(report) || !holds_program(report)) return;
  steps.push_back({fmt::format("{} --layer {}", pair_command(report, "paths"), shell_word(op->path)),
                   "a rounding is placed differently: which cast placement the candidate took there"});
}

void weights(const Report& report, Steps& steps) {
  if (!two_files(report) || !holds_program(report) || !report.reference.weights || !report.candidate.weights) return;
  for (const OpResult& op : report.ops) {
    const bool product = op.kind == "linear" || op.kind == "Linear" || op.kind == "conv";
    const bool named =
        op.diagnosis.find("weight") != std::string::npos || op.diagnosis.find("bias") != std::string::npos;
    if (op.verdict != Verdict::fail || op.gate != Gate::logic || !(product || named)) continue;
    steps.push_back({fmt::format("parity-check weights {} {}", shell_word(report.reference.path),
                                 shell_word(report.candidate.path)),
                     fmt::format("{} fails in its formula: are its parameters those of the reference?", row_name(op))});
    return;
  }
}

/// How far the result lies off when every op of both sides rounds by itself and nothing amplifies it: what rows hold
/// about the reference's roundings, without the runs that --max-free makes to know.
double roundings_alone(const Report& report) {
  double squares = 0;
  for (const OpResult& op : report.ops)
    if (op.oracle) squares += std::pow(op.oracle->reference_error.value_or(0), 2);
  return std::sqrt(2 * squares);
}

double worst_free_output(const std::vector<Cell>& cells) {
  double worst = 0;
  for (const Cell& cell : cells) worst = std::max(worst, cell.free_output.value_or(0));
  return worst;
}

/// Every row passes, and the result is further off than roundings alone take it: something amplifies them.
void no_op_is_wrong(const Report& report, Steps& steps) {
  if (report.whole || !two_files(report) || !holds_program(report) || overall(report) != Verdict::pass) return;
  const double alone = roundings_alone(report);
  const double output = worst_free_output(matrix(report));
  if (!(alone > 0) || output <= alone) return;
  steps.push_back(
      {fmt::format("{} --max-free {:.2g}", pair_command(report, "compare"), alone),
       fmt::format("no op is wrong, and the output differs by {:.2g}, more than the {:.2g} of all roundings together: "
                   "how far valid arithmetics lie apart there, which ops amplify, and what would bring how much",
                   output, alone)});
}

/// All ops are right by themselves, and yet the output differs; or those that were compared, and the last of them.
void blame(const Report& report, Steps& steps) {
  if (first_divergence(report) != nullptr || !two_files(report) || !holds_program(report)) return;
  for (const Cell& cell : matrix(report)) {
    const double rounding = cell.dtype == "bf16" || cell.dtype == "fp16" ? kRounding[0] : kRounding[1];
    if (cell.free_output.value_or(0) <= rounding) continue;
    const char* what = overall(report) == Verdict::pass ? "no op is wrong, and the output differs"
                                                        : "no op that was compared is wrong, and the last one differs";
    steps.push_back({pair_command(report, "blame"),
                     fmt::format("{} by {:.2g}: which ops' roundings it comes from", what, *cell.free_output)});
    return;
  }
}

void drift(const Report& report, Steps& steps) {
  if (first_divergence(report) != nullptr || two_files(report)) return;
  for (const OpResult& op : report.ops)
    if (op.gate == Gate::propagation && op.verdict == Verdict::fail && !op.rerun.empty()) {
      steps.push_back({op.rerun + " --mode free",
                       "the first row whose error comes from the port's own earlier values: that row, free-running"});
      return;
    }
}

void undecided_alone(const Report& report, Steps& steps) {
  for (const OpResult* op : undecided(report)) {
    if (op->verdict != Verdict::inconclusive || op->rerun.empty()) continue;
    const bool half = op->dtype == "bf16" || op->dtype == "fp16";
    std::string command = op->rerun;
    if (const size_t at = command.rfind(" --dtype "); at != std::string::npos && half)
      command = command.substr(0, at) + " --dtype fp32";
    const bool wider = command != op->rerun;
    steps.push_back(
        {command, wider  ? fmt::format("{} cannot be decided in {}: the same in fp32", row_name(*op), op->dtype)
                  : half ? fmt::format("{} cannot be decided in {}; with both sides recorded in fp32 it can",
                                       row_name(*op), op->dtype)
                         : fmt::format("the first row that is not decided: {}", row_name(*op))});
    return;
  }
}

void interrupted(const Report& report, Steps& steps) {
  for (const OpResult& op : report.ops)
    if (op.kind == "recording" && op.verdict == Verdict::untrusted && two_files(report)) {
      steps.push_back({fmt::format("parity-check inspect {} --verify", shell_word(report.reference.path)),
                       "the reference's recording was interrupted: what it holds; record it again"});
      return;
    }
}

constexpr std::array kRules{layouts,        declarable, first_alone, casts,           weights,    unpaired,
                            no_op_is_wrong, blame,      drift,       undecided_alone, interrupted};

}  // namespace

std::vector<NextStep> next_steps(const Report& report) {
  Steps steps;
  for (const auto rule : kRules)
    if (steps.size() < kSteps) rule(report, steps);
  return steps;
}

}  // namespace parity
