// A boxed fallback on the dispatch key that lies just above the CPU's kernels and Python's TorchDispatchMode and that
// nothing in LibTorch uses: DispatchKey::Fake was reserved for torchdistx, a project of its own. Ops with only a
// composite kernel are taken apart by running it, with the key still included.
#include "trace/capture.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "core/precision.hpp"
#include "trace/arguments.hpp"
#include "trace/encode.hpp"
#include "trace/program.hpp"

namespace parity {
namespace {

constexpr c10::DispatchKey kSeen = c10::DispatchKey::Fake;

thread_local Capture* capturing = nullptr;
thread_local const std::function<void(CapturedOp)>* told = nullptr;

void run_unseen(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard guard(kSeen);
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kSeen), stack);
}

bool is_composite(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

bool gives_views(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns())
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return true;
  return false;
}

std::string recorded_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

nlohmann::json results_of(const torch::jit::Stack& stack, std::vector<int64_t>& makes) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& tensor : flatten_results(stack)) {
    out.push_back(tensor ? encode_value(capturing->id_of(*tensor), *tensor) : nlohmann::json());
    if (tensor) makes.push_back(capturing->id_of(*tensor));
  }
  return out;
}

// FORMAT.md: results that are floats are stored, too, but the op is run.
bool gives_indices(const nlohmann::json& results) {
  return std::all_of(results.begin(), results.end(), [](const nlohmann::json& value) {
    return value.is_object() && !at::isFloatingType(parse_dtype(value["d"].get<std::string>()));
  });
}

// Of what is indexed, a mask's values say how many elements are taken; whole numbers only say which.
bool sized_by_values(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  if (op.operator_name().name != "aten::index") return op.hasTag(at::Tag::dynamic_output_shape);
  const auto indices = arguments.at(1).toListRef();
  return std::any_of(indices.begin(), indices.end(), [](const c10::IValue& index) {
    return index.isTensor() &&
           (index.toTensor().scalar_type() == at::kBool || index.toTensor().scalar_type() == at::kByte);
  });
}

void see(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (capturing == nullptr) return run_unseen(op, keys, stack);
  if (is_composite(op))
    return op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kSeen), stack);
  const c10::FunctionSchema& schema = op.schema();
  const size_t count = schema.arguments().size();
  CapturedOp captured;
  const auto id_of = [&](const at::Tensor& tensor) {
    captured.reads.push_back(capturing->id_of(tensor));
    return captured.reads.back();
  };
  const c10::ArrayRef<c10::IValue> arguments(stack->data() + stack->size() - count, count);
  EncodedArguments encoded = encode_arguments(schema, arguments, id_of);
  captured.dynamic = sized_by_values(op, arguments);
  const size_t before = stack->size() - count;
  run_unseen(op, keys, stack);
  captured.event = {{"e", "op"}, {"op", recorded_name(op.operator_name())}, {"args", std::move(encoded.args)}};
  captured.event["kwargs"] = std::move(encoded.kwargs);
  captured.event["out"] =
      results_of({stack->begin() + static_cast<std::ptrdiff_t>(before), stack->end()}, captured.makes);
  if (gives_views(schema)) captured.event["view"] = true;
  if (captured.dynamic && gives_indices(captured.event["out"])) captured.event["opaque"] = kDataDependent;
  if (!captured.makes.empty()) (*told)(std::move(captured));
}

// Made when it is first wanted: a fallback costs every op of the process an entry in its table.
void listen() {
  static const auto* library = [] {
    auto* made = new torch::Library(torch::Library::IMPL, "_", kSeen, __FILE__, __LINE__);
    made->fallback(torch::CppFunction::makeFromBoxedFunction<&see>());
    return made;
  }();
  static_cast<void>(library);
}

}  // namespace

struct Capture::Impl {
  std::function<void(CapturedOp)> op;
  std::unordered_map<const c10::TensorImpl*, int64_t> ids;
  std::unordered_map<int64_t, at::Tensor> tensors;  // alive, so that no other tensor gets their place in memory
  int64_t next = 0;
};

Capture::Capture(std::function<void(CapturedOp)> op) : impl_(std::make_unique<Impl>()) {
  impl_->op = std::move(op);
  listen();
}

Capture::~Capture() = default;

void Capture::during(const std::function<void()>& work) {
  struct Restore {
    ~Restore() { capturing = nullptr, told = nullptr; }
  } restore;
  capturing = this, told = &impl_->op;
  const c10::impl::IncludeDispatchKeyGuard guard(kSeen);
  work();
}

int64_t Capture::id_of(const at::Tensor& tensor) {
  const auto [found, first] = impl_->ids.try_emplace(tensor.unsafeGetTensorImpl(), impl_->next);
  if (first) impl_->tensors.emplace(impl_->next++, tensor);
  return found->second;
}

bool Capture::knows(const at::Tensor& tensor) const { return impl_->ids.contains(tensor.unsafeGetTensorImpl()); }

const at::Tensor& Capture::tensor(int64_t id) const { return impl_->tensors.at(id); }

void Capture::forget(int64_t id) {
  const auto found = impl_->tensors.find(id);
  if (found == impl_->tensors.end()) return;
  impl_->ids.erase(found->second.unsafeGetTensorImpl());
  impl_->tensors.erase(found);
}

void unseen(const std::function<void()>& work) {
  const c10::impl::ExcludeDispatchKeyGuard guard(kSeen);
  work();
}

}  // namespace parity
