#include "trace/lane.hpp"

#include <ATen/MemoryOverlap.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "dump/placement.hpp"
#include "trace/device.hpp"

namespace parity {

namespace {

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.is_same(b) || (a.scalar_type() == b.scalar_type() && a.const_data_ptr() == b.const_data_ptr() &&
                          a.sizes() == b.sizes() && a.strides() == b.strides());
}

// On a device: its kernels do not look at where within a cache line a tensor begins.
at::Tensor strided_like(const at::Tensor& tensor, const at::Tensor& like) { return at::empty_like(like).copy_(tensor); }

bool wider(at::ScalarType a, at::ScalarType b) {
  return at::isFloatingType(a) && at::isFloatingType(b) && c10::elementSize(a) > c10::elementSize(b);
}

}  // namespace

Lane::Lane(const Dump& dump, const Program& program, const Flow& flow, Leaves& leaves, ReplayOptions options)
    : dump_(dump),
      program_(program),
      flow_(flow),
      options_(std::move(options)),
      end_(options_.end < 0 ? static_cast<int>(program.ops.size()) : options_.end),
      executor_(
          options_.precision, [this](int64_t id) { return get(id); }, [this](int64_t id) { return dtypes_.at(id); },
          options_.arithmetic, nullptr, [this](int64_t id) { return raised(id); }),
      leaves_(leaves) {
  executor_.tell_written([this](int64_t id) { return flow_.written_from(id, 0); });
  if (options_.precision == Precision::fp64 || options_.arithmetic == Arithmetic::exact)
    executor_.compute_once([this](const Op& op, const auto& compute) { return once(op, compute); });
  for (const Leaf& leaf : program.leaves) dtypes_[leaf.value.id] = leaf.value.dtype;
  for (const Op& op : program.ops)
    for (const auto& output : op.outputs)
      if (output) dtypes_.try_emplace(output->id, output->dtype);
  if (options_.begin < 0 || end_ > static_cast<int>(program_.ops.size()) || options_.begin > end_)
    throw Error(fmt::format("{}: ops [{}, {}) are outside the program of {} ops", dump_.file().string(), options_.begin,
                            end_, program_.ops.size()));
  if (options_.part) {
    plan_ = plan_of_part(program_, flow_, *options_.part);
    end_ = static_cast<int>(plan_.steps.size());
    return;
  }
  std::unordered_set<int64_t> given;
  for (const auto& [id, tensor] : options_.given) given.insert(id);
  plan_ = make_plan(program_, flow_, options_.begin, end_, given);
}

bool has_stored_results(const Op& op) {
  return std::all_of(op.outputs.begin(), op.outputs.end(), [](const auto& o) { return !o || !o->key.empty(); }) &&
         std::all_of(op.writes.begin(), op.writes.end(), [](const Value& value) { return !value.key.empty(); });
}

Results Lane::once(const Op& op, const std::function<Results()>& compute) {
  if (once_.first != &op) once_ = {&op, compute()};
  return once_.second;
}

// Somebody else's tensor for value `id`; ops that write in place must not reach its memory.
at::Tensor Lane::adopt(const at::Tensor& tensor, int64_t id) const {
  const at::ScalarType dtype = redirect(dtypes_.at(id), options_.precision);
  return tensor.to(replay_device(), dtype, /*non_blocking=*/false, /*copy=*/flow_.written_from(id, 0));
}

void Lane::step(int i) {
  const Op& op = program_.ops[i];
  const bool grad = op.module_call >= 0 && program_.calls[op.module_call].grad;  // some kernels look at it
  const c10::AutoGradMode mode(options_.differentiable ? at::GradMode::is_enabled()
                                                       : grad && options_.precision == Precision::recorded);
  try {
    if (plan_.steps[i] == Step::load)
      take_stored(op);
    else if (!op.opaque.empty() && has_stored_results(op))
      take_opaque(op, i);
    else
      execute(op, i);
  } catch (const std::exception& error) {  // ours, and LibTorch's from what a definition or another order calls
    throw Error(
        fmt::format("{}: event {}, {} ({}): {}", dump_.file().string(), op.event, op.path, op.name, complaint(error)));
  }
}

