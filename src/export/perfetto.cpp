// Trace Event Format ("JSON Object Format", complete events). A report knows in which order ops ran, not how long they
// took: every op is a slice of one length, and a pair has one time on both tracks.
#include <fmt/format.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "core/statistics.hpp"
#include "export/formats.hpp"
#include "report/json_values.hpp"
#include "report/limit_use.hpp"

namespace parity {
namespace {

using nlohmann::json;

constexpr int kSlice = 1000;  // microseconds from one op to the next
constexpr int kFilled = 900;  // of them its slice: neighbours stay apart

struct Paint {
  Verdict verdict;
  const char* name;  // of the trace viewer's reserved colours
};
constexpr std::array kPaints{
    Paint{Verdict::pass, "good"},        Paint{Verdict::fail, "terrible"},    Paint{Verdict::shape, "terrible"},
    Paint{Verdict::inconclusive, "bad"}, Paint{Verdict::untrusted, "yellow"}, Paint{Verdict::missing, "grey"},
};

const char* paint_of(Verdict verdict) {
  for (const Paint& paint : kPaints)
    if (paint.verdict == verdict) return paint.name;
  return "grey";
}

void put(json& out, const char* name, std::optional<double> number) {
  if (number && std::isfinite(*number)) out[name] = *number;
}

json arguments_of(const OpResult& op) {
  json out = {{"verdict", verdict_name(op.verdict)},
              {"reference path", plain(op.path)},
              {"candidate path", plain(op.candidate_path)},
              {"call", op.call},
              {"kind", plain(op.kind)},
              {"dtype", plain(op.dtype)},
              {"shape", shape_text(op.shape)}};
  if (op.gate != Gate::none) out["gate"] = gate_name(op.gate);
  for (const auto& [name, text] : {std::pair("diagnosis", &op.diagnosis), std::pair("source", &op.source),
                                   std::pair("candidate source", &op.candidate_source), std::pair("rerun", &op.rerun)})
    if (!text->empty()) out[name] = plain(*text);
  put(out, "error / limit", share_of_limits(op));
  put(out, "fp64 rel_l2", op.logic.rel_l2);
  if (op.forced) put(out, "rel_l2", op.forced->rel_l2);
  if (op.forced) put(out, "bitwise_equal_share", op.forced->bitwise_equal_share);
  if (op.free) put(out, "free rel_l2", op.free->rel_l2);
  put(out, "amplification", op.amplification);
  put(out, "blame", op.blame);
  return out;
}

class Trace {
 public:
  explicit Trace(const Report& report) : report_(report) {}

  std::string text() {
    for (const OpResult& op : report_.ops) add(op);
    const json document = {{"displayTimeUnit", "ms"},
                           {"otherData",
                            {{"command", plain(report_.command)},
                             {"verdict", verdict_name(overall(report_))},
                             {"time", "the order of execution: nothing was timed, each op has the same length"}}},
                           {"traceEvents", std::move(events_)}};
    return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  }

 private:
  /// A process for each reference, named at its first op.
  int process(const std::string& reference) {
    const auto [at, added] = processes_.emplace(reference, static_cast<int>(processes_.size()) + 1);
    if (added) name("process_name", at->second, 0, reference.empty() ? report_.reference.model : reference);
    return at->second;
  }

  /// A track for each side in each dtype.
  int track(int pid, const std::string& side, const std::string& dtype) {
    const auto [at, added] = tracks_.emplace(std::tuple(pid, side, dtype), static_cast<int>(tracks_.size()) + 1);
    if (added) name("thread_name", pid, at->second, fmt::format("{} ({})", side, dtype));
    return at->second;
  }

  void name(const char* what, int pid, int tid, const std::string& text) {
    events_.push_back({{"ph", "M"},
                       {"name", what},
                       {"pid", pid},
                       {"tid", tid},
                       {"args", {{"name", text.empty() ? "model" : plain(text)}}}});
  }

  void add(const OpResult& op) {
    const int pid = process(op.reference);
    const int64_t begin = position(op) * kSlice;
    slice(op, pid, "reference", op.path, begin);
    if (op.verdict != Verdict::missing) slice(op, pid, "candidate", op.candidate_path, begin);
    if (const auto share = share_of_limits(op); share && std::isfinite(*share))
      events_.push_back({{"ph", "C"},
                         {"name", fmt::format("error / limit ({})", plain(op.dtype))},
                         {"pid", pid},
                         {"ts", begin},
                         {"args", {{"error / limit", *share}}}});
  }

  void slice(const OpResult& op, int pid, const char* side, const std::string& path, int64_t begin) {
    events_.push_back({{"ph", "X"},
                       {"name", path.empty() ? "(result)" : plain(path)},
                       {"cat", verdict_name(op.verdict)},
                       {"cname", paint_of(op.verdict)},
                       {"ts", begin},
                       {"dur", kFilled},
                       {"pid", pid},
                       {"tid", track(pid, side, op.dtype)},
                       {"args", arguments_of(op)}});
  }

  /// The how-manieth value of its reference: rows of one value in several dtypes stand above each other.
  int64_t position(const OpResult& op) {
    auto& of_reference = positions_[op.reference];
    const auto next = static_cast<int64_t>(of_reference.size());
    return of_reference.emplace(std::tuple(op.index, op.path, op.call), next).first->second;
  }

  const Report& report_;
  json events_ = json::array();
  std::map<std::string, int> processes_;
  std::map<std::tuple<int, std::string, std::string>, int> tracks_;
  std::map<std::string, std::map<std::tuple<int64_t, std::string, int>, int64_t>> positions_;
};

}  // namespace

std::string report_trace(const Report& report) { return Trace(report).text(); }

}  // namespace parity
