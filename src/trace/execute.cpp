#include "trace/execute.hpp"

#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>

#include <fmt/format.h>

#include <set>

#include "core/dtype_kind.hpp"
#include "core/error.hpp"
#include "trace/definitions.hpp"
#include "trace/device.hpp"
#include "trace/flow.hpp"
#include "trace/settings.hpp"
#include "trace/valid.hpp"

namespace parity {
namespace {

bool has_float_tensor(const torch::jit::Stack& stack) {
  for (const c10::IValue& value : stack) {
    if (value.isTensor() && value.toTensor().defined() && is_float(value.toTensor().scalar_type()) &&
        !value.toTensor().unsafeGetTensorImpl()->is_wrapped_number())
      return true;
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector())
        if (tensor.defined() && is_float(tensor.scalar_type())) return true;
  }
  return false;
}

// The dtype that an op on integers alone (arange, int / int) is meant to give.
std::optional<at::ScalarType> default_dtype_for(const Op& op, const torch::jit::Stack& stack, Precision precision) {
  if (has_float_tensor(stack)) return std::nullopt;
  for (const auto& output : op.outputs)
    if (output && is_float(output->dtype)) return redirect(at::toRealValueType(output->dtype), precision);
  return std::nullopt;
}

// Moves numbers without computing any: what a deviation left unrounded stays so.
// The very same, not equal ones.
bool same_arguments(const torch::jit::Stack& a, const torch::jit::Stack& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const c10::IValue& x, const c10::IValue& y) { return x.is(y); });
}

// What at::group_norm does before it calls its kernel, which refuses anything else: a value may have got other strides
// here than in the recorded run (convolutions in fp64 drop channels last).
void make_norm_fit(torch::jit::Stack& stack) {
  const at::Tensor& input = stack[0].toTensor();
  stack[0] = input.contiguous(input.suggest_memory_format());
}

// What is put into some rows of a buffer has the buffer's dtype: of a value left wider here than in the recorded run
// the port rounds the rows (experts' results, weighted).
void make_rows_fit(torch::jit::Stack& stack) {
  const at::ScalarType buffer = stack[0].toTensor().scalar_type();
  for (size_t i = 1; i < stack.size(); ++i)
    if (stack[i].isTensor() && stack[i].toTensor().defined() && is_float(stack[i].toTensor().scalar_type()))
      stack[i] = stack[i].toTensor().to(buffer);
}

void make_fit(const c10::OperatorHandle& handle, torch::jit::Stack& stack) {
  static const std::set<std::string_view> kPutsRows{"aten::index_add_", "aten::index_copy_", "aten::index_put_",
                                                    "aten::scatter_", "aten::scatter_add_"};
  const std::string& name = handle.operator_name().name;
  if (stack.empty() || !stack[0].isTensor()) return;
  if (name == "aten::native_group_norm") make_norm_fit(stack);
  if (kPutsRows.contains(name)) make_rows_fit(stack);
}

// The kernel's own complaint as ours.
torch::jit::Stack call_boxed(const c10::OperatorHandle& handle, torch::jit::Stack stack) {
  try {
    make_fit(handle, stack);
    handle.callBoxed(&stack);
  } catch (const std::exception& error) {  // c10::Error, std::bad_alloc, IndexError, …
    throw Error(complaint(error));
  }
  return stack;
}

// The CPU's fused attention does not look: arguments that do not fit end in a division by zero.
void require_attention_fits(const Op& op, const torch::jit::Stack& stack) {
  if (op.kind.find("scaled_dot_product") == std::string::npos || stack.size() < 3) return;
  if (!stack[0].isTensor() || !stack[1].isTensor() || !stack[2].isTensor()) return;
  const at::Tensor &query = stack[0].toTensor(), &key = stack[1].toTensor(), &value = stack[2].toTensor();
  const bool four = query.dim() == 4 && key.dim() == 4 && value.dim() == 4;
  if (!four || query.size(0) != key.size(0) || query.size(3) != key.size(3) || key.size(0) != value.size(0) ||
      key.size(1) != value.size(1) || key.size(2) != value.size(2) || key.size(1) == 0 ||
      query.size(1) % key.size(1) != 0 || key.size(2) == 0)
    throw Error("query, key and value do not fit together");
}

}  // namespace