void Lane::take_results(int i, Lane& other, const std::string& problem) {
  report_.taken.push_back(problem);
  const Op& op = program_.ops[i];
  const auto take = [&](const Value& value) {
    if (other.alive(value.id))
      put(value, other.get(value.id).to(replay_device(), redirected(value), /*non_blocking=*/false, /*copy=*/true));
  };
  for (const auto& output : op.outputs)
    if (output) take(*output);
  for (const Value& value : op.writes) take(value);
}

void Lane::take_from(const Lane& kernels) {
  executor_.take_from([this, &kernels](const Op& op) { return computed_in(kernels, op); });
}

// Memory that is written to later must not be shared.
std::optional<Results> Lane::computed_in(const Lane& kernels, const Op& op) {
  std::vector<int64_t> reads;
  for (const nlohmann::json* arguments : {&op.args, &op.kwargs}) collect_ids(*arguments, reads);
  for (const int64_t id : reads)
    if (!kernels.alive(id) || !same_memory(get(id), kernels.values_.at(id))) return std::nullopt;
  Results results(op.outputs.size());
  for (size_t j = 0; j < op.outputs.size(); ++j) {
    if (!op.outputs[j]) continue;
    const auto found = kernels.values_.find(op.outputs[j]->id);
    if (found == kernels.values_.end() || flow_.written_from(op.outputs[j]->id, 0)) return std::nullopt;
    results[j] = found->second;
  }
  return results;
}

void Lane::take_stored(const Op& op) {
  for (const auto& output : op.outputs)
    if (output && plan_.uses.contains(output->id)) put(*output, stored(*output));
}

// In place: the memory that others share gets the stored numbers.
void Lane::put(const Value& output, at::Tensor tensor) {
  if (const auto found = values_.find(output.id); found != values_.end())
    found->second.copy_(tensor);
  else
    values_[output.id] = std::move(tensor);
}

void Lane::take_opaque(const Op& op, int i) {
  for (const int64_t id : flow_.ops[i].writes) {
    const bool returned =
        std::any_of(op.outputs.begin(), op.outputs.end(), [&](const auto& o) { return o && o->id == id; });
    if (!returned && std::none_of(op.writes.begin(), op.writes.end(), [&](const Value& v) { return v.id == id; }))
      throw Error(fmt::format("is opaque ({}) and writes to value {}, whose result is not stored", op.opaque, id));
    get(id);
  }
  for (const auto& output : op.outputs)
    if (output) put(*output, stored(*output));
  for (const Value& value : op.writes) put(value, stored(value));
  note_selection(op, i);
  report_.opaque.push_back(fmt::format("{} ({}): {}", op.path, op.name, op.opaque));
}

void Lane::execute(const Op& op, int i) {
  const OpFlow& flow = flow_.ops[i];
  if (flow.fresh.empty() && flow.writes.empty()) return;  // .item(), checks: their result is a literal of later ops
  const bool uninitialised = is_uninitialised(op.kind);
  if (!op.opaque.empty() && !uninitialised)
    throw Error(fmt::format("is opaque ({}) and its result is not stored; record it with level=\"op\"", op.opaque));
  Executed done = executor_.run(op, !flow.writes.empty());
  for (size_t j = 0; j < op.outputs.size(); ++j) {
    if (!op.outputs[j]) continue;
    if (uninitialised && flow.writes.empty() && done.results[j])
      done.results[j]->zero_();  // the same numbers every time
    values_[op.outputs[j]->id] =
        done.results[j] ? fitting(op, *op.outputs[j], *done.results[j], done.dynamic) : filler(*op.outputs[j]);
  }
  if (done.lowered && options_.precision == Precision::fp64)
    report_.lowered.push_back(fmt::format("{} ({})", op.path, op.name));
}

