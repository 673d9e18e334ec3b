#include "report/causes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "report/markup.hpp"

namespace parity {
namespace {

constexpr size_t kLongestName = 140;  // characters of a diagnosis that serves as a name
constexpr double kMostOfIt = .9;      // of the squared difference: a name for less is one with its share beside it

/// A diagnosis without a named change that says the same in many rows.
struct Unnamed {
  std::string_view part, name;
};
constexpr std::string_view kBySize = " by its size (";
constexpr std::array kUnnamed{
    Unnamed{kBySize, "as large as a cast makes it, though not at these elements: no known change explains it"},
    Unnamed{"a rounding is placed differently", "a rounding is placed differently"},
    Unnamed{"on the candidate's own inputs its error is",
            "error beyond the reference's own rounding, no known change explains it"},
    Unnamed{"in fp64, on the", "in fp64 the formula or a constant differs"},
    Unnamed{"whose shape differs", "computed from a value of another shape"},
    Unnamed{"shape differs", "shape differs"},
    Unnamed{"has no counterpart", "no counterpart in the candidate"},
    Unnamed{"NaN or Inf", "NaN or Inf in other places"},
    Unnamed{"differ where values are only moved", "values differ where they are only moved"},
    Unnamed{"rows hold other integers", "other integers, where all valid arithmetics agree"},
};

/// Numbers and what stands in brackets differ from row to row; "fp64" is no number.
std::string without_numbers(const std::string& text) {
  std::string out;
  int depth = 0;
  bool word = false;
  for (const char c : text) {
    word = std::isalpha(static_cast<unsigned char>(c)) || (word && std::isdigit(static_cast<unsigned char>(c)));
    if (c == '(' || c == '[') ++depth;
    const bool number = !word && std::isdigit(static_cast<unsigned char>(c));
    if (depth > 0 || number) {
      if (!out.ends_with("…")) out += "…";
    } else if (!(c == '.' && out.ends_with("…"))) {
      out += c;
    }
    if ((c == ')' || c == ']') && depth > 0) --depth;
  }
  return shortened_text(out, kLongestName);
}

// The named change that the diagnosis begins with; nullptr.
const Explanation* named_change(const OpResult& op) {
  const Explanation* named = nullptr;
  for (const Explanation& e : op.explanations) {
    if (!op.diagnosis.starts_with(e.change.fault) || op.diagnosis.starts_with(e.change.fault + std::string(kBySize)))
      continue;
    const bool same = op.diagnosis.find(e.change.detail()) != std::string::npos;
    if (same || named == nullptr) named = &e;
    if (same) break;
  }
  return named;
}

// " (explains 62 % of the difference)" where that is not most of it: what else differs there has no name.
std::string in_part(const Cause& cause) {
  double explained = 0;
  for (const OpResult* row : cause.rows)
    if (const Explanation* named = named_change(*row)) explained = std::max(explained, named->explained);
  if (explained == 0 || explained >= kMostOfIt) return "";
  return fmt::format(" (explains {}{:.0f} % of the difference)", cause.rows.size() > 1 ? "at most " : "",
                     100 * explained);
}

bool red(const OpResult& op) { return op.verdict == Verdict::fail || op.verdict == Verdict::shape; }

}  // namespace

std::string cause_name(const OpResult& op) {
  if (const Explanation* named = named_change(op)) {
    const auto& [fault, what, place] = named->change;
    return what.empty() ? fault : fmt::format("{}: {}", fault, what);
  }
  for (const Unnamed& known : kUnnamed)
    if (op.diagnosis.find(known.part) != std::string::npos) return std::string(known.name);
  return op.diagnosis.empty() ? "no reason given" : without_numbers(op.diagnosis);
}

std::vector<Cause> causes(const Report& report) {
  std::vector<Cause> out;
  for (const OpResult& op : report.ops) {
    if (op.verdict == Verdict::pass) continue;
    const std::string name = cause_name(op);
    const auto found = std::find_if(out.begin(), out.end(), [&](const Cause& c) {
      return c.verdict == op.verdict && c.gate == op.gate && c.name == name && (!red(op) || c.kind == op.kind);
    });
    if (found == out.end()) {
      out.push_back({name, op.verdict, op.gate, op.kind, {&op}});
      continue;
    }
    found->rows.push_back(&op);
    if (found->kind != op.kind) found->kind.clear();
  }
  const OpResult* first = first_divergence(report);
  const auto key = [&](const Cause& c) {
    const bool leads = std::find(c.rows.begin(), c.rows.end(), first) != c.rows.end();
    return std::tuple(!red(*c.rows.front()), !leads, -static_cast<int64_t>(c.rows.size()));
  };
  std::stable_sort(out.begin(), out.end(), [&](const Cause& a, const Cause& b) { return key(a) < key(b); });
  return out;
}

std::string cause_title(const Cause& cause) {
  std::string out = fmt::format("{} {}", cause.rows.size(), cause.rows.size() == 1 ? "row" : "rows");
  if (cause.gate != Gate::none) out += ", gate " + gate_name(cause.gate);
  if (!cause.kind.empty()) out += ", " + cause.kind;
  return fmt::format("{}: {}{}", out, cause.name, in_part(cause));
}

std::string pairing_text(const OpResult& op) {
  if (!op.paired_by || op.paired_by->confidence >= 1) return "";
  return fmt::format("paired by {} (confidence {:.2f})", op.paired_by->witnesses, op.paired_by->confidence);
}

std::string source_text(const OpResult& op) {
  std::string out = op.source.empty() ? "" : "reference " + op.source;
  if (!op.candidate_source.empty()) out += fmt::format("{}port {}", out.empty() ? "" : " · ", op.candidate_source);
  return out;
}

}  // namespace parity