std::string complaint(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch != nullptr ? torch->what_without_backtrace() : error.what();
  text.resize(std::min(text.find("\nException raised"), text.size()));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Executor::Executor(Precision precision, ValueLookup lookup, std::function<at::ScalarType(int64_t)> recorded_dtype,
                   Arithmetic arithmetic, ValueLookup leaf, ValueLookup raised)
    : precision_(precision),
      lookup_(std::move(lookup)),
      recorded_dtype_(std::move(recorded_dtype)),
      arithmetic_(precision == Precision::fp64 ? Arithmetic::kernel : arithmetic),
      leaf_(std::move(leaf)),
      raised_(std::move(raised)) {}

Executed Executor::run(const Op& op, bool writes, const Rewrite* rewrite) const {
  const auto handle = find_operator(op.name);
  if (!handle)
    throw Error(
        "this LibTorch has no such operator; use the recording's version of PyTorch, or record the op as opaque");
  Executed done;
  done.dynamic = handle->hasTag(at::Tag::dynamic_output_shape);
  done.results = call(op, *handle, writes, rewrite);
  done.results.resize(std::max(done.results.size(), op.outputs.size()));
  for (size_t j = 0; j < op.outputs.size(); ++j) {
    auto& result = done.results[j];
    if (!op.outputs[j] || !result) continue;
    const at::ScalarType wanted = redirect(op.outputs[j]->dtype, precision_), got = result->scalar_type();
    // Exact arithmetic goes on with what is not rounded: a rewrite's result, a port's wider value.
    const bool keeps = (arithmetic_ == Arithmetic::exact || exact_where_changed_) &&
                       at::isComplexType(got) == at::isComplexType(wanted);
    if (got == wanted || (keeps && is_float(got) && is_float(wanted))) continue;
    const bool floats = is_float(wanted) && is_float(got);
    if (floats && is_for_derivative(op.kind, j)) {  // another device's kernel leaves it in another dtype
      result = result->to(wanted);
      continue;
    }
    if (precision_ == Precision::recorded || writes || !floats)
      throw Error(fmt::format("output {} is {} where {} was expected", j, dtype_name(got), dtype_name(wanted)));
    result = result->to(wanted);
    done.lowered = true;
  }
  return done;
}

bool Executor::runs_exactly(const Op& op, const Rewrite* rewrite) const {
  if (arithmetic_ == Arithmetic::exact) return true;
  if (!exact_where_changed_ || rewrite != nullptr) return exact_where_changed_;
  std::vector<int64_t> reads;
  for (const auto& argument : op.args) collect_ids(argument, reads);
  return std::any_of(reads.begin(), reads.end(),
                     [&](int64_t id) { return lookup_(id).scalar_type() != recorded_dtype_(id); });
}

// A kernel for other dtypes may lay out its result otherwise (convolutions in fp64 drop channels last), and a recorded
// view fit the recorded layout: the same numbers in memory of its own.
torch::jit::Stack Executor::laid_out(const Op& op, torch::jit::Stack stack) const {
  if ((op.name != "aten::view" && op.name != "aten::_unsafe_view") || !written_ || stack.size() < 2 ||
      !stack[0].isTensor() || !stack[1].isIntList())
    return stack;
  const at::Tensor self = stack[0].toTensor();
  const auto sizes = at::infer_size(stack[1].toIntVector(), self.numel());
  std::vector<int64_t> reads;
  collect_ids(op.args[0], reads);
  if (!at::detail::computeStride(self.sizes(), self.strides(), sizes) && reads.size() == 1 && !written_(reads[0]))
    stack[0] = self.contiguous();
  return stack;
}

Results Executor::call(const Op& op, const c10::OperatorHandle& handle, bool writes, const Rewrite* rewrite) const {
  if (!writes && !op.view && runs_exactly(op, rewrite)) return call_exactly(op, rewrite);
  if (reinterprets_bits(op)) return call_as_recorded(op, handle);
  torch::jit::Stack stack = laid_out(op, arguments(op, handle.schema()));
  if (rewrite == nullptr) return call_unchanged(op, handle, stack, writes);
  const auto run = [&](const torch::jit::Stack& given) {
    return same_arguments(given, stack) ? call_unchanged(op, handle, stack, writes)
                                        : call_with(op, handle, given, writes, true);
  };
  OpCall rewritten{op, handle.schema(), stack, run, nullptr, leaf_};
  return (*rewrite)(rewritten);
}

Results Executor::call_unchanged(const Op& op, const c10::OperatorHandle& handle, const torch::jit::Stack& stack,
                                 bool writes) const {
  const auto compute = [&] { return call_with(op, handle, stack, writes); };
  return once_ && !writes && !op.view ? once_(op, compute) : compute();
}

Results Executor::call_with(const Op& op, const c10::OperatorHandle& handle, const torch::jit::Stack& stack,
                            bool writes, bool rewritten) const {
  const Definition* definition = find_definition(op.name);
  require_attention_fits(op, stack);
  const DefaultDtype default_dtype(default_dtype_for(op, stack, precision_));
  if (arithmetic_ != Arithmetic::kernel && arithmetic_ != Arithmetic::exact && !writes && !op.view) {
    const auto kernel = [&](const torch::jit::Stack& other) { return flatten_results(call_boxed(handle, other)); };
    if (auto results = run_otherwise(arithmetic_, op, handle.schema(), stack, kernel)) return *results;
    if (computed_)
      if (auto results = computed_(op)) return *results;
  }
  const bool runs = definition == nullptr || (replay_device().is_cuda() ? definition->on_cuda : definition->on_cpu);
  if (!runs) return definition->compute(handle.schema(), stack);
  try {
    return flatten_results(call_boxed(handle, stack));
  } catch (const Error&) {
    // Kernels for some dtypes only (_grouped_mm, int8 and fp8 products; histograms of integers on a GPU): their
    // definition, else the deployed dtype, which is then reported.
    if (writes || op.view) throw;
    if (definition != nullptr) return definition->compute(handle.schema(), stack);
    // Nothing else to call: as recorded it was called just now, and a rewritten op's recorded arguments would silently
    // take the changed ones' place.
    if (precision_ == Precision::recorded || rewritten) throw;
  }
  return call_as_recorded(op, handle);
}

// The op in fp64 on arguments as they are, the result rounded once.
Results Executor::call_exactly(const Op& op, const Rewrite* rewrite) const {
  bool wide = false;  // an argument that a deviation left unrounded
  const ValueLookup raised = [&](int64_t id) {
    wide = wide || lookup_(id).scalar_type() != recorded_dtype_(id);
    return raised_(id);
  };
  const auto rounded = [&](Results results) {
    if (wide && (op.view || only_moves(op.kind))) return results;
    for (size_t j = 0; j < results.size() && j < op.outputs.size(); ++j)
      if (results[j] && op.outputs[j]) results[j] = results[j]->to(redirect(op.outputs[j]->dtype, precision_));
    return results;
  };
  const ValueLookup leaf = [&](int64_t id) {
    const at::Tensor value = leaf_(id);
    return value.to(redirect(value.scalar_type(), Precision::fp64));
  };
  Executor exact(Precision::fp64, raised, recorded_dtype_, Arithmetic::kernel, leaf);
  exact.compute_once(once_);
  if (rewrite == nullptr) return rounded(exact.run(op, false).results);
  const Rewrite outer = [&](OpCall& call) {
    OpCall both = call;
    both.unrounded = call.run;
    both.run = [&](const torch::jit::Stack& stack) { return rounded(call.run(stack)); };
    return (*rewrite)(both);
  };
  return exact.call(op, *find_operator(op.name), false, &outer);
}

// Arguments rounded to the recorded dtypes, so that a kernel without fp64 runs: the result carries its rounding.
Results Executor::call_as_recorded(const Op& op, const c10::OperatorHandle& handle) const {
  const ValueLookup lowered = [&](int64_t id) { return lookup_(id).to(recorded_dtype_(id)); };
  return flatten_results(call_boxed(handle, read_arguments(op, handle.schema(), Precision::recorded, lowered)));
}

torch::jit::Stack Executor::arguments(const Op& op, const c10::FunctionSchema& schema) const {
  torch::jit::Stack stack = read_arguments(op, schema, precision_, lookup_);
  std::vector<int64_t> reads;
  for (const auto& argument : op.args) collect_ids(argument, reads);
  // A factory without a dtype took its process's default: say it.
  const auto dtype = argument_index(schema, "dtype");
  if (dtype && stack[*dtype].isNone() && reads.empty() && !op.outputs.empty() && op.outputs.front())
    stack[*dtype] = static_cast<int64_t>(redirect(op.outputs.front()->dtype, precision_));
  // softmax(half) -> float in one kernel exists on GPUs alone: convert first.
  const auto flag = argument_index(schema, "half_to_float");
  const bool runs_whole = replay_device().is_cuda() && precision_ == Precision::recorded;
  if (!runs_whole && flag && stack[*flag].isBool() && stack[*flag].toBool() && stack[0].isTensor()) {
    stack[0] = stack[0].toTensor().to(redirect(at::kFloat, precision_));
    stack[*flag] = false;
  }
  return stack;
}

// `view.dtype` of a float whose dtype is redirected: other bits, other numbers.
bool Executor::reinterprets_bits(const Op& op) const {
  if (precision_ == Precision::recorded || op.name != "aten::view.dtype" || op.outputs.empty() || !op.outputs[0])
    return false;
  std::vector<int64_t> reads;
  collect_ids(op.args, reads);
  const auto changes = [&](at::ScalarType dtype) { return redirect(dtype, precision_) != dtype; };
  return changes(op.outputs[0]->dtype) || (!reads.empty() && changes(recorded_dtype_(reads[0])));
}

}  // namespace parity
