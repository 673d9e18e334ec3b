#include "jobs/shard_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "diagnose/shard_faults.hpp"
#include "jobs/plain_job.hpp"
#include "judge/declared.hpp"
#include "trace/flow.hpp"

namespace parity {
namespace {

bool is_accepted(const ShardFault& fault, const OpResult& row, const Thresholds& limits) {
  return fault.gate == Gate::dtype_path && declaring_rule(limits, {fault.name, row.path}).has_value();
}

void name_fault(OpResult& row, const ShardFault& fault, const Thresholds& limits) {
  const std::string text = fmt::format("{} ({})", fault.name, fault.detail);
  if (is_accepted(fault, row, limits)) {
    row.diagnosis = fmt::format("declared (--accept-path): {}{}{}", text,
                                row.diagnosis.empty() ? "" : "; beside it: ", row.diagnosis);
    return;
  }
  const bool of_shape = row.verdict == Verdict::shape;
  row.diagnosis = fmt::format("{}{}{}", text, row.diagnosis.empty() ? "" : ": ", row.diagnosis);
  if (!of_shape) row.verdict = Verdict::fail, row.gate = fault.gate;
  Explanation explanation{fault.name, fault.detail, "", fault.gate};
  explanation.amplitude = 1;
  explanation.explained = fault.explained;
  explanation.rest = 1 - fault.explained;
  row.explanations.insert(row.explanations.begin(), explanation);
}

}  // namespace

std::string joined_evidence(const std::string& evidence, const CandidateTensor& tensor) {
  if (tensor.shards == nullptr) return evidence;
  return fmt::format("{}; {}{}", evidence, text_of(tensor.shards->mesh, tensor.shards->placements),
                     tensor.shards->by_shape ? " by shape" : "");
}

// Where the copies began to differ from which this value is computed; "" when none did. Boundaries come in order.
const std::string& ShardRows::origin(size_t boundary) {
  const auto known = origins_.find(boundary);
  if (known != origins_.end()) return known->second;
  std::string found;
  for (const size_t a : ancestors_[boundary]) {
    const auto pair = std::lower_bound(pairing_.pairs.begin(), pairing_.pairs.end(), a,
                                       [](const PortPair& p, size_t b) { return p.boundary < b; });
    if (a >= boundary || pair == pairing_.pairs.end() || pair->boundary != a) continue;
    const ShardedTensor* shards = shards_of(*pair);
    if (shards == nullptr || shards->agree) continue;
    found = origin(a);
    if (found.empty()) found = program_.boundaries[a].path.empty() ? "(result)" : program_.boundaries[a].path;
    break;
  }
  return origins_[boundary] = found;
}

std::vector<std::pair<std::string, at::Tensor>> ShardRows::vectors(const Segment& segment) const {
  std::vector<int64_t> used;
  for (const size_t op : segment.ops) {
    collect_ids(program_.ops[op].args, used);
    for (const auto& argument : program_.ops[op].kwargs) collect_ids(argument, used);
  }
  std::vector<std::pair<std::string, at::Tensor>> found;
  for (const Leaf& leaf : program_.leaves)
    if (leaf.value.shape.size() == 1 && !leaf.names.empty() && !leaf.value.key.empty() &&
        std::find(used.begin(), used.end(), leaf.value.id) != used.end())
      found.emplace_back(leaf.names.front(), stored_value(dump_, leaf.value));
  return found;
}

namespace {

void explain_row(OpResult& row, const ShardEvidence& evidence, const Thresholds& limits) {
  const bool wrong = row.verdict == Verdict::fail || row.verdict == Verdict::inconclusive;
  // A rounding declared by place passes whatever its size: a bias too many is not what was meant.
  const bool declared_there = row.verdict == Verdict::pass && row.diagnosis.starts_with("declared");
  if (const auto fault = other_dtype(evidence.tensor)) name_fault(row, *fault, limits);
  if (!evidence.expected.defined()) return;
  if (!evidence.tensor.agree) return name_fault(row, differing_copies(evidence), limits);
  if (!wrong && !declared_there) return;
  if (const auto fault = wrong_whole(evidence))
    name_fault(row, *fault, limits);
  else if (const std::string rank = rank_at_fault(evidence); wrong && !rank.empty())
    row.diagnosis += fmt::format("; all of it in the part of rank {}", rank);
}

}  // namespace

void judge_plain_shards(OpResult& row, const CandidateTensor& tensor, const Layout& layout,
                        const at::Tensor& reference) {
  if (tensor.shards == nullptr) return;
  const auto passes = [&](const at::Tensor& whole) {
    OpResult other = row;
    compare_whole(other, reference, layout.to_reference(whole));
    return other.verdict == Verdict::pass;
  };
  explain_row(row, {*tensor.shards, layout.fit_candidate(reference, tensor.shape).tensor, passes, nullptr}, {});
}

namespace {

// Is `value` a sum of these summands, in any order? Each addition rounds: n of them come within (n - 1) u times the sum
// of their magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 4.2). In half width that would be
// roundings that the reference has not.
bool is_their_sum(const at::Tensor& value, const ShardedTensor& summands, const Layout& layout) {
  int64_t n = 1;
  for (size_t a = 0; a < summands.placements.size(); ++a)
    if (summands.placements[a].kind == Placement::Kind::partial) n *= summands.grid.axes[a].second;
  if (n == 1 || is_half(value.scalar_type()) || !at::isFloatingType(value.scalar_type())) return false;
  std::vector<at::Tensor> parts = summands.parts(), magnitudes;
  for (at::Tensor& part : parts) part = part.to(at::kDouble), magnitudes.push_back(part.abs());
  const at::Tensor sum = layout.to_reference(join_parts(summands.grid, summands.placements, parts));
  const at::Tensor all = layout.to_reference(join_parts(summands.grid, summands.placements, magnitudes));
  const double most = static_cast<double>(n - 1) * unit_roundoff(value.scalar_type());
  return sum.sizes() == value.sizes() && (value.to(at::kDouble) - sum).abs().le(all * most).all().item<bool>();
}

}  // namespace

// A value that is an earlier one's by another name, and that one is summands: the all-reduce lies between.
bool ShardRows::is_reduced(const PortPair& pair, const at::Tensor& value) const {
  for (const PortPair& earlier : pairing_.pairs) {
    if (earlier.boundary >= pair.boundary) break;
    const ShardedTensor* shards = shards_of(earlier);
    if (shards != nullptr &&
        program_.boundaries[earlier.boundary].value.id == program_.boundaries[pair.boundary].value.id &&
        is_their_sum(value, *shards, earlier.layout))
      return true;
  }
  return false;
}

void ShardRows::judge(OpResult& row, const PortPair& pair, const RowValues& values) {
  const ShardedTensor* shards = shards_of(pair);
  if (shards == nullptr) return;
  const bool wrong = row.verdict == Verdict::fail || row.verdict == Verdict::inconclusive;
  if (const std::string& since = origin(pair.boundary); !since.empty()) {
    if (!wrong && shards->agree) return;
    row.verdict = Verdict::inconclusive, row.gate = Gate::none;
    row.diagnosis =
        fmt::format("the ranks went on from copies that differ since {}: of its own this shows nothing", since);
    row.explanations.clear();
    return;
  }
  if (wrong && shards->agree && values.segment.identity() && is_reduced(pair, values.value)) {
    row.verdict = Verdict::pass, row.gate = Gate::none;
    row.diagnosis = "an all-reduce, within the roundings of its sum";
    return;
  }
  const at::Tensor expected =
      pair.layout.fit_candidate(values.event.computed[kRecorded], candidate_[pair.candidate].shape).tensor;
  const BoundaryEvent plain_runs{values.event.boundary, values.event.computed, {}};  // without named changes
  const auto passes = [&](const at::Tensor& whole) {
    OpResult other = row;
    const at::Tensor value = pair.layout.to_reference(whole);
    judge_row(other, {value, plain_runs, values.segment, values.before}, nullptr, limits_);
    return other.verdict == Verdict::pass;
  };
  const ShardEvidence evidence{*shards, expected, passes, [&] { return vectors(values.segment); }};
  explain_row(row, evidence, limits_);
}

void ShardRows::explain_shape(OpResult& row, const PortPair& pair, const at::Tensor& expected) const {
  const ShardedTensor* shards = shards_of(pair);
  if (shards == nullptr || !pair.layout.as_it_is()) return;
  if (const auto fault = wrong_shape({*shards, expected, nullptr, nullptr})) name_fault(row, *fault, limits_);
}

}  // namespace parity
