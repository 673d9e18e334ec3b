#include "trace/variant_run.hpp"

#include "core/error.hpp"
#include "trace/device.hpp"
#include "trace/operator.hpp"

namespace parity {

VariantRun::VariantRun(size_t number, Deviation deviation, const Program& program, const Flow& flow, Lane& lane)
    : number_(number),
      deviation_(std::move(deviation)),
      program_(program),
      flow_(flow),
      lane_(lane),
      executor_(
          lane.options().precision,
          [this](int64_t id) {
            const auto found = differing_.find(id);
            return found == differing_.end() ? lane_.get(id) : found->second;
          },
          [this](int64_t id) { return lane_.recorded_dtype(id); }, lane.options().arithmetic,
          [this](int64_t id) { return lane_.leaf(id); },
          [this](int64_t id) {
            const auto found = differing_.find(id);
            if (found == differing_.end()) return lane_.raised(id);
            return found->second.to(redirect(found->second.scalar_type(), Precision::fp64));
          }) {
  executor_.tell_written([this](int64_t id) { return flow_.written_from(id, 0); });
  const ReplayOptions& options = lane.options();
  if (options.precision == Precision::recorded && options.arithmetic == Arithmetic::kernel && !deviation_.own_kernels)
    executor_.exact_where_changed();
  // Every rewrite of the results alone begins with the op as it was.
  executor_.compute_once(
      [this](const Op& op, const auto& compute) { return touched_ ? compute() : lane_.once(op, compute); });
}

void VariantRun::step(int index) {
  const OpFlow& op = flow_.ops[index];
  touched_ = std::any_of(op.reads.begin(), op.reads.end(), [&](int64_t id) { return differing_.contains(id); });
  if (dead_ || (!touched_ && !deviation_.rewrites.contains(index))) return;
  if (op.fresh.empty() && op.writes.empty()) return;
  // Stored results stand for an opaque op in every variant run; an empty buffer has none.
  if (!program_.ops[index].opaque.empty() && !is_uninitialised(program_.ops[index].kind)) return;
  try {
    for (const int64_t id : op.writes) take_over(id);
    compute(program_.ops[index], index);
  } catch (const std::exception&) {  // LibTorch's complaints and ours: this fault cannot be put in here
    die();
  }
}

void VariantRun::die() {
  dead_ = true;
  differing_.clear();
  memory_.clear();
  bytes_ = 0;
}

void VariantRun::count(const at::Tensor& value, int uses) {
  if (!value.has_storage()) return;
  const auto* const storage = value.storage().unsafeGetStorageImpl();
  auto& [users, size] = memory_[storage];
  if (users == 0) bytes_ += size = static_cast<int64_t>(storage->nbytes());
  users += uses;
  if (users > 0) return;
  bytes_ -= size;
  memory_.erase(storage);
}

void VariantRun::put(int64_t id, const at::Tensor& value) {
  count(value, 1);
  drop(id);
  differing_[id] = value;
}

void VariantRun::drop(int64_t id) {
  const auto found = differing_.find(id);
  if (found == differing_.end()) return;
  count(found->second, -1);
  differing_.erase(found);
}

void VariantRun::compute(const Op& op, int index) {
  const auto rewrite = deviation_.rewrites.find(index);
  const Executed done = executor_.run(op, !flow_.ops[index].writes.empty(),
                                      rewrite == deviation_.rewrites.end() ? nullptr : &rewrite->second);
  for (size_t j = 0; j < op.outputs.size(); ++j) {
    if (!op.outputs[j] || !done.results[j]) continue;
    if (!done.results[j]->defined()) throw Error("a rewrite gave no tensor");
    const int64_t id = op.outputs[j]->id;
    if (flow_.ops[index].writes.empty() && as_in_lane(id, *done.results[j]))
      drop(id);
    else
      put(id, *done.results[j]);
  }
}

// What is written to later stays this run's own, equal or not.
bool VariantRun::as_in_lane(int64_t id, const at::Tensor& result) const {
  if (!lane_.alive(id) || flow_.written_from(id, 0)) return false;
  const at::Tensor& own = lane_.values().at(id);
  return own.scalar_type() == result.scalar_type() && own.sizes() == result.sizes() && at::equal(own, result);
}

void VariantRun::take_over(int64_t id) {
  const auto own = differing_.find(id);
  const at::Tensor written = own == differing_.end() ? lane_.get(id) : own->second;
  const auto shares = [&](const at::Tensor& tensor) {
    return tensor.is_alias_of(written) && tensor.scalar_type() == written.scalar_type();
  };
  // A view made in this variant run may still lie in the replay's memory.
  if (std::none_of(lane_.values().begin(), lane_.values().end(), [&](const auto& v) { return shares(v.second); }))
    return;
  const auto elements = static_cast<int64_t>(written.storage().nbytes() / written.element_size());
  const at::Tensor whole = at::empty({0}, written.options()).set_(written.storage(), 0, {elements}, {1}).clone();
  const auto moved = [&](const at::Tensor& tensor) {
    return whole.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  };
  std::vector<std::pair<int64_t, at::Tensor>> own_now;
  for (const auto& [other, tensor] : differing_)
    if (shares(tensor)) own_now.emplace_back(other, moved(tensor));
  for (const auto& [other, tensor] : lane_.values())
    if (!differing_.contains(other) && shares(tensor)) own_now.emplace_back(other, moved(tensor));
  for (const auto& [other, tensor] : own_now) put(other, tensor);
}

void VariantRun::release() {
  for (const int64_t id : lane_.dropped()) drop(id);
}

at::Tensor VariantRun::at_boundary(size_t boundary) const {
  const auto found = differing_.find(program_.boundaries[boundary].value.id);
  const Value& recorded = program_.boundaries[boundary].value;
  if (found == differing_.end() || found->second.sizes().vec() != recorded.shape ||
      found->second.is_complex() != at::isComplexType(recorded.dtype))
    return {};  // nothing that could be projected on
  return on_host(found->second.resolve_conj().resolve_neg());
}

void VariantRun::exchange(size_t boundary) {
  const int64_t id = program_.boundaries[boundary].value.id;
  const auto found = differing_.find(id);
  if (found == differing_.end()) return;
  if (!flow_.written_from(id, 0)) return drop(id);
  const at::Tensor replaced = found->second;  // one memory under several names
  std::vector<int64_t> names;
  for (const auto& [other, tensor] : differing_)
    if (tensor.is_alias_of(replaced)) names.push_back(other);
  for (const int64_t name : names) drop(name);
}

bool VariantRun::over(int op) const {
  return dead_ || (differing_.empty() && deviation_.rewrites.upper_bound(op) == deviation_.rewrites.end());
}

}  // namespace parity
