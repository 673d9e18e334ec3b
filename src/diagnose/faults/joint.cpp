#include "diagnose/faults/joint.hpp"

#include <fmt/format.h>

namespace parity {
namespace {

constexpr size_t kMostPlaces = 16;  // of a call
constexpr int kMostCalls = 32;      // a change in all calls of a long loop is tried in the first ones

// The module call that made it, whatever views and joins lie on the way; -1: none.
int maker(const ProgramIndex& program, int64_t id, int steps = 6) {
  const int made = program.producer(id);
  if (made < 0) return -1;
  const Op& op = program.op(made);
  const bool moves = op.view || op.kind == "clone";
  return moves && steps > 0 && !program.reads(made).empty() ? maker(program, program.reads(made)[0], steps - 1)
                                                            : op.module_call;
}

int begins_at(const FaultHypothesis& h) { return h.deviation.rewrites.begin()->first; }

std::string and_more(size_t places) { return fmt::format(" and {} more place{}", places, places == 1 ? "" : "s"); }

FaultHypothesis together(const Hypotheses& group, std::string place) {
  FaultHypothesis all = group.front();
  all.place = std::move(place);
  all.wide_op = -1;  // one op alone no longer
  ++all.rank;        // where one place explains as much, the others lie behind it
  for (const FaultHypothesis& h : group)
    all.deviation.rewrites.insert(h.deviation.rewrites.begin(), h.deviation.rewrites.end());
  return all;
}

}  // namespace

JointChanges::JointChanges(const ProgramIndex& program) : program_(program) {
  const auto& calls = program.program().calls;
  for (int i = 0; i < program.size(); ++i) {
    if (program.op(i).module_call < 0) continue;
    const ModuleCall& reader = calls[program.op(i).module_call];
    for (const int64_t id : program.reads(i))
      if (const int made = maker(program, id);
          made >= 0 && calls[made].path == reader.path && calls[made].call < reader.call)
        remembering_.insert(reader.path);
  }
}

bool JointChanges::remembers(int op) const {
  const int call = program_.op(op).module_call;
  return call >= 0 && program_.op(op).call < kMostCalls && remembering_.contains(program_.program().calls[call].path);
}

void JointChanges::add(int op, const Hypotheses& found) {
  const Op& at = program_.op(op);
  const bool remembered = remembers(op);
  for (const FaultHypothesis& h : found) {
    if (h.joint) of_call_[at.module_call][{"", h.fault, h.what}].push_back(h);
    if (!remembered || h.valid || !(h.joint || h.gate == Gate::logic)) continue;
    of_calls_[{at.path, h.fault, h.what}].push_back(h);
    if (h.joint) of_calls_[{"", program_.program().calls[at.module_call].path + h.fault, h.what}].push_back(h);
  }
}

std::map<int, Hypotheses> JointChanges::all() const {
  std::map<int, Hypotheses> by_op;
  const auto offer = [&](const Hypotheses& group, std::string place) {
    by_op[begins_at(group.front())].push_back(together(group, std::move(place)));
  };
  for (const auto& [call, changes] : of_call_)
    for (const auto& [change, group] : changes)
      if (group.size() >= 2 && group.size() <= kMostPlaces)
        offer(group, group.front().place + and_more(group.size() - 1));
  for (const auto& [change, group] : of_calls_) {
    std::set<int> calls;
    for (const FaultHypothesis& h : group) calls.insert(program_.op(begins_at(h)).call);
    const size_t places = group.size() / calls.size();
    if (calls.size() < 2 || places > kMostPlaces || (std::get<0>(change).empty() && places < 2)) continue;
    offer(group, fmt::format("{}{} in {} calls", program_.op(begins_at(group.front())).path,
                             places > 1 ? and_more(places - 1) : "", calls.size()));
  }
  return by_op;
}

}  // namespace parity