// Later ops hold sizes of the recorded run. Where values decide the size (a mask), the stored result goes on in its
// place.
at::Tensor Lane::fitting(const Op& op, const Value& recorded, const at::Tensor& result, bool dynamic) {
  if (recorded.nested || result.sizes().vec() == recorded.shape) return result;
  if (!dynamic || recorded.key.empty())
    throw Error(fmt::format("gives shape [{}] where [{}] was recorded", fmt::join(result.sizes(), ", "),
                            fmt::join(recorded.shape, ", ")));
  report_.opaque.push_back(fmt::format("{} ({}): its size depends on values and differs", op.path, op.name));
  return stored(recorded);
}

// What a definition does not compute (random states, debug masks): as stored, else zeros.
at::Tensor Lane::filler(const Value& output) const {
  return output.key.empty() ? at::zeros(output.shape, at::TensorOptions(replay_device()).dtype(redirected(output)))
                            : stored(output);
}

// Kept between uses this near: a weight that each of many experts takes a slice of is converted once.
constexpr int kSoon = 64;

bool Lane::rereadable(int64_t id) const {
  return leaves_.shared(id) && !options_.given.contains(id) && !replaced_.contains(id);
}

bool Lane::used_again_soon(int64_t id, int op) const {
  const int end = std::min(end_, op + 1 + kSoon);
  for (int i = op + 1; i < end; ++i)
    if (plan_.steps[i] == Step::run &&
        std::find(flow_.ops[i].reads.begin(), flow_.ops[i].reads.end(), id) != flow_.ops[i].reads.end())
      return true;
  return false;
}

void Lane::release(int i) {
  raised_.clear();
  once_ = {};
  if (plan_.steps[i] == Step::run)
    for (const int64_t id : flow_.ops[i].reads) {
      const bool done = --plan_.uses[id] <= 0;
      if (done || (rereadable(id) && !used_again_soon(id, i))) drop(id);
    }
  for (const int64_t id : flow_.ops[i].fresh)
    if (plan_.uses[id] <= 0) drop(id);
}

at::Tensor Lane::at_boundary(size_t boundary) {
  return on_host(get(program_.boundaries[boundary].value.id).resolve_conj().resolve_neg());
}

void Lane::exchange(size_t index, const at::Tensor& replacement) {
  const Boundary& boundary = program_.boundaries[index];
  const at::Tensor value = get(boundary.value.id);
  replaced_.insert(boundary.value.id);
  if (replacement.sizes() != value.sizes())
    throw Error(fmt::format("{}: the value given for '{}' has shape [{}], the reference's [{}]", dump_.file().string(),
                            boundary.path, fmt::join(replacement.sizes(), ", "), fmt::join(value.sizes(), ", ")));
  replace(boundary.value.id, value, replacement);
}

// Memory that in-place ops write to is one tensor under several names: all of them see the new values. Elsewhere only
// this value is exchanged, so that other readers of a base (a weight, a residual) keep theirs.
void Lane::replace(int64_t id, const at::Tensor& value, const at::Tensor& replacement) {
  if (flow_.written_from(id, 0) && at::has_internal_overlap(value) != at::MemOverlap::Yes)
    value.copy_(replacement);
  else if (options_.arithmetic == Arithmetic::exact && wider(replacement.scalar_type(), value.scalar_type()))
    values_[id] = on_replay_device(replacement);
  else
    values_[id] = value.is_cpu() ? placed_like(replacement, value) : strided_like(replacement, value);
}

void Lane::begin_call(const ModuleCall& call) {
  for (const Value& input : call.inputs) {
    const Leaf* leaf = leaves_.find(input.id);
    const bool as_recorded = leaf != nullptr && leaf->value.key == input.key;  // nothing wrote to it
    if (!as_recorded && !input.key.empty() && alive(input.id)) replace(input.id, get(input.id), stored(input));
  }
}

void Lane::leave(size_t boundary) {
  const int64_t id = program_.boundaries[boundary].value.id;
  if (--plan_.uses[id] <= 0) drop(id);
}

}  // namespace parity
