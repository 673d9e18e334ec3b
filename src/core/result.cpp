#include "core/result.hpp"

#include <array>

namespace parity {
namespace {

constexpr std::array kVerdicts{Verdict::pass,    Verdict::fail,  Verdict::inconclusive,
                               Verdict::missing, Verdict::shape, Verdict::untrusted};

bool is_failure(Verdict verdict) { return verdict == Verdict::fail || verdict == Verdict::shape; }

bool is_own_gate(Gate gate) { return gate == Gate::structure || gate == Gate::logic || gate == Gate::dtype_path; }

}  // namespace

std::string NamedChange::detail() const { return place.empty() ? what : what + " at " + place; }

std::string verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::fail:
      return "fail";
    case Verdict::inconclusive:
      return "inconclusive";
    case Verdict::missing:
      return "missing";
    case Verdict::shape:
      return "shape";
    case Verdict::untrusted:
      return "untrusted";
  }
  return "untrusted";  // not a value of the enumeration: nothing that may be called good
}

std::string gate_name(Gate gate) {
  switch (gate) {
    case Gate::none:
      return "";
    case Gate::structure:
      return "structure";
    case Gate::logic:
      return "logic";
    case Gate::dtype_path:
      return "dtype_path";
    case Gate::propagation:
      return "propagation";
  }
  return "";
}

OpResult untrusted_row(std::string path, std::string kind, std::string why) {
  OpResult row;
  row.path = std::move(path);
  row.kind = std::move(kind);
  row.verdict = Verdict::untrusted;
  row.gate = Gate::structure;
  row.diagnosis = std::move(why);
  return row;
}

OpResult interrupted_reference() {
  return untrusted_row("(reference)", "recording",
                       "the reference was interrupted: what it does not hold was not compared; record it again");
}

std::map<std::string, int64_t> count_verdicts(const Report& report) {
  std::map<std::string, int64_t> counts;
  for (const Verdict verdict : kVerdicts) counts[verdict_name(verdict)] = 0;
  for (const OpResult& op : report.ops) ++counts[verdict_name(op.verdict)];
  for (const Verdict verdict : report.video_checks) ++counts[verdict_name(verdict)];
  return counts;
}

Verdict overall(const Report& report) {
  bool all_pass = !report.ops.empty();
  const auto fails = [&](Verdict verdict) {
    all_pass = all_pass && verdict == Verdict::pass;
    return is_failure(verdict);
  };
  for (const OpResult& op : report.ops)
    if (fails(op.verdict)) return Verdict::fail;
  for (const Verdict verdict : report.video_checks)
    if (fails(verdict)) return Verdict::fail;
  return all_pass ? Verdict::pass : Verdict::inconclusive;
}

int exit_status(const Report& report) {
  switch (overall(report)) {
    case Verdict::pass:
      return 0;
    case Verdict::fail:
      return 1;
    default:
      return 3;
  }
}

const OpResult* first_divergence(const Report& report) {
  const OpResult* first = nullptr;
  for (const OpResult& op : report.ops) {
    if (!is_failure(op.verdict) || !is_own_gate(op.gate)) continue;
    // Indices of different reference dumps cannot be ordered: the dump that comes first in the report is asked first.
    if (!first || (op.reference == first->reference && op.index < first->index)) first = &op;
  }
  return first;
}

}  // namespace parity
