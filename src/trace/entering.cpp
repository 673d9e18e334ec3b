#include "trace/entering.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "dump/placement.hpp"

namespace parity {
namespace {

ReplayOptions options_for(const Selection& selection, bool from_begin) {
  ReplayOptions options;
  options.begin = from_begin ? 0 : selection.begin;
  options.end = selection.end;
  return options;
}

int64_t end_of(const at::Tensor& tensor) {  // elements of the storage up to its last one
  int64_t end = tensor.storage_offset() + 1;
  for (int64_t axis = 0; axis < tensor.dim(); ++axis) end += (tensor.size(axis) - 1) * tensor.stride(axis);
  return end;
}

// The part of a storage that these tensors lie in, as one row of elements.
at::Tensor memory_behind(const std::vector<at::Tensor>& members) {
  const at::Tensor& first = members.front();
  int64_t begin = first.storage_offset(), end = end_of(first);
  for (const at::Tensor& member : members) {
    if (member.is_conj() || member.is_neg() || member.scalar_type() != first.scalar_type() ||
        !member.storage().is_alias_of(first.storage()))
      throw Error("memory that is written to is seen under several dtypes; extract the module around it");
    begin = std::min(begin, member.storage_offset());
    end = std::max(end, end_of(member));
  }
  return first.as_strided({end - begin}, {1}, begin);
}

}  // namespace

Approach::Approach(const Dump& dump, const Program& program, const Flow& flow, const Selection& selection,
                   std::set<int64_t> wanted, const PortValues& port, ShareDone progress)
    : program_(program),
      flow_(flow),
      selection_(selection),
      wanted_(std::move(wanted)),
      port_(port),
      progress_(std::move(progress)),
      leaves_(dump, program, flow),
      lane_(dump, program, flow, leaves_, options_for(selection, port != nullptr)) {
  for (const Leaf& leaf : program.leaves)  // a held alias is made from its base
    if (leaf.base >= 0 && wanted_.contains(leaf.value.id)) wanted_.insert(leaf.base);
}

void Approach::hold(int64_t id) {
  if (wanted_.contains(id) && lane_.alive(id)) held_[id] = lane_.get(id);
}

void Approach::step(int op) {
  if (progress_) progress_((op + 1) / static_cast<double>(selection_.end));
  if (lane_.skips(op)) return;
  lane_.step(op);
  for (const int64_t id : flow_.ops[op].reads) hold(id);
  for (const int64_t id : flow_.ops[op].fresh) hold(id);
  lane_.release(op);
  leaves_.sweep();
}

void Approach::cross(int position) {
  for (; next_boundary_ < program_.boundaries.size() && program_.boundaries[next_boundary_].position == position;
       ++next_boundary_) {
    const Boundary& boundary = program_.boundaries[next_boundary_];
    if (const auto value = boundary.value.nested ? std::nullopt : port_(next_boundary_)) {
      lane_.exchange(next_boundary_, *value);
      hold(boundary.value.id);
    }
    lane_.leave(next_boundary_);
  }
}

void Approach::run_to_begin() {
  for (int i = 0; i < selection_.begin; ++i) {
    if (port_) cross(i);
    step(i);
  }
  if (port_) cross(selection_.begin);
}

void Approach::run_selection() {
  for (int i = selection_.begin; i < selection_.end; ++i) step(i);
}

std::optional<at::Tensor> Approach::find(int64_t id) {
  if (const auto held = held_.find(id); held != held_.end()) return held->second;
  if (lane_.alive(id)) return lane_.get(id);
  const Leaf* leaf = leaves_.find(id);
  if (leaf == nullptr) return std::nullopt;
  const Leaf& found = *leaf;
  if (found.value.key.empty() && found.base < 0) return std::nullopt;
  if (found.base >= 0) {  // an alias of memory that may be held here alone
    const auto base = find(found.base);
    if (!base) return std::nullopt;
    if (found.value.key.empty() || flow_.written_from(found.base, 0) || leaves_.find(found.base) == nullptr)
      return held_[id] = lane_.alias_in(*base, found);
  }
  return held_[id] = lane_.get(id);
}

std::vector<EnteringLeaf> lay_out(const std::map<int64_t, at::Tensor>& values,
                                  const std::function<bool(int64_t id)>& written, int64_t& next_id) {
  std::map<const void*, std::vector<int64_t>> shared;  // written memory -> who lies there
  std::vector<std::vector<int64_t>> groups;
  for (const auto& [id, tensor] : values) {
    if (tensor.numel() > 0 && written(id))
      shared[tensor.storage().unsafeGetStorageImpl()].push_back(id);
    else
      groups.push_back({id});
  }
  for (auto& [storage, ids] : shared) groups.push_back(std::move(ids));
  std::vector<EnteringLeaf> leaves;
  for (const std::vector<int64_t>& ids : groups) {
    const at::Tensor& first = values.at(ids.front());
    const bool lazy = first.is_conj() || first.is_neg();
    if (ids.size() == 1 && (lazy || first.numel() == 0 || first.is_non_overlapping_and_dense())) {
      leaves.push_back({ids.front(), first, -1, {}, 0});
      continue;
    }
    std::vector<at::Tensor> members;
    for (const int64_t id : ids) members.push_back(values.at(id));
    const at::Tensor memory = memory_behind(members);
    const auto whole = std::find_if(ids.begin(), ids.end(), [&](int64_t id) {
      return values.at(id).is_non_overlapping_and_dense() && values.at(id).numel() == memory.numel();
    });
    const int64_t base = whole == ids.end() ? next_id++ : *whole;
    leaves.push_back({base, whole == ids.end() ? memory : values.at(*whole), -1, {}, 0, whole == ids.end()});
    for (const int64_t id : ids)
      if (id != base)
        leaves.push_back({id, values.at(id), base, values.at(id).strides().vec(),
                          values.at(id).storage_offset() - memory.storage_offset()});
  }
  return leaves;
}

at::Tensor state_with(const EnteringLeaf& leaf, const std::vector<EnteringLeaf>& all,
                      const std::function<std::optional<at::Tensor>(int64_t id)>& of) {
  // Elements that share memory cannot be written into it: such a value stands for itself.
  const auto alone = [](const EnteringLeaf& l) {
    return l.base < 0 || !lie_apart(l.tensor.sizes(), l.tensor.strides());
  };
  if (!leaf.made) return alone(leaf) ? of(leaf.id).value_or(at::Tensor()) : at::Tensor();
  at::Tensor memory;  // zero between its views: what lay there is nobody's value
  for (const EnteringLeaf& member : all) {
    const auto value = member.base == leaf.id && !alone(member) ? of(member.id) : std::nullopt;
    if (!value) continue;
    if (!memory.defined()) memory = at::zeros_like(leaf.tensor);
    memory.as_strided(member.tensor.sizes(), member.strides, member.offset).copy_(*value);
  }
  return memory;
}

}  // namespace parity
