#include "diagnose/faults/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/dtype_kind.hpp"
#include "diagnose/faults/joint.hpp"
#include "trace/flow.hpp"

namespace parity {
std::optional<at::ScalarType> half_of(const Program& program) {
  for (const Boundary& b : program.boundaries)
    if (is_half(b.value.dtype)) return b.value.dtype;
  return std::nullopt;
}

ProgramIndex::ProgramIndex(const Program& program) : program_(&program), half_(half_of(program)) {
  for (const Leaf& leaf : program.leaves) {
    leaves_[leaf.value.id] = &leaf;
    values_[leaf.value.id] = &leaf.value;
  }
  for (int i = 0; i < size(); ++i) {
    std::vector<int64_t>& reads = reads_.emplace_back();
    if (op(i).stands_for >= 0) {
      stands_for_[op(i).outputs[0]->id] = recorded(op(i).stands_for);
      continue;
    }
    for (const auto& argument : op(i).args) collect_ids(argument, reads);
    for (const auto& argument : op(i).kwargs) collect_ids(argument, reads);
    for (int64_t& id : reads) id = recorded(id);
    for (const int64_t id : reads)
      if (auto& readers = consumers_[id]; readers.empty() || readers.back() != i) readers.push_back(i);
    for (const auto& output : op(i).outputs)
      if (output) {
        producer_.try_emplace(output->id, i);
        values_.try_emplace(output->id, &*output);
      }
  }
}

int64_t ProgramIndex::recorded(int64_t id) const {
  const auto found = stands_for_.find(id);
  return found == stands_for_.end() ? id : found->second;
}

int ProgramIndex::producer(int64_t id) const {
  const auto found = producer_.find(id);
  return found == producer_.end() ? -1 : found->second;
}

const std::vector<int>& ProgramIndex::consumers(int64_t id) const {
  static const std::vector<int> kNone;
  const auto found = consumers_.find(id);
  return found == consumers_.end() ? kNone : found->second;
}

const Value* ProgramIndex::value(int64_t id) const {
  const auto found = values_.find(id);
  return found == values_.end() ? nullptr : found->second;
}

const Leaf* ProgramIndex::leaf(int64_t id) const {
  const auto found = leaves_.find(id);
  return found == leaves_.end() ? nullptr : found->second;
}

const Leaf* ProgramIndex::leaf_behind(int64_t id, int views, bool casts) const {
  for (; id >= 0; --views) {
    if (const Leaf* found = leaf(id)) return found;
    const int made = producer(id);
    if (views == 0 || made < 0 || !(op(made).view || (casts && op(made).kind == "_to_copy"))) return nullptr;
    id = argument(made, 0);
  }
  return nullptr;
}

int64_t ProgramIndex::argument(int index, size_t position) const { return recorded(argument_id(op(index), position)); }

std::optional<double> ProgramIndex::number(int index, size_t position) const {
  const auto& args = op(index).args;
  if (position >= args.size() || !args[position].is_number()) return std::nullopt;
  return args[position].get<double>();
}

int ProgramIndex::ahead(int index, std::string_view kind, int steps) const {
  if (op(index).kind == kind) return index;
  if (steps == 0) return -1;
  for (const auto& output : op(index).outputs)
    if (output)
      for (const int next : consumers(output->id))
        if (next > index)
          if (const int found = ahead(next, kind, steps - 1); found >= 0) return found;
  return -1;
}

int ProgramIndex::behind(int index, std::string_view kind, int steps) const {
  if (op(index).kind == kind) return index;
  if (steps == 0) return -1;
  for (const int64_t id : reads(index))
    if (const int before = producer(id); before >= 0 && before < index)
      if (const int found = behind(before, kind, steps - 1); found >= 0) return found;
  return -1;
}

std::string ProgramIndex::place(int index) const {
  const Op& at = op(index);
  return at.call > 0 ? fmt::format("{} call {}", at.path, at.call) : at.path;
}

void add_fault(Hypotheses& to, const ProgramIndex& program, int index, std::string fault, std::string what,
               Rewrite rewrite, bool fixed_amplitude) {
  FaultHypothesis h{std::move(fault), std::move(what), program.place(index), Gate::logic, fixed_amplitude};
  h.deviation.rewrites[index] = std::move(rewrite);
  to.push_back(std::move(h));
}

namespace {

// As the recorded op would have rounded it: a rewrite in exact arithmetic computes in fp64.
Rewrite rounded_as_recorded(Rewrite rewrite) {
  return [rewrite = std::move(rewrite)](OpCall& call) {
    Results results = rewrite(call);
    for (size_t j = 0; j < results.size() && j < call.op.outputs.size(); ++j)
      if (results[j] && call.op.outputs[j] && results[j]->scalar_type() != call.op.outputs[j]->dtype)
        results[j] = results[j]->to(call.op.outputs[j]->dtype);
    return results;
  };
}

}  // namespace

Catalogue::Catalogue(const Program& program, const ReplaysOfFaults& replays) : index_(program), replays_(replays) {
  JointChanges joint(index_);
  for (int i = 0; i < index_.size(); ++i) {
    const Hypotheses found = of_families(i);
    counts_.push_back(found.size());
    joint.add(i, found);
  }
  joint_ = joint.all();
  for (const auto& [op, changes] : joint_) counts_[op] += changes.size();
}

std::vector<FaultHypothesis> Catalogue::of_families(int op) const {
  constexpr std::array kFamilies{norm_faults,           missing_norm_faults, norm_eps_faults,   linear_faults,
                                 activation_faults,     constant_faults,     gated_faults,      soft_cap_faults,
                                 elementwise_faults,    difference_faults,   position_faults,   attention_faults,
                                 mask_faults,           rope_faults,         rope_table_faults, rope_angle_faults,
                                 rope_frequency_faults, cache_faults,        order_faults,      routing_faults,
                                 convolution_faults,    resize_faults,       alibi_faults,      cast_placements,
                                 fused_attention,       fused_bias,          broken_ties};
  Hypotheses found;
  if (index_.op(op).stands_for >= 0) return found;
  for (const auto& family : kFamilies) {
    try {
      family(index_, op, found);
    } catch (const std::exception&) {  // arguments that it did not expect: it has nothing to say about this op
    }
  }
  return found;
}

std::vector<FaultHypothesis> Catalogue::with_joint(int op) const {
  Hypotheses found = of_families(op);
  if (const auto more = joint_.find(op); more != joint_.end())
    found.insert(found.end(), more->second.begin(), more->second.end());
  return found;
}

std::vector<FaultHypothesis> Catalogue::unrounded_at(int op) const {
  Hypotheses found = with_joint(op);
  std::erase_if(found, [](const FaultHypothesis& h) { return h.gate == Gate::dtype_path || h.valid; });
  for (FaultHypothesis& h : found) h.exact = false, h.deviation.lane = replays_.free_size;
  return found;
}

std::vector<FaultHypothesis> Catalogue::at(int op) const {
  Hypotheses found = with_joint(op);
  for (FaultHypothesis& h : found) {
    h.exact = h.fixed_amplitude || h.gate == Gate::dtype_path || h.valid;
    const bool recorded = h.wide_op < 0 && (h.deviation.own_kernels || changes_no_sum(index_, h));
    h.deviation.lane = !h.exact ? replays_.free_size : recorded ? replays_.elementwise : replays_.sums;
    if (h.exact && h.gate != Gate::dtype_path && !h.valid)
      for (auto& [index, rewrite] : h.deviation.rewrites) rewrite = rounded_as_recorded(std::move(rewrite));
  }
  return found;
}

}  // namespace parity
